import type { Algorithm, TrainingRunSpec } from "../../crds/trainingrun.ts";
import type { Outcome } from "../../proto/execution.ts";

/**
 * Duration weights, eq. 3 of the paper: each sample's policy loss is multiplied by w_i = dt_i / mean(dt) of the batch.
 *
 * Eq. 3 corrects a sampler whose completions are proportional to pi / dt. If nothing is thrown away
 * (`collection: CarryOver`), `Paper` prefers slow programs; `Completion` weighs by the chance that a program of that
 * duration completes at all, which is then exactly 1.
 */

/** The fields of a sample that its weight depends on. */
export interface TimedSample {
  /** `undefined`: the solution was never executed. */
  outcome?: Outcome;
  /** Wall-clock seconds that the program ran. */
  durationSeconds?: number;
  /** CPU seconds that it used. */
  cpuSeconds?: number;
}

/**
 * `startupSeconds` is added to every duration: the interpreter's start and imports, which a warm sandbox does not spend.
 * `durationCap` is the largest weight before `Capped` scales back to mean 1.
 */
export type DurationOptions = Pick<Algorithm, "durationCap" | "startupSeconds" | "timeoutWeight"> & {
  durationWeighting: Weighting;
  durationClock: Clock;
};

export type Weighting = Exclude<Algorithm["durationWeighting"], "Auto">;

/** `Auto` is `Paper` where samples are lost for being slow, and `Off` elsewhere (test/experiments, E0 and E1). */
export function durationWeighting(o: Pick<Algorithm, "durationWeighting" | "collection">): Weighting {
  if (o.durationWeighting !== "Auto") return o.durationWeighting;
  return o.collection === "Discard" ? "Paper" : "Off";
}

/** `Active` is the smaller of wall-clock and CPU seconds, so that sleeping does not pay. */
export type Clock = Exclude<Algorithm["durationClock"], "Auto">;

/** `Auto` is `Active`, except where the sandbox has a device (`nvidia.com/gpu`) that a program waits for. */
export function durationClock({ algorithm, actors }: Pick<TrainingRunSpec, "algorithm" | "actors">): Clock {
  if (algorithm.durationClock !== "Auto") return algorithm.durationClock;
  const resources = Object.entries(actors.sandboxResources.limits ?? {});
  return resources.some(([name, count]) => name.includes("/") && Number(count) !== 0) ? "Wall" : "Active";
}

/** dt of one sample, in seconds: `startupSeconds` plus the clock's measurement. */
export function sampleDuration(sample: TimedSample, o: DurationOptions): number {
  if (sample.outcome === undefined) return o.startupSeconds;
  const wall = sample.durationSeconds ?? 0;
  const measured = o.durationClock === "Wall" ? wall : Math.min(wall, sample.cpuSeconds ?? wall);
  return o.startupSeconds + measured;
}

/**
 * Returns one weight a sample, detached, for all of its tokens. The mean over the samples whose duration counts is 1. A timeout
 * with `timeoutWeight: One` weighs 1. With eq. 3, a solution that was never executed weighs 1, too: it has no dt. With `startupSeconds`
 * instead, the policy would hardly unlearn responses without a program where programs take minutes.
 * @param abandonedSeconds how long each run had been running that `collection: Discard` threw away
 */
export function durationWeights(batch: TimedSample[], o: DurationOptions, abandonedSeconds: number[] = []): number[] {
  const isByDuration = o.durationWeighting === "Paper" || o.durationWeighting === "Capped";
  const durations = batch.map((sample) => sampleDuration(sample, o));
  const raw = rawWeights(durations, o, abandonedSeconds);
  const fixed = batch.map(({ outcome }) =>
    outcome === undefined ? isByDuration : outcome === "timedOut" && o.timeoutWeight === "One",
  );
  const free = raw.filter((_, i) => !fixed[i]);
  const mean = free.reduce((sum, weight) => sum + weight, 0) / Math.max(free.length, 1);
  let weights = raw.map((weight, i) => (!fixed[i] && mean > 0 ? weight / mean : 1));
  if (o.durationWeighting === "Capped") {
    weights = weights.map((weight) => Math.min(weight, o.durationCap));
    const cappedMean = weights.reduce((sum, weight) => sum + weight, 0) / Math.max(weights.length, 1);
    if (cappedMean > 0) weights = weights.map((weight) => weight / cappedMean);
  }
  return weights;
}

function rawWeights(durations: number[], o: DurationOptions, abandonedSeconds: number[]): number[] {
  switch (o.durationWeighting) {
    case "Off":
      return durations.map(() => 1);
    case "Paper":
    case "Capped":
      return durations;
    case "Completion": {
      const abandoned = abandonedSeconds.map((seconds) => o.startupSeconds + seconds);
      const chance = completionChance(durations, abandoned);
      return durations.map((duration) => 1 / chance(duration));
    }
  }
}

/**
 * The product-limit (Kaplan-Meier) estimate of the chance that a run of length t is not thrown away before it ends:
 * the product over abandonment times c < t of 1 - 1 / (runs that were still going at c). 1 if nothing was abandoned.
 *
 * @param completed lengths of the runs that ended, seconds
 * @param abandoned how long the others had run when they were thrown away, seconds
 */
export function completionChance(completed: number[], abandoned: number[]): (seconds: number) => number {
  const all = [...completed, ...abandoned];
  const steps = abandoned
    .toSorted((a, b) => a - b)
    .map((at, i, sorted) => {
      const going = all.filter((seconds) => seconds >= at).length - (i - sorted.indexOf(at));
      return { at, factor: 1 - 1 / going };
    });
  return (seconds) => {
    let chance = 1;
    for (const step of steps) if (step.at < seconds) chance *= step.factor;
    return chance;
  };
}
