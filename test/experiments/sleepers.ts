/** A real learner whose actors' programs sleep for log-normal times: measures the costs of collecting, without programs' work. */
import { copyFileSync, existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parse, stringify } from "yaml";
import { applyOverride, parseOverride } from "../../crds/overrides.ts";
import { uniforms } from "../../learner/engine/model/random.ts";
import { durationHistogram } from "../../learner/metrics/durations.ts";
import { readMetrics } from "../../learner/metrics/jsonl.ts";
import { sleeps, until, World } from "../faults/real-learner.ts";

/** Median of the sleeps. The longest of 16 is about 14 times the median. */
export const MEDIAN_SECONDS = 0.4;
export const SIGMA = 1.5;
/** Enough for all executions in flight, so nothing queues. */
const ACTORS = 3;
const SLOTS = 8;
const LONGEST_RUN_SECONDS = 400;

/** Trains with the manifest and settings, and leaves `metrics.jsonl` and `store.sqlite` in `directory`. */
export async function trainWithSleepers(manifest: string, set: string[], directory: string): Promise<void> {
  const content: unknown = parse(readFileSync(manifest, "utf8"));
  for (const setting of set) applyOverride(content, parseOverride(setting));
  const world = await new World().prepare();
  try {
    const learner = world.learner(stringify(content));
    const { port } = await learner.listening;
    for (let index = 0; index < ACTORS; index++)
      world.actor(port, `test-actor-${index}`, SLOTS, (lease, signal, onProgress) =>
        sleeps(sleepSeconds(Number(lease.seed)))(lease, signal, onProgress),
      );
    const isOver = () => existsSync(join(world.run, "summary.json")) && world.summary().state === "succeeded";
    await until(isOver, "the end of a run of sleepers", LONGEST_RUN_SECONDS);
    for (const file of ["metrics.jsonl", "store.sqlite"]) copyFileSync(join(world.run, file), join(directory, file));
  } finally {
    world.remove();
  }
}

/** Returns the same time for the same sample in every arm of a seed. */
function sleepSeconds(seed: number): number {
  const next = uniforms(seed, "sleep");
  // Box-Muller
  const normal = Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
  return MEDIAN_SECONDS * Math.exp(SIGMA * normal);
}

export interface Collecting {
  /** Time until each iteration was trained on. */
  iterations: { elapsed: number; samples: number; learnerIdle: number; actorsBusy: number; lag: number }[];
  edgesSeconds: number[];
  launched: number[];
  trained: number[];
}

export async function readCollecting(directory: string): Promise<Collecting> {
  const lines = await readMetrics(join(directory, "metrics.jsonl"));
  const store = new DatabaseSync(join(directory, "store.sqlite"), { readOnly: true });
  const samples = store
    .prepare("SELECT execution_seed AS seed, used FROM samples WHERE program IS NOT NULL ORDER BY sequence")
    .all() as { seed: number; used: string | null }[];
  store.close();
  // Discarded executions would have slept as long.
  const seconds = (of: typeof samples) => of.map(({ seed }) => sleepSeconds(seed));
  const trained = samples.filter(({ used }) => used === "trained");
  return {
    iterations: lines.map((line) => ({
      ...{ elapsed: line.elapsedSeconds, samples: line.samples, lag: line.meanLag },
      ...{ learnerIdle: line.learnerIdleShare ?? 0, actorsBusy: line.actorBusyShare ?? 0 },
    })),
    ...durationHistogram(seconds(samples), seconds(trained)),
  };
}
