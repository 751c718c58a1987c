/**
 * `longrun task`: looks at prepared task folders (`usage`).
 *
 * Exit codes: 0 done, warnings or none; 1 failed; 2 bad input, and a folder that no run can use.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { ManifestError, parseTask, type Task as TaskSpec } from "../../crds/trainingrun.ts";
import { ModelError, readTokenizer } from "../engine/index.ts";
import { RolloutError } from "../rollout/errors.ts";
import { estimateChat } from "../rollout/estimate-tokens.ts";
import { type PromptLimits, scratchPrompt } from "../rollout/prompts.ts";
import { readPromptTask } from "../rollout/snippet.ts";
import { dropLeaks } from "../tasks/drop-leaks.ts";
import { TaskError } from "../tasks/errors.ts";
import { count, describeFile } from "../tasks/public-files.ts";
import { openTask } from "../tasks/task.ts";
import { checkTask, type TaskCheck } from "./check.ts";
import { InputError, wholeNumber } from "./command.ts";

const usage = `longrun task check DIR [--task ID] [--model DIR] [--max-tokens N] [--rows N] [--style Paper|Short] [--json]
    Looks at a prepared task folder, MLE-bench's or your own, as a run will use it. DIR may also be the folder above,
    with --task to say which. Every problem is told with its remedy; with an error the exit status is 2.
longrun task prompt DIR [--task ID] [--model DIR] [--max-tokens N] [--rows N] [--style Paper|Short] [--json]
    Prints the prompt that solves the task from scratch; what was left out and the tokens go to stderr.
longrun task drop DIR --out DIR [--task ID]
    Copies a folder without the fields that give its labels away (random-acts-of-pizza has one).

--model DIR counts tokens with that folder's tokenizer; without it they are estimated. --max-tokens is
model.maxPromptTokens of the run (1024), --rows is prompts.dataSnippetRows (3).
`;

const options = {
  task: { type: "string" },
  model: { type: "string" },
  "max-tokens": { type: "string", default: "1024" },
  rows: { type: "string", default: "3" },
  style: { type: "string", default: "Paper" },
  out: { type: "string" },
  json: { type: "boolean", default: false },
  help: { type: "boolean", default: false },
} as const;

type Values = ReturnType<typeof parseArgs<{ options: typeof options }>>["values"];

function main(): number {
  try {
    const { values, positionals } = parseArgs({ options, allowPositionals: true });
    if (values.help) {
      process.stdout.write(usage);
      return 0;
    }
    const [command, directory, ...others] = positionals;
    if (directory === undefined || others.length > 0 || !["check", "prompt", "drop"].includes(command!))
      throw new TaskError("input", `give check, prompt or drop and one folder\n${usage.trimEnd()}`);
    if (command === "check") return check(directory, values);
    if (command === "prompt") prompt(directory, values);
    else drop(directory, values);
    return 0;
  } catch (error) {
    console.error(`task: ${(error as Error).message}`);
    const badInput = [InputError, TaskError, ModelError, RolloutError, ManifestError].some(
      (kind) => error instanceof kind,
    );
    return badInput || /^ERR_PARSE_ARGS/.test((error as NodeJS.ErrnoException).code ?? "") ? 2 : 1;
  }
}

function check(directory: string, values: Values): number {
  const { folder, spec } = find(directory, values.task);
  const exact = values.model !== undefined;
  const found = checkTask(folder, {
    spec,
    rows: wholeNumber(values.rows, "--rows", 0),
    limits: limitsOf(values),
    exact,
  });
  process.stdout.write(values.json ? `${JSON.stringify(found)}\n` : described(found));
  return found.findings.some(({ severity }) => severity === "error") ? 2 : 0;
}

function prompt(directory: string, values: Values): void {
  const { folder, spec } = find(directory, values.task);
  const shown = readPromptTask(openTask(folder, spec), wholeNumber(values.rows, "--rows", 0));
  const limits = limitsOf(values);
  const { messages, tokens, cut } = scratchPrompt(shown, limits);
  const exact = values.model !== undefined;
  if (values.json) {
    process.stdout.write(`${JSON.stringify({ messages, tokens: tokens.length, exact, cut })}\n`);
    return;
  }
  process.stdout.write(`${messages.map(({ role, content }) => `[${role}]\n${content}`).join("\n\n")}\n`);
  process.stderr.write(`${exact ? "" : "about "}${tokens.length} tokens of ${limits.maxPromptTokens}\n`);
  for (const text of cut) process.stderr.write(`left out: ${text}\n`);
}

function drop(directory: string, values: Values): void {
  if (values.out === undefined) throw new TaskError("input", "--out is missing; name a folder that does not exist");
  const { folder, spec } = find(directory, values.task);
  for (const line of dropLeaks(openTask(folder, spec), values.out)) process.stdout.write(`${line}\n`);
}

/** Returns the task's folder: `directory`, or the folder below it that `--task` names. */
function find(directory: string, id: string | undefined): { folder: string; spec: TaskSpec | undefined } {
  if (!existsSync(directory)) throw new TaskError("input", `${directory}: there is no such folder`);
  const below = id === undefined ? directory : join(directory, id);
  if (id !== undefined && !existsSync(join(directory, "prepared")) && existsSync(join(below, "prepared")))
    return { folder: below, spec: undefined };
  const named = id !== undefined && !existsSync(join(directory, "task.yaml"));
  return { folder: directory, spec: named ? parseTask(`name: ${JSON.stringify(id)}`, "--task") : undefined };
}

function limitsOf(values: Values): PromptLimits {
  if (values.style !== "Paper" && values.style !== "Short")
    throw new TaskError("input", `--style is ${values.style}; give Paper or Short`);
  const tokenizer = values.model === undefined ? undefined : readTokenizer(values.model);
  return {
    style: values.style,
    maxPromptTokens: wholeNumber(values["max-tokens"], "--max-tokens", 1),
    encode: tokenizer ? (messages) => tokenizer.encodeChat(messages) : estimateChat,
  };
}

function described(check: TaskCheck): string {
  const { task, directory, grader, files, answers, sample, prompt, findings } = check;
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
  if (prompt) {
    lines.push(`prompt    ${prompt.exact ? "" : "about "}${prompt.tokens} tokens of ${prompt.maxTokens}`);
    for (const cut of prompt.cut) lines.push(`          left out: ${cut}`);
  }
  for (const { severity, problem, remedy } of findings) lines.push(`${severity.padEnd(9)} ${problem}; ${remedy}`);
  const errors = findings.filter(({ severity }) => severity === "error").length;
  lines.push(errors === 0 ? "ready" : `${count(errors, "error")}: no run should use this folder`);
  return `${lines.join("\n")}\n`;
}

if (import.meta.main) process.exitCode = main();
