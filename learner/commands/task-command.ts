/** `longrun task`: checks and makes task folders. Exit status 2 also for a folder that no run can use. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseTask, type Task as TaskSpec } from "../../crds/trainingrun.ts";
import { bind, type Values } from "../../proto/command-line.ts";
import { readTokenizer } from "../engine/index.ts";
import { type MetricName, metrics } from "../grading/metrics.ts";
import { estimateChat } from "../rollout/estimate-tokens.ts";
import { type PromptLimits, scratchPrompt } from "../rollout/prompts.ts";
import { readPromptTask } from "../rollout/snippet.ts";
import { dropLeaks } from "../tasks/drop-leaks.ts";
import { initTask } from "../tasks/init.ts";
import { count, describeFile } from "../tasks/public-files.ts";
import { openTask } from "../tasks/task.ts";
import { checkTask, type TaskCheck } from "./check.ts";
import { InputError, modelFolder, printLine, readText, required, runCommands, taskFolder, whole } from "./command.ts";
import { generateTasks } from "./generate-tasks.ts";

const TASK_OPTION = { "task <ID>": "names the task if the folder is above task folders" } as const;
const LIMITS = {
  "model <MODEL>": "counts tokens with that folder's tokenizer; without it the number is an estimate",
  "max-tokens <N>": { help: "model.maxPromptTokens of the run", default: "1024", as: whole(1) },
  "rows <N>": { help: "prompts.dataSnippetRows of the run", default: "3", as: whole(0) },
  "style <STYLE>": { help: "prompts.style of the run", choices: ["Paper", "Short"], default: "Paper" },
  json: "print one object",
} as const;
type Limits = Values<typeof LIMITS>;
const CHECK_OPTIONS = { ...TASK_OPTION, ...LIMITS } as const;
type CheckOptions = Values<typeof CHECK_OPTIONS>;

const INIT = {
  name: "longrun task init",
  description: `Makes a task folder from one table: splits its rows, writes a skeleton of the description, a sample submission, the answers and
task.yaml. Then it checks the folder.`,
  arguments: { "<DIR>": "the folder to make" },
  options: {
    "from <FILE>": {
      help: "text with a header; commas, semicolons, tabs or vertical bars delimit. It may be packed (gz, zst, zip)",
      required: "a .csv file",
    },
    "target <COLUMN>": { help: "column that programs predict", required: "the column that programs predict" },
    "metric <METRIC>": {
      help: "one of learner/grading/README.md, for example RMSE, Accuracy or LogLoss",
      required: `one of ${Object.keys(metrics).join(", ")}`,
      as: metricOf,
    },
    "id <COLUMN>": "column that identifies a row (default: a new one)",
    "name <NAME>": "the task's name (default: the folder's)",
    "test-share <SHARE>": { help: "share of the rows that programs predict", default: "0.3" },
    "seed <S>": { help: "of the split", default: "0", as: whole(0) },
    "encoding <NAME>": "needed unless the file is UTF-8 or UTF-16, for example windows-1252",
    "keep-missing-labels": "keep rows whose label is None, NA or another text that pandas reads as missing",
    ...LIMITS,
  },
} as const;
const CHECK = {
  name: "longrun task check",
  description: `Checks a prepared task folder, MLE-bench's or your own, as a run will use it. Reports every problem with its remedy; with an error
the exit status is 2.`,
  arguments: { "<TASK>": "task folder, a folder above it, or a bundled task" },
  options: CHECK_OPTIONS,
} as const;
const PROMPT = {
  name: "longrun task prompt",
  description:
    "Prints the prompt that asks for a solution from scratch. The omitted parts and the number of tokens go to stderr.",
  arguments: CHECK.arguments,
  options: CHECK_OPTIONS,
} as const;
const DROP = {
  name: "longrun task drop",
  description: "Copies a folder without the fields that reveal its labels (random-acts-of-pizza has one).",
  arguments: CHECK.arguments,
  options: {
    ...TASK_OPTION,
    "out <DIR>": { help: "a folder that does not exist", required: "a folder that does not exist" },
  },
} as const;
const GENERATE = {
  name: "longrun task generate",
  description: `Makes small tasks whose answer is known: made-up tables with every metric, of 200 to 5,000 rows. Each is checked by execution: a
constant, a linear model and boosted trees must differ by more than the noise. The same seed gives the same tables.`,
  options: {
    "out <DIR>": { help: "the folder to make, with a folder for each task", required: "a folder that does not exist" },
    "count <N>": { help: "number of tasks", default: "16", as: whole(1) },
    "seed <S>": { help: "of the tables and splits", default: "0", as: whole(0) },
    "leaks <N>": { help: "number of tasks with a column that gives the label away", default: "0", as: whole(0) },
    "python <PYTHON>": "Python with numpy, pandas and scikit-learn (default: the programs' environment, made once)",
    "max-tokens <N>": LIMITS["max-tokens <N>"],
    "rows <N>": LIMITS["rows <N>"],
    "style <STYLE>": LIMITS["style <STYLE>"],
    "model <MODEL>": LIMITS["model <MODEL>"],
  },
} as const;
export const TASK = {
  name: "longrun task",
  description: "make task folders from a table or at random, or check one",
  options: {},
  commands: [INIT, GENERATE, CHECK, PROMPT, DROP],
  examples: [
    "longrun task init ./mytask --from table.csv --target price --metric RMSE",
    "longrun task generate --out ./micro --count 16 --seed 1",
    "longrun task check diamonds",
    "longrun task prompt ./mytask --model quickstart",
  ],
} as const;

function metricOf(text: string, option: string): MetricName {
  if (Object.hasOwn(metrics, text)) return text as MetricName;
  throw new InputError(`${option} ${text}: give one of ${Object.keys(metrics).join(", ")}`);
}

function init(values: Values<typeof INIT.options>, directory: string): number {
  const made = initTask(directory, values);
  for (const line of made) process.stdout.write(`${line}\n`);
  const status = report({ folder: directory, spec: undefined }, values);
  if (status !== 0) process.stderr.write(`${directory}: remove the folder before you make it again\n`);
  return status;
}

async function generate(values: Values<typeof GENERATE.options>): Promise<void> {
  const python = required(values.python, "--python", "a Python with numpy, pandas and scikit-learn");
  const { out, count: tasks, seed, leaks, rows } = values;
  const say = (line: string) => void process.stdout.write(`${line}\n`);
  await generateTasks({ out, count: tasks, seed, leaks, rows, python, limits: limitsOf(values), say });
}

const check = (values: CheckOptions, folder: string): number => report(find(folder, values.task), values);

/** Prints what a check finds. @returns the exit status */
function report({ folder, spec }: Found, values: Limits): number {
  const found = checkTask(folder, {
    spec,
    rows: values.rows,
    limits: limitsOf(values),
    exact: values.model !== undefined,
  });
  if (values.json) printLine(found);
  else process.stdout.write(described(found));
  return found.findings.some(({ severity }) => severity === "error") ? 2 : 0;
}

function prompt(values: CheckOptions, given: string): void {
  const { folder, spec } = find(given, values.task);
  const shown = readPromptTask(openTask(folder, spec), values.rows);
  const limits = limitsOf(values);
  const { messages, tokens, cut } = scratchPrompt(shown, limits);
  const exact = values.model !== undefined;
  if (values.json) {
    printLine({ messages, tokens: tokens.length, exact, cut });
    return;
  }
  process.stdout.write(`${messages.map(({ role, content }) => `[${role}]\n${content}`).join("\n\n")}\n`);
  process.stderr.write(`${exact ? "" : "about "}${tokens.length} tokens of ${limits.maxPromptTokens}\n`);
  for (const text of cut) process.stderr.write(`left out: ${text}\n`);
}

function drop({ task, out }: Values<typeof DROP.options>, given: string): void {
  const { folder, spec } = find(given, task);
  for (const line of dropLeaks(openTask(folder, spec), out)) process.stdout.write(`${line}\n`);
}

interface Found {
  folder: string;
  spec: TaskSpec | undefined;
}

/** Returns the task's folder: `directory`, or the folder below it named by `--task`. */
function find(given: string, id: string | undefined): Found {
  const directory = taskFolder(given);
  if (!existsSync(directory)) throw new InputError(`${directory}: there is no such folder`);
  const below = tasksBelow(directory);
  if (id !== undefined && below.includes(id)) return { folder: join(directory, id), spec: undefined };
  if (below.length > 0) {
    const what =
      id === undefined
        ? `${directory}: name one of its tasks with --task:`
        : `--task ${id}: ${directory} has no such task; it has`;
    throw new InputError(`${what} ${below.join(", ")}`);
  }
  const file = join(directory, "task.yaml");
  if (id === undefined) return { folder: directory, spec: undefined };
  if (!existsSync(file)) return { folder: directory, spec: parseTask(`name: ${JSON.stringify(id)}`, "--task") };
  const { name } = parseTask(readText(file), file);
  if (name !== id) throw new InputError(`--task ${id}: ${directory} is the task ${name}; leave out --task`);
  return { folder: directory, spec: undefined };
}

/** Returns the names of the task folders in a folder that is none itself. */
function tasksBelow(directory: string): string[] {
  if (!statSync(directory).isDirectory() || existsSync(join(directory, "prepared"))) return [];
  return readdirSync(directory).filter((name) => existsSync(join(directory, name, "prepared")));
}

function limitsOf(values: Omit<Limits, "json">): PromptLimits {
  const tokenizer = values.model === undefined ? undefined : readTokenizer(modelFolder(values.model));
  return {
    style: values.style,
    maxPromptTokens: values.maxTokens,
    encode: tokenizer ? (messages) => tokenizer.encodeChat(messages) : estimateChat,
  };
}

function described(check: TaskCheck): string {
  const { task, directory, grader, files, answers, sample, reward, prompt, findings } = check;
  const lines = [`${task || "task"} in ${directory}`];
  if (grader) {
    const { metric, direction, idColumn, targetColumns, isMleBench } = grader;
    const targets = targetColumns.length > 5 ? `${targetColumns.length} columns` : targetColumns.join(", ");
    const end = isMleBench ? " (MLE-bench)" : "";
    lines.push(`grader    ${metric}, ${direction.toLowerCase()} is better, ${idColumn} -> ${targets}${end}`);
  }
  for (const file of files) {
    const columns = file.table && "columns" in file.table ? `, ${count(file.table.columns.length, "column")}` : "";
    lines.push(`public    ${file.name}: ${describeFile(file)}${columns}`);
  }
  const said = ({ valid, score, reason }: { valid: boolean; score?: number; reason: { message: string } }) =>
    valid ? `score ${score}` : `no score, ${reason.message}`;
  if (answers) {
    const { file, rows, privateRows, graded } = answers;
    const hidden = privateRows > 0 ? `, ${privateRows} make the private score alone` : "";
    lines.push(`private   ${file}: ${count(rows, "row")}${hidden}; as a submission: ${said(graded)}`);
  }
  if (sample) lines.push(`sample    ${sample.file}: ${said(sample.graded)}`);
  if (reward) {
    const { earned, floor, from, tried } = reward;
    lines.push(`reward    ${earned}, ${floor} at least${from ? ` (${from})` : ""}`);
    lines.push(
      `          ${tried.filter((one) => one.clamped).length} of ${tried.length} tried rewards clamped to ${floor}`,
    );
  }
  if (prompt) {
    lines.push(`prompt    ${prompt.exact ? "" : "about "}${prompt.tokens} tokens of ${prompt.maxTokens}`);
    for (const cut of prompt.cut) lines.push(`          left out: ${cut}`);
  }
  for (const { severity, problem, remedy } of findings) lines.push(`${severity.padEnd(9)} ${problem}; ${remedy}`);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  lines.push(errors === 0 ? "ready" : `${count(errors, "error")}: no run should use this folder`);
  return `${lines.join("\n")}\n`;
}

if (import.meta.main)
  await runCommands(TASK, [
    bind(INIT, init),
    bind(GENERATE, generate),
    bind(CHECK, check),
    bind(PROMPT, prompt),
    bind(DROP, drop),
  ]);
