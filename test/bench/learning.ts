/**
 * Does the quickstart learn, or only select? Compares quickstart runs with control runs that only differ in a learning rate of 0, so that
 * they execute as many programs, in the last three iterations of each.
 */

import type { IterationMetrics } from "../../learner/metrics/iteration.ts";
import { lowerBound, mean } from "../experiments/statistics.ts";
import { first, LAST, last, MEASURES, programs, runArms } from "./arms.ts";
import type { Bench } from "./result.ts";

const ARMS: Record<string, string[]> = {
  quickstart: [],
  "learning rate 0": ["algorithm.learningRate=0", "algorithm.criticLearningRate=0"],
};

async function run(flags: string[]) {
  const { seeds, set, lines } = await runArms(ARMS, flags, 3);
  const [treated, control] = Object.values(lines) as [IterationMetrics[][], IterationMetrics[][]];
  const compared = Object.entries(MEASURES).map(([measure, value]) => {
    const [a, b] = [last(treated, value), last(control, value)];
    return { measure, value, a: mean(a.map(mean)), b: mean(b.map(mean)), bound: lowerBound(a, b) };
  });
  const rows = compared.map(({ measure, value, a, b, bound }) => ({
    measure,
    "first iteration": first(treated, value).toFixed(3),
    quickstart: a.toFixed(3),
    "learning rate 0": b.toFixed(3),
    difference: (a - b).toFixed(3),
    "95 % lower bound": bound.toFixed(3),
  }));
  const goals = compared.slice(0, 2).map(({ measure, bound }) => ({
    what: `${measure}: lower bound of the difference to the control`,
    goal: "> 0",
    measured: bound.toFixed(3),
    met: bound > 0,
  }));
  const method =
    `${seeds} seeds each, mean of the last ${LAST} iterations, programs executed ${programs(treated).toFixed(0)} and ` +
    `${programs(control).toFixed(0)} a run, bootstrap over runs and their iterations`;
  return { rows, goals, method, raw: { set, lines } };
}

export const learning: Bench = { about: "the quickstart beside runs with a learning rate of 0 (most of an hour)", run };
