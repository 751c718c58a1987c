/** `kubectl longrun status RUN`: shows a run's activity and blockers on one screen, which is refreshed. */
import { setTimeout as sleep } from "node:timers/promises";
import type { EvaluatedPolicyStatus, TaskStatus } from "../../crds/trainingrun.ts";
import { engineText } from "../engine-text.ts";
import { harmless } from "../harmless.ts";
import type { Screen } from "../local/terminal/terminal.ts";
import { significant } from "../numbers.ts";
import type { Run } from "../operator/desired/names.ts";
import { findCondition, isBlocker } from "../operator/status/conditions.ts";
import { type Cluster, readRun } from "./cluster.ts";
import { span } from "./text.ts";

interface StatusOptions {
  /** Whether to refresh until the run is over. */
  watch: boolean;
  json: boolean;
  intervalSeconds: number;
}

export async function showStatus(
  cluster: Cluster,
  name: string,
  { watch, json, intervalSeconds }: StatusOptions,
  screen: Screen,
): Promise<void> {
  let shown: string[] = [];
  for (;;) {
    const run = await readRun(cluster, name);
    if (json) screen.write(`${JSON.stringify(run.status ?? {})}\n`);
    else {
      const lines = statusLines(run, Date.now());
      // A terminal's screen is replaced; elsewhere only new lines are written.
      if (screen.isTTY && shown.length > 0) screen.write(`\u001b[${shown.length}A\u001b[J`);
      if (screen.isTTY || lines.join() !== shown.join()) screen.write(`${fit(lines, screen).join("\n")}\n`);
      shown = lines;
    }
    if (!watch || isOver(run)) return;
    await sleep(intervalSeconds * 1000, undefined, { signal: cluster.signal }).catch(() => {});
    if (cluster.signal.aborted) return;
  }
}

/** Cuts each line to one row of the terminal, because the next refresh overwrites whole rows. */
function fit(lines: string[], { isTTY, columns }: Screen): string[] {
  if (!isTTY || !columns) return lines;
  return lines.map((line) => (line.length < columns ? line : `${line.slice(0, columns - 1)}…`));
}

export function isOver(run: Run): boolean {
  return run.status?.phase === "Succeeded" || run.status?.phase === "Failed";
}

/** @param nowMs Unix milliseconds */
export function statusLines(run: Run, nowMs: number): string[] {
  const { status = {}, spec } = run;
  const { iteration = 0, percent, score, executions, actors, checkpoint, evaluation, results } = status;
  const tasks = spec.tasks.length > 1 ? (status.tasks ?? []) : [];
  const rows: [title: string, ...facts: (string | false | undefined)[]][] = [
    [
      run.metadata.name,
      status.phase ?? "not seen by a controller yet",
      `iteration ${iteration} of ${spec.stopping.iterations}`,
      percent !== undefined && `${percent}%`,
    ],
    ["runtime", status.runtime?.name],
    ["scores", ...scores(score), tasks.length > 0 && meanOf(score?.meanNormalized)],
    ...tasks.map((task): [string, ...(string | false)[]] => [
      task.name,
      ...scores(task),
      ...evaluated("before", task.evaluation?.before),
      ...evaluated("after", task.evaluation?.after),
    ]),
    ["evaluated", ...evaluated("before", evaluation?.before), ...evaluated("after", evaluation?.after)],
    [
      "programs",
      executions && `${executions.running} run`,
      executions && `${executions.queued} wait`,
      executions && `${executions.completed} done`,
      !!executions?.lost && `${executions.lost} lost`,
      !!executions?.disrupted && `${executions.disrupted} disrupted`,
      status.meanDurationSeconds !== undefined && `${significant(status.meanDurationSeconds)} s each`,
    ],
    [
      "actors",
      actors && `${actors.running ?? 0} of ${actors.desired ?? 0} run`,
      !!actors?.idle && `${actors.idle} idle`,
      !!actors?.waiting && `${actors.waiting} wait${actors.waitingReason ? `: ${actors.waitingReason}` : ""}`,
    ],
    ["engine", engineText([status.engineSeconds])],
    ["checkpoint", checkpoint && `iteration ${checkpoint.iteration}`, checkpoint?.path],
    [
      "results",
      results?.iteration !== undefined && `iteration ${results.iteration}${results.final ? ", the last" : ""}`,
      results?.url,
      results?.message,
    ],
    ["time", ...times(run, nowMs)],
    ...doing(run),
  ];
  const width = Math.max(...rows.map(([title]) => title.length));
  return rows.flatMap(([title, ...facts]) => {
    const shown = facts.filter((fact): fact is string => !!fact);
    return shown.length === 0 ? [] : [harmless(`${title.padEnd(width)}  ${shown.join(" · ")}`).replaceAll("\n", " ")];
  });
}

const meanOf = (normalized: number | undefined) =>
  normalized !== undefined && `mean ${significant(normalized)} from 0 to 1`;

function scores(score: Pick<TaskStatus, "best" | "mean" | "validFraction"> | undefined): (string | false)[] {
  const { best, mean, validFraction } = score ?? {};
  return [
    best !== undefined && `best ${significant(best)}`,
    mean !== undefined && `mean ${significant(mean)}`,
    validFraction !== undefined && `${Math.round(100 * validFraction)}% valid`,
  ];
}

function evaluated(when: string, policy: EvaluatedPolicyStatus | undefined): string[] {
  if (!policy) return [];
  const { best, mean, validFraction } = policy;
  const facts = scores({ best, mean, validFraction } as TaskStatus).filter(Boolean);
  return [`${when}: ${facts.join(", ") || "no program was valid"}`];
}

function times({ status = {} }: Run, nowMs: number): string[] {
  const { startTime, completionTime, estimatedCompletion } = status;
  if (startTime === undefined) return [];
  const endMs = completionTime === undefined ? nowMs : Date.parse(completionTime);
  const leftSeconds = estimatedCompletion === undefined ? 0 : (Date.parse(estimatedCompletion) - nowMs) / 1000;
  return [
    `${completionTime === undefined ? "since" : "took"} ${span((endMs - Date.parse(startTime)) / 1000)}`,
    ...(leftSeconds > 0 ? [`about ${span(leftSeconds)} left`] : []),
  ];
}

/** Returns each reason that blocks the run once; without one, returns the run's current activity. */
function doing({ status = {}, spec }: Run): [string, string][] {
  const conditions = status.conditions ?? [];
  const blockers = new Map(
    conditions.filter(({ reason }) => isBlocker(reason ?? "")).map(({ reason, message }) => [message ?? "", reason]),
  );
  if (blockers.size > 0) return [...blockers].map(([message, reason]) => ["blocked", `${reason}: ${message}`]);
  const [succeeded, suspended, progressing] = (["Succeeded", "Suspended", "Progressing"] as const).map((type) =>
    findCondition(conditions, type),
  );
  if (succeeded && succeeded.status !== "Unknown") return [["ended", succeeded.message ?? ""]];
  if (spec.suspend && suspended) return [["paused", suspended.message ?? ""]];
  return progressing ? [["now", progressing.message ?? ""]] : [];
}
