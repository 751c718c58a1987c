/** Counts of the samples that were generated and stored. */
import type { StaticPolicyFault } from "./instrument-policy.ts";

/** Whether a prompt that was drawn to mend a failed program shows one; without one it is another prompt. */
export type Debugging = "shown" | "noFailure" | "tooLong";

/** Whether an improve prompt shows a previous solution; without one it asks for a solution from scratch. */
export type Improvement = "shown" | "noPrevious" | "tooLong";

export interface Launched {
  samples: number;
  tokens: number;
  improvePrompts: Record<Improvement, number>;
  debugPrompts: Record<Debugging, number>;
  verificationFailures: number;
  /** The reason for each program that the static policy did not instrument. */
  instrumenterFaults: StaticPolicyFault[];
  /** Time to insert markers into each program: its share of the programs that were instrumented together. */
  instrumentSeconds: number[];
}

export function nothingLaunched(): Launched {
  const improvePrompts = { shown: 0, noPrevious: 0, tooLong: 0 };
  const counts = { samples: 0, tokens: 0, verificationFailures: 0 };
  const debugPrompts = { shown: 0, noFailure: 0, tooLong: 0 };
  return { ...counts, improvePrompts, debugPrompts, instrumenterFaults: [], instrumentSeconds: [] };
}
