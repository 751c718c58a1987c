/**
 * How the learner's engine spends its time and why it idles: the numbers that a learner measures, and the words for them in the report, the
 * terminal and kubectl.
 */

/** Seconds of an iteration by the engine's activity. They add up to the iteration's seconds. */
export interface EngineSeconds {
  /** It generates solutions. */
  generating: number;
  /** It computes log-probs and optimiser steps. */
  updating: number;
  /** It waits for results while executions are queued: there are too few actors or slots. */
  idleActors: number;
  /** It waits for running programs; collection mode and oversampling let it generate no more. */
  idlePrograms: number;
  /** It could generate ahead, but (maxStaleness + 1) x batchSize samples are open. */
  idleStaleness: number;
  /** Checkpoints, grading and the rest. */
  idleOther: number;
}

/** In display order. */
export const ENGINE_USES = [
  "generating",
  "updating",
  "idleActors",
  "idlePrograms",
  "idleStaleness",
  "idleOther",
] as const satisfies readonly (keyof EngineSeconds)[];

/** Words and a remedy for each reason to idle. */
export const IDLE_REASONS = {
  idleActors: {
    because: "executions waited for an actor",
    remedy: "raise actors.max or actors.slots",
  },
  idlePrograms: {
    because: "it waited for running programs",
    remedy: "raise algorithm.oversampling, or use algorithm.collection CarryOver",
  },
  idleStaleness: {
    because: "as many samples were open as algorithm.maxStaleness allows",
    remedy: "raise algorithm.maxStaleness, or make programs faster",
  },
  idleOther: {
    because: "checkpoints, grading and other work",
    remedy: "see secondsByPhase in metrics.jsonl",
  },
} as const;

/** A smaller idle share gets no remedy. */
const NOTABLE_IDLE_SHARE = 0.1;

/** Shares of time, 0 to 1; they add up to 1. */
export interface EngineUse {
  generating: number;
  updating: number;
  idle: number;
  /** The reason with most of the idle time, and its own share. Undefined if the engine hardly idles. */
  main: { share: number; because: string; remedy: string } | undefined;
}

/**
 * Returns the engine's use of time in some iterations together. Undefined if none of them has the numbers: earlier versions did not measure
 * them.
 */
export function engineUse(iterations: readonly (Partial<EngineSeconds> | undefined)[]): EngineUse | undefined {
  const secondsOf = (use: keyof EngineSeconds) => iterations.reduce((sum, seconds) => sum + (seconds?.[use] ?? 0), 0);
  const total = ENGINE_USES.reduce((sum, use) => sum + secondsOf(use), 0);
  if (!(total > 0)) return undefined;
  const reasons = (Object.keys(IDLE_REASONS) as (keyof typeof IDLE_REASONS)[])
    .map((reason) => ({ share: secondsOf(reason) / total, ...IDLE_REASONS[reason] }))
    .sort((a, b) => b.share - a.share);
  const idle = (total - secondsOf("generating") - secondsOf("updating")) / total;
  return {
    generating: secondsOf("generating") / total,
    updating: secondsOf("updating") / total,
    idle,
    main: idle >= NOTABLE_IDLE_SHARE ? reasons[0] : undefined,
  };
}
