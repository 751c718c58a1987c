/**
 * `longrun run` whose actor, sandbox and learner are killed during the run: measures lost and repeated work, and how busy the parts were.
 */
import { copyFileSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { readMetrics } from "../../learner/metrics/jsonl.ts";
import { RealRun } from "../faults/real-run.ts";
import { prepareSmallTask, type SmallTask, smallTask } from "./tasks.ts";

const TASK: SmallTask = { name: "diamonds", train: 2000, test: 1000 };
const BATCH = 16;
export const ITERATIONS = 6;
/** After this iteration, a process with this in its command line is killed. */
const KILLS = [
  [1, "actor/main.ts"],
  [2, "sandbox/zygote.py"],
  [3, "learner/main.ts"],
] as const;

export interface Killed {
  /** Samples that were trained on, by the iterations that count. */
  trained: number;
  expected: number;
  /** Samples that stayed lost. */
  lost: number;
  /** Samples that were trained on twice, or executions with two accepted results. */
  doubled: number;
  /** Attempts that were repeated because of the kills. */
  repeated: number;
  /** Seconds from the learner's end to the first lease of its successor. */
  servingAgainSeconds: number;
  /** Means of the shares over the iterations in which nothing was killed. */
  actorsBusy: number;
  learnerIdle: number;
  seconds: number;
}

/** Runs it and writes the results to `killed.json`. */
export async function runWithKills(seed: number, directory: string): Promise<void> {
  const folder = await prepareSmallTask(TASK);
  const task = {
    ...smallTask(TASK),
    publicData: { path: join(folder, "public") },
    privateData: { path: join(folder, "private") },
  };
  const parent = mkdtempSync(join(tmpdir(), "longrun-kills-"));
  const settings = [
    `tasks=${JSON.stringify([task])}`,
    ...[`seed=${seed}`, `algorithm.batchSize=${BATCH}`, "algorithm.miniBatchSize=4", "algorithm.microBatchSize=4"],
    ...["algorithm.oversampling=1.5", "actors.slots=2", "learner.threads=1"],
  ];
  const run = new RealRun(join(parent, "run"), { iterations: ITERATIONS, settings });
  try {
    let learnerKilledAt = 0;
    for (const [iteration, part] of KILLS) {
      await run.reached(iteration);
      const leased = () => run.query("SELECT 1 FROM samples WHERE state = 'leased'").length > 0;
      const pid = await run.until(part, () => run.find(part));
      await run.until("a running program", leased);
      if (part.startsWith("learner")) learnerKilledAt = Date.now();
      process.kill(pid, "SIGKILL");
    }
    const { status, output } = await run.ended;
    if (status !== 0) throw new Error(`the run ended with ${status}:\n${output}`);
    writeFileSync(join(directory, "killed.json"), JSON.stringify(await countsOf(run, learnerKilledAt)));
    copyFileSync(join(run.directory, "metrics.jsonl"), join(directory, "metrics.jsonl"));
  } finally {
    run.stop();
    rmSync(parent, { recursive: true, force: true });
  }
}

async function countsOf(run: RealRun, learnerKilledAt: number): Promise<Killed> {
  const count = (sql: string) => Number(run.query(sql)[0]!.n);
  const used =
    "SELECT b.sample FROM batches b JOIN iterations i USING (lineage, iteration) WHERE i.superseded_by IS NULL";
  const lines = await readMetrics(join(run.directory, "metrics.jsonl"));
  const disturbed = new Set<number>(KILLS.map(([iteration]) => iteration + 1));
  const quiet = lines.filter(({ iteration }) => iteration > 1 && !disturbed.has(iteration));
  const mean = (values: number[]) => values.reduce((sum, value) => sum + value, 0) / values.length;
  return {
    trained: count(`SELECT count(*) AS n FROM (${used})`),
    expected: ITERATIONS * BATCH,
    lost: count("SELECT count(*) AS n FROM samples WHERE state = 'lost'"),
    doubled:
      count(`SELECT count(*) - count(DISTINCT sample) AS n FROM (${used})`) +
      count(
        `SELECT count(*) AS n FROM (SELECT 1 FROM attempts WHERE state = 'accepted' GROUP BY execution HAVING count(*) > 1)`,
      ),
    repeated: count("SELECT count(*) AS n FROM attempts WHERE number > 1"),
    servingAgainSeconds:
      (count(`SELECT min(leased_at) AS n FROM attempts WHERE leased_at > ${learnerKilledAt}`) - learnerKilledAt) / 1000,
    actorsBusy: mean(quiet.map((line) => line.actorBusyShare ?? 0)),
    learnerIdle: mean(quiet.map((line) => line.learnerIdleShare ?? 0)),
    seconds: lines.at(-1)!.elapsedSeconds,
  };
}
