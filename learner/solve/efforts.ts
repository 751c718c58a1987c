/** Reads what folders of searches and of training runs did, for `longrun compare`. The folders are only read. */
import { existsSync, readFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { parseEarlier, type Task } from "../../crds/trainingrun.ts";
import type { SolveSettings } from "../../proto/solve.ts";
import type { RunSummary } from "../metrics/summary.ts";
import { openStore } from "../store/store.ts";
import type { IterationRow, SampleOutcome } from "../store/types.ts";
import type { Attempt, Effort } from "./compare.ts";
import { secondsAt } from "./sessions.ts";
import { PURPOSE, readSolve } from "./settings.ts";

/** An iteration's line, as far as it is read here. */
interface Line {
  elapsedSeconds?: number;
  tasks?: Record<string, { metric?: string; direction?: "Higher" | "Lower" }>;
}

/**
 * Returns the efforts of a folder: one for each of its tasks that has an attempt.
 *
 * @throws Error in one line if it is no folder of a run or a search, or has not begun
 */
export function effortsOf(folder: string): Effort[] {
  const manifest = join(folder, "trainingrun.yaml");
  const path = join(folder, "store.sqlite");
  if (!existsSync(manifest))
    throw new Error(`${folder}: this is no folder of a run or of longrun solve: it has no trainingrun.yaml`);
  if (!existsSync(path)) throw new Error(`${folder}: nothing has run in it yet: it has no store.sqlite`);
  const { metadata, spec } = parseEarlier(readFileSync(manifest, "utf8"), manifest);
  const summary = summaryOf(folder);
  const settings = readSolve(folder);
  const store = openStore(path, { readOnly: true });
  try {
    const [outcomes, rows] = [store.outcomes(), store.iterationRows()];
    const seconds = settings ? (at: number) => secondsAt(summary.solve?.sessions ?? [], at) : trainingClock(rows);
    const purpose = settings ? PURPOSE : "training";
    const policy = spec.model.policy ?? "";
    const arm = settings ? armOf(settings, policy) : `RL of ${basename(policy) || metadata.name}`;
    const lines = rows.map(({ metrics }) => metrics as Line);
    return spec.tasks.flatMap((task): Effort[] => {
      const attempts = attemptsOf(outcomes, { purpose, task: task.name }, seconds);
      if (attempts.length === 0) return [];
      const { metric, direction } = measureOf(task, summary, lines);
      const { promptTokens, answerTokens, cost } = summary.solve?.usage ?? {};
      const tokens = promptTokens === undefined ? undefined : promptTokens + answerTokens!;
      return [{ folder, arm, task: task.name, metric, direction, graded: gradedBy(task), attempts, tokens, cost }];
    });
  } finally {
    store.close();
  }
}

function summaryOf(folder: string): Partial<RunSummary> {
  const path = join(folder, "summary.json");
  return existsSync(path) ? (JSON.parse(readFileSync(path, "utf8")) as RunSummary) : {};
}

/** Names a search: how it chooses, and who writes. */
function armOf({ search, endpoint, policy }: SolveSettings, folder: string): string {
  if (endpoint) return `${search}, ${endpoint.model} at ${new URL(endpoint.url).host}`;
  const after = policy!.iteration > 0 ? ` after iteration ${policy!.iteration}` : "";
  return `${search}, ${basename(resolve(folder))}${after}`;
}

/** A bundled task's grader is in the summary of a search, and in the lines of a run. */
function measureOf({ name, grader }: Task, { solve }: Partial<RunSummary>, lines: readonly Line[]) {
  const measured = solve ?? lines.at(-1)?.tasks?.[name];
  const direction: Effort["direction"] | undefined = grader?.direction ?? measured?.direction;
  if (direction === undefined)
    throw new Error(`task ${name}: no iteration has ended, so that its metric is unknown; compare it later`);
  return { metric: String(grader?.metric ?? measured?.metric ?? "score"), direction };
}

/** Settings of a task on which a score depends, beside its answers. */
function gradedBy(task: Task): string {
  const { rewardSplit, privateShare = 0 } = task as Task & { privateShare?: number };
  return JSON.stringify({ rewardSplit, privateShare });
}

function attemptsOf(
  outcomes: readonly SampleOutcome[],
  which: { purpose: string; task: string },
  seconds: (at: number) => number,
): Attempt[] {
  const roots = new Map<string, string>();
  return outcomes
    .filter(({ purpose, task }) => purpose === which.purpose && task === which.task)
    .map((outcome) => {
      const root = (outcome.previous === null ? undefined : roots.get(outcome.previous)) ?? outcome.id;
      roots.set(outcome.id, root);
      return { ...outcome, root };
    })
    .filter(({ state, finishedAt }) => (state === "finished" || state === "notExecuted") && finishedAt !== null)
    .sort((a, b) => a.finishedAt! - b.finishedAt!)
    .map(({ root, finishedAt, valid, score }) => ({
      root,
      seconds: seconds(finishedAt!),
      ...(valid && score !== null && { score }),
    }));
}

/** Returns the seconds of training at a moment. Each iteration's line has them at its end; in between they run with the clock. */
function trainingClock(rows: readonly IterationRow[]): (at: number) => number {
  const ends = rows.map(({ committedAt, metrics }) => ({
    at: committedAt,
    seconds: (metrics as Line).elapsedSeconds ?? 0,
  }));
  return (at) => {
    const next = ends.findIndex((end) => end.at >= at);
    const before = next < 0 ? ends.at(-1) : ends[next - 1];
    if (next < 0) return before ? before.seconds + (at - before.at) / 1000 : 0;
    const end = ends[next]!;
    return Math.max(before?.seconds ?? 0, end.seconds - (end.at - at) / 1000);
  };
}
