/** Writes a drawn task as a folder, with `initTask`, which splits the rows, and says in words what the columns are. */
import { mkdtempDisposableSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseDocument } from "yaml";
import type { Grader } from "../../../crds/trainingrun.ts";
import { metrics } from "../../grading/metrics.ts";
import { csv, initTask } from "../init.ts";
import type { FeatureColumn } from "./features.ts";
import { type Drawn, LEAK } from "./plan.ts";

const ID = "id";
/** Share of the rows that programs predict: half, because differences between programs are measured on them. */
const testShare = 0.5;
/** Seconds that a program may run; good ones take less than one. */
const executionTimeoutSeconds = 30;
/** The reward of a submission that needs no model, see tasks[].guardedRewardCap. */
const guardedRewardCap = 0;

/** Writes `directory`. @throws TaskError if the table cannot be a task, for example because a class is missing */
export function writeTask(directory: string, drawn: Drawn): void {
  const { plan, columns, target } = drawn;
  const { metric, seed, rows, name } = plan;
  using scratch = mkdtempDisposableSync(join(tmpdir(), "longrun-generate-"));
  const from = join(scratch.path, `${name}.csv`);
  const cells = Array.from({ length: rows }, (_, row) => [
    String(row),
    ...columns.map((column) => column.cells[row]!),
    target.labels[row]!,
  ]);
  writeFileSync(from, csv([[ID, ...columns.map((column) => column.name), target.name], ...cells]));
  initTask(directory, { from, target: target.name, metric, id: ID, name, testShare, seed });
  writeFileSync(join(directory, "prepared/public/description.md"), descriptionOf(drawn));
}

/** Changes task.yaml: `worst` and `best` are scores of the constant and of the known answer. */
export function setRewards(directory: string, range: { worst: number; best: number }): void {
  const path = join(directory, "task.yaml");
  const document = parseDocument(readFileSync(path, "utf8"));
  const node = document.createNode(range);
  node.commentBefore = " score of the best constant, and of the signal that the labels were drawn from";
  document.setIn(["grader", "rewardRange"], node);
  document.set("guardedRewardCap", guardedRewardCap);
  document.set("executionTimeoutSeconds", executionTimeoutSeconds);
  writeFileSync(path, document.toString());
}

/** Returns the known answer as a submission. @param ids of the answers, as texts */
export function knownSubmission({ target }: Drawn, { targetColumns }: Grader, ids: readonly string[]): Buffer {
  return Buffer.from(
    csv([[ID, ...targetColumns], ...ids.map((id) => [id, ...target.known(Number(id), targetColumns)])]),
  );
}

function descriptionOf({ plan, domain, columns, target }: Drawn): string {
  const { metric, kind, name, rows } = plan;
  const better = metrics[metric].direction === "Lower" ? "lower" : "higher";
  const row = kind === "extraction" ? "a sentence with the kind of words that are wanted from it" : domain.row;
  return `# ${name}

Each row is ${row}. ${ASKED[kind](target.name)}

The table is made up: a random generator drew it, and no row is about anybody.

## Evaluation

Submissions are graded by ${metric}; ${better} is better.

## Data

${Math.round(rows * (1 - testShare)).toLocaleString("en-US")} rows to train on. \`train.csv\` has the column \`${target.name}\`, \`test.csv\` does not. \`id\` tells rows apart.

${columns.map((column) => `- \`${column.name}\`: ${aboutColumn(column)}`).join("\n")}
`;
}

const ASKED: Readonly<Record<Drawn["target"]["kind"], (target: string) => string>> = {
  regression: (target) => `Predict the number \`${target}\`.`,
  positive: (target) => `Predict \`${target}\`, a number above 0.`,
  binary: (target) => `Predict \`${target}\`, which is 1 or 0.`,
  classes: (target) => `Predict the class \`${target}\`.`,
  levels: (target) => `Predict \`${target}\`, a level from 1 to 5.`,
  ranking: (target) => `Predict \`${target}\`: up to five candidates with blanks between them, the most likely first.`,
  extraction: (target) => `Predict \`${target}\`: the wanted words of the sentence, with blanks between them.`,
};

function aboutColumn({ name, kind, cells }: FeatureColumn): string {
  const lacks = cells.includes("") ? ", some are missing" : "";
  if (name === LEAK) return "a code in the books";
  if (kind === "category")
    return `one of ${[...new Set(cells.filter((cell) => cell !== ""))].sort().join(", ")}${lacks}`;
  return { number: "a number", date: "a date", text: "words" }[kind] + lacks;
}
