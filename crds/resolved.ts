/** `trainingrun.yaml` of a run folder: the resolved manifest, which a machine's command line and the learner both write. */
import { isDeepStrictEqual } from "node:util";
import { Document, isMap, parseDocument } from "yaml";
import type { TrainingRun } from "./trainingrun.generated.ts";

const HEADER = " The resolved manifest of this run: every default is filled in.";
const RANGE = ["spec", "tasks", 0, "grader", "rewardRange"];

/**
 * Returns the file's text.
 *
 * @param note where an estimated rewardRange of the first task is from: a comment beside it
 * @param earlier the text that this one replaces; its note stays with the same range
 */
export function resolvedText(
  run: TrainingRun,
  { note, earlier }: { note?: string | undefined; earlier?: string } = {},
): string {
  const document = new Document(run, { aliasDuplicateObjects: false });
  document.commentBefore = HEADER;
  const range = document.getIn(RANGE);
  const kept = isMap(range) ? (note ?? noteOf(earlier ?? "", range.toJSON())) : undefined;
  if (isMap(range) && kept !== undefined) range.commentBefore = ` ${kept}`;
  return document.toString();
}

function noteOf(text: string, range: unknown): string | undefined {
  const earlier = parseDocument(text).getIn(RANGE);
  if (!isMap(earlier) || !isDeepStrictEqual(earlier.toJSON(), range)) return undefined;
  return earlier.commentBefore?.trim();
}

/**
 * Returns `newer` with the rewardRange of `before`, where it gives none and its grader is otherwise the same: a run estimates the range when
 * it begins, and keeps it.
 */
export function withEarlierRange(newer: TrainingRun, before: TrainingRun | undefined): TrainingRun {
  const [grader, earlier] = [newer.spec.tasks[0]?.grader, before?.spec.tasks[0]?.grader];
  if (!grader || grader.rewardRange || !earlier?.rewardRange) return newer;
  const { rewardRange, ...others } = earlier;
  if (!isDeepStrictEqual(others, grader)) return newer;
  const kept = structuredClone(newer);
  kept.spec.tasks[0]!.grader = { ...grader, rewardRange };
  return kept;
}
