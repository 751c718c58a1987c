/** `longrun task`: checks and makes task folders (`USAGE`). Exit status 2 also for a folder that no run can use. */
import { existsSync, readdirSync, statSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { parseTask, type Task as TaskSpec } from "../../crds/trainingrun.ts";
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
import {
  InputError,
  modelFolder,
  printLine,
  readText,
  required,
  runCommand,
  taskFolder,
  unknownWord,
  wholeNumber,
} from "./command.ts";

const USAGE = `Usage: longrun task init DIR --from FILE --target COLUMN --metric METRIC [--id COLUMN] [--name NAME] [--test-share 0.3]
    [--seed 0] [--encoding NAME] [--keep-missing-labels]
    Makes a task folder from one table: splits its rows, writes a skeleton of the description, a sample submission,
    the answers and task.yaml. METRIC is one of learner/grading/README.md, for example RMSE, Accuracy or LogLoss.
    FILE is text with a header; commas, semicolons, tabs or vertical bars delimit. It may be packed (gz, zst, zip).
    --encoding is needed unless the file is UTF-8 or UTF-16, for example windows-1252. --keep-missing-labels keeps rows
    whose label is None, NA or another text that pandas reads as missing.
longrun task check DIR [--task ID] [--model DIR] [--max-tokens N] [--rows N] [--style Paper|Short] [--json]
    Checks a prepared task folder, MLE-bench's or your own, as a run will use it. DIR may also be the folder above it;
    --task then names the task. Reports every problem with its remedy; with an error the exit status is 2.
longrun task prompt DIR [--task ID] [--model DIR] [--max-tokens N] [--rows N] [--style Paper|Short] [--json]
    Prints the prompt that asks for a solution from scratch. The omitted parts and the number of tokens go to stderr.
longrun task drop DIR --out DIR [--task ID]
    Copies a folder without the fields that reveal its labels (random-acts-of-pizza has one).

--model DIR counts tokens with that folder's tokenizer; without it the number is an estimate. --max-tokens is
model.maxPromptTokens of the run (1024), --rows is prompts.dataSnippetRows (3).`;

const options = {
  task: { type: "string" },
  model: { type: "string" },
  "max-tokens": { type: "string", default: "1024" },
  rows: { type: "string", default: "3" },
  style: { type: "string", default: "Paper" },
  out: { type: "string" },
  from: { type: "string" },
  target: { type: "string" },
  metric: { type: "string" },
  id: { type: "string" },
  name: { type: "string" },
  "test-share": { type: "string", default: "0.3" },
  seed: { type: "string", default: "0" },
  encoding: { type: "string" },
  "keep-missing-labels": { type: "boolean", default: false },
  json: { type: "boolean", default: false },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

function task(): number {
  const { values, positionals } = parseArgs({ options, allowPositionals: true });
  const [command, directory, ...others] = positionals;
  const run = new Map(Object.entries({ check, prompt, drop })).get(command ?? "");
  if (run === undefined && command !== "init") throw unknownWord("task", command, "init, check, prompt or drop", USAGE);
  if (directory === undefined || others.length > 0)
    throw new InputError(
      `longrun task ${command}: give one folder, not ${positionals.length - 1}; longrun help task says more`,
    );
  if (run === undefined) return init(directory, values);
  return run(find(directory, values.task), values) ?? 0;
}

function init(directory: string, values: Values): number {
  const metric = required(values.metric, "--metric", `one of ${Object.keys(metrics).join(", ")}`);
  if (!Object.hasOwn(metrics, metric))
    throw new InputError(`--metric ${metric}: give one of ${Object.keys(metrics).join(", ")}`);
  const { id, name, seed, encoding, "test-share": testShare, "keep-missing-labels": keepMissingLabels } = values;
  const made = initTask(directory, {
    from: required(values.from, "--from", "a .csv file"),
    target: required(values.target, "--target", "the column that programs predict"),
    metric: metric as MetricName,
    seed: wholeNumber(seed, "--seed", 0),
    id,
    name,
    testShare,
    encoding,
    keepMissingLabels,
  });
  for (const line of made) process.stdout.write(`${line}\n`);
  const status = check({ folder: directory, spec: undefined }, values);
  if (status !== 0) process.stderr.write(`${directory}: remove the folder before you make it again\n`);
  return status;
}

function check({ folder, spec }: Found, values: Values): number {
  const rows = wholeNumber(values.rows, "--rows", 0);
  const found = checkTask(folder, { spec, rows, limits: limitsOf(values), exact: values.model !== undefined });
  if (values.json) printLine(found);
  else process.stdout.write(described(found));
  return found.findings.some(({ severity }) => severity === "error") ? 2 : 0;
}

function prompt({ folder, spec }: Found, values: Values): void {
  const shown = readPromptTask(openTask(folder, spec), wholeNumber(values.rows, "--rows", 0));
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

function drop({ folder, spec }: Found, values: Values): void {
  const out = required(values.out, "--out", "a folder that does not exist");
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

function limitsOf(values: Values): PromptLimits {
  if (values.style !== "Paper" && values.style !== "Short")
    throw new InputError(`--style is ${values.style}; give Paper or Short`);
  const tokenizer = values.model === undefined ? undefined : readTokenizer(modelFolder(values.model));
  return {
    style: values.style,
    maxPromptTokens: wholeNumber(values["max-tokens"], "--max-tokens", 1),
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
  if (answers)
    lines.push(`private   ${answers.file}: ${count(answers.rows, "row")}; as a submission: ${said(answers.graded)}`);
  if (sample) lines.push(`sample    ${sample.file}: ${said(sample.graded)}`);
  if (reward) {
    const { worst, best, floor, from, tried } = reward;
    const map = worst === undefined ? "the score itself" : `score ${worst} earns 0, score ${best} earns 1`;
    lines.push(`reward    ${map}, ${floor} at least${from ? ` (${from})` : ""}`);
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

await runCommand(USAGE, task);
