/** Compares what each `algorithm.baseline` learns in the quickstart: the first iteration, by the starting policy, and the last three. */

import { mean } from "../../learner/evaluation/bootstrap.ts";
import { first, LAST, last, MEASURES, programs, runArms } from "./arms.ts";
import type { Bench } from "./result.ts";

/** All have the quickstart's validScoreWeight, which RLOO only allows with whitened advantages. */
const ARMS: Record<string, string[]> = {
  BatchMean: [],
  PPO: ["algorithm.baseline=Critic"],
  GRPO: ["algorithm.baseline=GRPO"],
  RLOO: ["algorithm.baseline=RLOO", "algorithm.whitening=Plain"],
};

async function run(flags: string[]) {
  const { seeds, set, lines } = await runArms(ARMS, flags, 2);
  const rows = Object.entries(lines).flatMap(([algorithm, runs]) =>
    Object.entries(MEASURES).map(([measure, value]) => ({
      algorithm,
      measure,
      "first iteration": first(runs, value).toFixed(3),
      [`last ${LAST}`]: mean(last(runs, value).map(mean)).toFixed(3),
      "each run": last(runs, value)
        .map((run) => mean(run).toFixed(3))
        .join(" "),
    })),
  );
  const goals = Object.entries(lines).map(([algorithm, runs]) => {
    const value = MEASURES["valid fraction"]!;
    const rise = mean(last(runs, value).map(mean)) - first(runs, value);
    return { what: `${algorithm}: rise of the valid fraction`, goal: "> 0", measured: rise.toFixed(3), met: rise > 0 };
  });
  const executed = Object.entries(lines).map(([algorithm, runs]) => `${algorithm} ${programs(runs).toFixed(0)}`);
  const method = `${seeds} seeds each, programs executed a run: ${executed.join(", ")}`;
  return { rows, goals, method, raw: { set, lines } };
}

export const algorithms: Bench = { about: "the quickstart with each baseline (most of an hour)", run };
