/** `trainingrun.yaml` of a run folder: the resolved manifest, which a machine's command line and the learner both write. */
import { isDeepStrictEqual } from "node:util";
import { Document, isMap, isSeq, parseDocument, type YAMLMap } from "yaml";
import type { TrainingRun } from "./trainingrun.generated.ts";

const HEADER = " The resolved manifest of this run: every default is filled in.";

/**
 * Returns the file's text.
 *
 * @param notes origin of a task's estimated rewardRange, by the task's name; it becomes a comment beside the range
 * @param earlier the text that this one replaces; its notes stay with the same ranges
 */
export function resolvedText(
  run: TrainingRun,
  { notes = {}, earlier = "" }: { notes?: Readonly<Record<string, string>>; earlier?: string } = {},
): string {
  const document = new Document(run, { aliasDuplicateObjects: false });
  document.commentBefore = HEADER;
  const before = parseDocument(earlier);
  for (const { name } of run.spec.tasks) {
    const range = rangeOf(document, name);
    const kept = range && (notes[name] ?? noteOf(before, name, range));
    if (range && kept !== undefined) range.commentBefore = ` ${kept}`;
  }
  return document.toString();
}

function rangeOf(document: Document, task: string): YAMLMap | undefined {
  const tasks = document.getIn(["spec", "tasks"]);
  const item = isSeq(tasks) ? tasks.items.find((each) => isMap(each) && each.get("name") === task) : undefined;
  const range = isMap(item) ? item.getIn(["grader", "rewardRange"]) : undefined;
  return isMap(range) ? range : undefined;
}

function noteOf(before: Document, task: string, range: YAMLMap): string | undefined {
  const earlier = rangeOf(before, task);
  return earlier && isDeepStrictEqual(earlier.toJSON(), range.toJSON()) ? earlier.commentBefore?.trim() : undefined;
}

/**
 * Returns `newer` with the rewardRanges of `before`, if a task gives none and its grader is otherwise the same: a run estimates the range
 * when it begins with a task, and keeps it.
 */
export function withEarlierRange(newer: TrainingRun, before: TrainingRun | undefined): TrainingRun {
  const ranges = new Map(before?.spec.tasks.map(({ name, grader }) => [name, grader]));
  let kept = newer;
  for (const [index, { name, grader }] of newer.spec.tasks.entries()) {
    const { rewardRange, ...others } = ranges.get(name) ?? {};
    if (!grader || grader.rewardRange || !rewardRange || !isDeepStrictEqual(others, grader)) continue;
    if (kept === newer) kept = structuredClone(newer);
    kept.spec.tasks[index]!.grader = { ...grader, rewardRange };
  }
  return kept;
}
