import type { Message } from "../engine/index.ts";
import type { Sample } from "../store/types.ts";
import { describeColumns } from "./columns.ts";
import { introduction } from "./description.ts";
import { RolloutError } from "./errors.ts";
import type { DataProfile, PromptTask } from "./prompt-task.ts";
import { clipRecord, type Shortened, shortenings, shorterIntroductions } from "./shorten.ts";
import { formatSolution } from "./solution.ts";

/**
 * Returns token ids [time] of messages in the model's chat template, with the opening of the assistant's turn and the answer's prefix.
 * Messages contain text of programs, none of which may become a token that opens or closes a turn.
 */
export type EncodeChat = (messages: Message[], answerPrefix?: string) => Int32Array;

/** `Paper`: Appendix C.1 and C.2. `Short`: the same content in 40 to 60 tokens, for a model of a few million weights. */
export type PromptStyle = "Paper" | "Short";

export interface ShownSolution {
  plan: string;
  program: string;
  /** The terminal output of the execution, with marker lines as the program wrote them. */
  output: string;
}

export interface PromptLimits {
  style: PromptStyle;
  maxPromptTokens: number;
  encode: EncodeChat;
}

export interface Prompt {
  kind: Sample["kind"];
  messages: Message[];
  tokens: Int32Array;
  /** Parts that were left out to fit, in order; for a metric and the log. */
  cut: string[];
}

export const fence = "```";

export const paperSystem =
  "You are given a machine learning task. You must solve the task by training a model and running the model on the " +
  "test set to produce a submission file.";
export const shortSystem = "Write a plan and a Python program that solves the task.";

const paperScratch =
  "First outline your proposed solution in natural language (3-5 sentences), followed by a single markdown code " +
  `block (wrapped in ${fence}). Note:`;

const paperImprove =
  "You have implemented a previous solution. Revise the solution to improve the performance on the test set. First " +
  "outline your proposed solution in natural language (3-5 sentences), followed by a single markdown code block " +
  `(wrapped in ${fence}) which implements this solution. If you reuse parts of the example code, include those ` +
  "sections again in your final solution.";

/** Returns the prompt to solve a task from scratch, with nothing left out. */
export function scratchMessages(task: PromptTask, style: PromptStyle): Message[] {
  return style === "Paper"
    ? asked(paperSystem, `${paperScratch}\n\n${paperTask(task)}`)
    : asked(shortSystem, shortTask(task));
}

export const asked = (system: string, user: string): Message[] => [
  { role: "system", content: system },
  { role: "user", content: user },
];

/** Returns the prompt to improve a previous solution (section 3.3, Appendix C.2), with the end of its terminal output. */
export function improveMessages(previous: ShownSolution, style: PromptStyle, outputTailBytes: number): Message[] {
  const solution = formatSolution(previous.plan, previous.program);
  const output = outputTail(previous.output, outputTailBytes);
  if (style === "Short") {
    const shown = output === "" ? "" : `\nOutput:\n${output}`;
    return asked(shortSystem, `Improve this solution.\n${solution}${shown}`);
  }
  const content = [
    paperImprove,
    `Previous solution:\n\n${solution}`,
    `Terminal output of the previous solution:\n\n${fence}\n${output.replaceAll(fence, "'''")}\n${fence}`,
  ].join("\n\n");
  return asked(paperSystem, content);
}

/**
 * Returns a scratch prompt of at most `maxPromptTokens`, with as few `shortenings` as possible, in their order.
 * @throws RolloutError `prompt` if the parts that are never cut do not fit.
 */
export function scratchPrompt(task: PromptTask, limits: PromptLimits): Prompt {
  const steps: Shortened[] = [...(limits.style === "Paper" ? shortenings(task) : shorterIntroductions(task))];
  const encoded = (taken: number) => {
    const messages = scratchMessages(steps[taken - 1]?.task ?? task, limits.style);
    return { messages, tokens: limits.encode(messages) };
  };
  const fits = ({ tokens }: { tokens: Int32Array }) => tokens.length <= limits.maxPromptTokens;
  // Each step shortens the prompt, so bisection finds the least number of steps.
  let [least, most] = [0, fits(encoded(0)) ? 0 : steps.length];
  while (least < most) {
    const taken = Math.floor((least + most) / 2);
    if (fits(encoded(taken))) most = taken;
    else least = taken + 1;
  }
  const shown = encoded(least);
  if (!fits(shown))
    throw new RolloutError(
      "prompt",
      `task ${task.name}: its statement takes a prompt of ${shown.tokens.length} tokens, model.maxPromptTokens is ` +
        `${limits.maxPromptTokens}; raise it or give the task a shorter description`,
    );
  return { kind: "scratch", ...shown, cut: steps.slice(0, least).map(({ cut }) => cut) };
}

/**
 * Returns an improve prompt of at most `maxPromptTokens`; the terminal output is halved until it fits. Undefined if the whole previous
 * solution does not fit.
 */
export function improvePrompt(
  previous: ShownSolution,
  limits: PromptLimits & { outputTailBytes: number },
): Prompt | undefined {
  const cut: string[] = [];
  for (let bytes = limits.outputTailBytes; ; bytes = bytes < 64 ? 0 : Math.floor(bytes / 2)) {
    const messages = improveMessages(previous, limits.style, bytes);
    const tokens = limits.encode(messages);
    if (tokens.length <= limits.maxPromptTokens) return { kind: "improve", messages, tokens, cut };
    if (bytes === 0) return undefined;
    cut.push(`terminal output over ${bytes < 64 ? 0 : Math.floor(bytes / 2)} bytes`);
  }
}

/** Returns the last whole lines within `bytes` bytes of UTF-8, without the nonce before a marker. */
export function outputTail(output: string, bytes: number): string {
  const lines = output
    .replace(/^[0-9a-f]{32}:/gm, "")
    .replaceAll("\r\n", "\n")
    .trimEnd()
    .split("\n");
  let size = 0;
  let first = lines.length;
  while (first > 0) {
    size += Buffer.byteLength(lines[first - 1]) + 1;
    if (size > bytes + 1) break;
    first -= 1;
  }
  return lines.slice(first).join("\n");
}

/** Returns notes about a task, its description and its data. */
export function paperTask(task: PromptTask): string {
  const { statement, description, metric, packages, submissionFormat, profile, fileFacts, snippet } = task;
  const files = task.files.map(
    (file) => `\`${file}\`${fileFacts?.[file] === undefined ? "" : ` (${fileFacts[file]})`}`,
  );
  const notes = [
    `- Datasets ${files.join(", ")} are available in \`./input/\`.`,
    "- You MUST produce a submission file at `./submission.csv` by running your model on the test split.",
  ];
  if (statement !== undefined) notes.push(`- ${statement}`);
  else notes.push(/\n\s*\n/.test(description.trim()) ? description.trim() : `- ${description.trim()}`);
  if (metric) notes.push(`- Submissions are evaluated on ${metricText(metric, metricWords)}.`);
  if (packages.length > 0)
    notes.push(`- You can use pre-installed packages such as: ${packages.map((name) => `\`${name}\``).join(", ")}.`);
  notes.push("- You can't access the internet, so don't use any pre-trained models that need downloading.");
  if (submissionFormat.length > 0) {
    const rows = submissionFormat.map(formatRow).join("\n");
    notes.push(`- \`./submission.csv\` should have the following format:\n${fence}\n${rows}\netc.\n${fence}`);
  }
  const parts = [notes.join("\n\n")];
  if (statement !== undefined && description.trim() !== "") parts.push(`Task description:\n\n${description.trim()}`);
  if (profile) parts.push(describeProfile(profile));
  if (snippet.length > 0) {
    const shown = snippet.map(({ file, head, records }) =>
      [`-> ./input/${file}:`, ...(head === undefined ? [] : [head]), ...records, "..."].join("\n"),
    );
    parts.push(`Data snippet:\n${shown.join("\n\n")}`);
  }
  return parts.join("\n\n");
}

function describeProfile({ file, columns, profiledRows, complete, test }: DataProfile): string {
  const rows = complete ? "" : `, missing values counted in the first ${profiledRows.toLocaleString("en-US")} rows`;
  const lines = [
    `Columns of ./input/${file} (types as pandas reads them${rows}): ${describeColumns(columns).join(", ")}.`,
  ];
  if (test) {
    const listed = (names: readonly string[]) => describeColumns(names.map((name) => ({ name }))).join(", ");
    const differences = [
      ...(test.lacks.length > 0 ? [`without ${listed(test.lacks)}`] : []),
      ...(test.adds.length > 0 ? [`with ${listed(test.adds)} besides`] : []),
    ];
    lines.push(`./input/${test.file} has the same columns${differences.map((text) => ` ${text}`).join(" and")}.`);
  }
  return lines.join("\n");
}

/** Longer rows omit fields in the middle; the sample submission has their names. */
const formatFields = 12;
const formatFieldCharacters = 80;

/** @param line 0: the header */
function formatRow(row: string, line: number): string {
  const fields = clipRecord(row, formatFieldCharacters, row.length).split(",");
  if (fields.length <= formatFields) return fields.join(",");
  const count = line === 0 ? ` (${fields.length} columns in all, as in the sample submission) ` : "";
  return `${fields.slice(0, 3).join(",")},...${count}...,${fields.at(-1)}`.replace("......", "...");
}

/** Returns the same in a few lines. */
export function shortTask(task: PromptTask): string {
  const lines = task.statement === undefined ? introduction(task.description) : [task.statement];
  if (task.columns.length > 0)
    lines.push(`Columns: ${describeColumns(task.columns.map((name) => ({ name }))).join(", ")}.`);
  if (task.metric) lines.push(`Metric: ${metricText(task.metric)}.`);
  return lines.join("\n");
}

/** Names in the paper's prompts; other metrics have their own name. */
const metricWords: Readonly<Record<string, string>> = {
  RocAuc: "the area under the ROC curve",
  LogLoss: "the logarithmic loss (probabilities are not rescaled)",
  WordJaccard: "the mean word-level Jaccard score",
  QuadraticWeightedKappa: "the quadratic weighted kappa",
  Pearson: "the Pearson correlation",
  Accuracy: "accuracy",
  RMSLE: "the root mean squared logarithmic error, averaged over the columns",
};

function metricText(
  metric: { name: string; direction: "Higher" | "Lower" },
  words: Readonly<Record<string, string>> = {},
): string {
  return `${words[metric.name] ?? metric.name}, ${metric.direction.toLowerCase()} is better`;
}
