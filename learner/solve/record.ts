/** Reads what a search has found from its folder's store, for the report and for `longrun compare`. The store is only read. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import type { SolveSettings } from "../../proto/solve.ts";
import type { SolveSummary } from "../metrics/summary.ts";
import { openStore } from "../store/store.ts";
import type { SampleOutcome } from "../store/types.ts";
import { secondsAt } from "./sessions.ts";
import { PURPOSE, readSolve } from "./settings.ts";
import { nodeOf, type SolutionNode } from "./tree.ts";

/** A solution for people. Its score is the public one, by which the search chooses. */
export interface RecordedNode extends SolutionNode {
  /** Seconds of search when it was written and when its program ended; null: not yet. */
  writtenSeconds: number;
  finishedSeconds: number | null;
  durationSeconds: number | null;
  /** Why it is not valid; null if it is, or is not graded. */
  reason: string | null;
  family: string | null;
}

/** The scores that are shown of a solution: the heads of their columns, and their values. */
export const scoreColumns = (metric: string): { title: string; of: (node: RecordedNode) => number | undefined }[] => [
  { title: metric, of: ({ score }) => score },
];

export interface SearchRecord {
  settings: SolveSettings;
  /** In the order in which they were asked for, without lost ones. */
  nodes: RecordedNode[];
}

/** Undefined if the folder is none of a search. @param sessions of its `summary.json` */
export function readSearch(directory: string, sessions: SolveSummary["sessions"]): SearchRecord | undefined {
  const settings = readSolve(directory);
  if (settings === undefined) return undefined;
  const nodes = outcomesIn(directory)
    .filter(({ purpose }) => purpose === PURPOSE)
    .map((outcome) => recordedOf(outcome, sessions))
    .filter(({ state }) => state !== "lost");
  return { settings, nodes };
}

/** Returns the outcomes of a folder's samples; none if it has no store yet. */
export function outcomesIn(directory: string): SampleOutcome[] {
  const path = join(directory, "store.sqlite");
  if (!existsSync(path)) return [];
  const store = openStore(path, { readOnly: true });
  try {
    return store.outcomes();
  } finally {
    store.close();
  }
}

function recordedOf(outcome: SampleOutcome, sessions: SolveSummary["sessions"]): RecordedNode {
  const { id, kind, state, hasProgram, createdAt, finishedAt, durationSeconds, valid, score, reason, family } = outcome;
  const node = nodeOf({
    id,
    kind,
    state,
    previous: outcome.previous ?? undefined,
    depth: outcome.depth ?? 0,
    ...(hasProgram && { program: "" }),
    ...(valid !== null && { grade: { valid, reward: 0, reason: "", ...(score !== null && { score }) } }),
  });
  return {
    ...node,
    durationSeconds,
    family,
    reason: valid === false ? reason : null,
    writtenSeconds: secondsAt(sessions, createdAt),
    finishedSeconds: finishedAt === null ? null : secondsAt(sessions, finishedAt),
  };
}
