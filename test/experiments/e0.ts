/** E0: where eq. 3 of the paper corrects, has no effect and harms, on the bandit of its section 3.1. */
import { parseArgs } from "node:util";
import { mean } from "../../learner/evaluation/bootstrap.ts";
import { color } from "../../learner/report/theme.ts";
import {
  type Advantage,
  BATCH,
  type Cell,
  type Collection,
  type Course,
  DURATION_SPREAD,
  expected,
  expectedReward,
  LEARNING_RATE,
  REWARD_SPREAD,
  simulate,
  UPDATES,
  type Weighting,
  type World,
} from "./bandit.ts";
import type { Experiment, Findings } from "./result.ts";
import { estimate, LEAST_SEEDS } from "./statistics.ts";

const FAST = { name: "fast", seconds: 1 };
const SLOW = { name: "slow", seconds: 10 };
const WORLDS: World[] = [
  {
    name: "slow is better",
    actions: [
      { ...FAST, reward: 0.3 },
      { ...SLOW, reward: 0.8 },
    ],
  },
  {
    name: "fast is best",
    actions: [
      { ...FAST, reward: 0.8 },
      { ...SLOW, reward: 0.3 },
    ],
  },
  {
    name: "tied",
    actions: [
      { ...FAST, reward: 0.5 },
      { ...SLOW, reward: 0.5 },
    ],
  },
];
const SLOW_INDEX = 1;
const COLLECTIONS: Record<string, Collection> = {
  "rate-biased": { kind: "RateBiased", oversampling: 1 },
  WaitAll: { kind: "WaitAll", oversampling: 1 },
  "CarryOver m=1.5": { kind: "CarryOver", oversampling: 1.5 },
  "Discard m=1.5": { kind: "Discard", oversampling: 1.5 },
  "Discard m=2": { kind: "Discard", oversampling: 2 },
};
const WEIGHTINGS: Weighting[] = ["Off", "Paper", "Capped", "Completion"];
const ADVANTAGES: Record<Advantage, string> = {
  Raw: "reward",
  Plain: "baseline, whitened",
};
/** With the starting policy, half of the launched executions are fast and fill the batch. */
const NO_SLOW_ONE = "Discard m=2";
/** A smaller difference in expected reward counts as none: the worlds' actions differ by 0.5. */
const MATTERS = 0.01;

interface Row {
  world: string;
  collection: string;
  advantage: Advantage;
  weighting: Weighting;
  /** Probability of the slow action at the end: for each seed, and by integration. */
  slow: number[];
  slowExpected: number;
  reward: number[];
  firstShare: number;
  firstShareExpected: number;
  seconds?: number;
}

interface Verdict {
  row: Row;
  off: Row;
  /** Expected reward of the final policy with eq. 3 less without, paired by seed. */
  gain: Interval;
  verdict: "harms" | "helps" | "does nothing" | "drifts";
}

export const e0: Experiment = {
  question: "When is eq. 3 right, useless, harmful?",
  async run(flags) {
    const { values } = parseArgs({ args: flags, options: { seeds: { type: "string", default: "10" } } });
    const seeds = Number(values.seeds);
    if (!Number.isInteger(seeds) || seeds < LEAST_SEEDS)
      throw new Error(`--seeds is ${values.seeds}: give a whole number from ${LEAST_SEEDS}`);
    return findings(rows(seeds), seeds);
  },
};

function rows(seeds: number): Row[] {
  const last = ({ policy }: Course) => policy.at(-1)!;
  return WORLDS.flatMap((world) =>
    Object.entries(COLLECTIONS).flatMap(([name, collection]) =>
      (Object.keys(ADVANTAGES) as Advantage[]).flatMap((advantage) =>
        WEIGHTINGS.map((weighting): Row => {
          const cell: Cell = { world, collection, weighting, advantage };
          const courses = Array.from({ length: seeds }, (_, seed) => simulate(cell, seed));
          const limit = expected(cell);
          return {
            ...{ world: world.name, collection: name, advantage, weighting },
            slow: courses.map((course) => last(course)[SLOW_INDEX]!),
            slowExpected: last(limit)[SLOW_INDEX]!,
            reward: courses.map((course) => expectedReward(last(course), world)),
            firstShare: mean(courses.map(({ firstShares }) => firstShares[SLOW_INDEX]!)),
            firstShareExpected: limit.firstShares[SLOW_INDEX]!,
            ...(collection.kind !== "RateBiased" && { seconds: mean(courses.map(({ seconds }) => seconds!)) }),
          };
        }),
      ),
    ),
  );
}

interface Interval {
  mean: number;
  low: number;
  high: number;
}

/** Interval of the mean, or, for paired differences between arms, of the mean difference. */
function interval(values: readonly number[]): Interval {
  const { mean: middle, interval: ends } = estimate(values);
  return { mean: middle, low: ends![0], high: ends![1] };
}

/** Compares eq. 3 with no weights, everything else equal. */
function verdicts(all: Row[]): Verdict[] {
  const same = (a: Row, b: Row) => a.world === b.world && a.collection === b.collection && a.advantage === b.advantage;
  return all
    .filter(({ weighting }) => weighting === "Paper")
    .map((row) => {
      const off = all.find((other) => other.weighting === "Off" && same(row, other))!;
      const gain = interval(row.reward.map((value, seed) => value - off.reward[seed]!));
      const drift = interval(row.slow.map((value, seed) => value - off.slow[seed]!));
      const verdict =
        gain.low > MATTERS
          ? "helps"
          : gain.high < -MATTERS
            ? "harms"
            : row.world === "tied" && (drift.low > 0.05 || drift.high < -0.05)
              ? "drifts"
              : "does nothing";
      return { row, off, gain, verdict };
    });
}

const ORDER: Verdict["verdict"][] = ["harms", "drifts", "does nothing", "helps"];

function findings(all: Row[], seeds: number): Findings {
  const judged = verdicts(all).sort((a, b) => ORDER.indexOf(a.verdict) - ORDER.indexOf(b.verdict));
  const f = (value: number) => value.toFixed(2);
  const table = judged.map(({ row, off, gain, verdict }) =>
    [
      ...[verdict, row.world, row.collection, ADVANTAGES[row.advantage]],
      ...[f(row.firstShare), f(off.slowExpected), f(mean(off.slow)), f(row.slowExpected), f(mean(row.slow))],
      `${f(gain.mean)} [${f(gain.low)}, ${f(gain.high)}]`,
    ].join(" | "),
  );
  const apart = (list: Row[]) => Math.max(...list.map((row) => Math.abs(mean(row.slow) - row.slowExpected)));
  const none = all.filter(({ collection }) => collection === NO_SLOW_ONE);
  const others = all.filter(({ collection }) => collection !== NO_SLOW_ONE);
  const completion = all
    .filter(({ weighting }) => weighting === "Completion")
    .map((row) =>
      Math.abs(
        mean(row.slow) -
          mean(
            all.find(
              (off) =>
                off.weighting === "Off" &&
                off.world === row.world &&
                off.collection === row.collection &&
                off.advantage === row.advantage,
            )!.slow,
          ),
      ),
    );
  const count = (verdict: Verdict["verdict"]) => judged.filter((it) => it.verdict === verdict).length;
  const page = [
    "# E0: when is eq. 3 right, useless, harmful?",
    "",
    `Two actions, fast (median 1 s) and slow (10 s), log-normal durations (spread ${DURATION_SPREAD}), normal rewards (spread ${REWARD_SPREAD});`,
    `a softmax policy starts at one half and takes ${UPDATES} updates of ${BATCH} samples with learning rate ${LEARNING_RATE}; ${seeds} seeds, shared by all arms.`,
    `"limit" is an infinitely large batch, by integration; "simulated" is the mean over seeds with the learner's own weights and whitening.`,
    `Gain: expected reward of the final policy with eq. 3, less the expected reward without weights; bootstrap 95 % over paired seeds.`,
    `${judged.length} comparisons, none corrected for their number: harms ${count("harms")}, drifts between equal actions ${count("drifts")}, does nothing ${count("does nothing")} (within ${MATTERS}), helps ${count("helps")}.`,
    "",
    "| eq. 3 | world | collection | advantage | slow share of the first batch | slow at the end, off: limit | simulated | eq. 3: limit | simulated | gain |",
    "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |",
    ...table.map((line) => `| ${line} |`),
    "",
    `Limit and simulation differ by at most ${f(apart(others))} in the slow action's final probability, except with ${NO_SLOW_ONE} (${f(apart(none))}): there the limit`,
    "has no slow sample and does not change, while a drawn batch has a slow sample now and then.",
    `With \`Completion\` the final probability is everywhere within ${f(Math.max(...completion))} of the one without weights: nothing is cut off, or everything at one moment, so there is nothing to estimate.`,
    "",
  ].join("\n");
  return {
    page,
    plots: [plot(all)],
    raw: {
      seeds,
      rows: all,
      verdicts: judged.map(({ row, gain, verdict }) => ({
        world: row.world,
        collection: row.collection,
        advantage: row.advantage,
        gain,
        verdict,
      })),
    },
  };
}

const COLORS: Record<Weighting, string> = {
  Off: color("grey"),
  Paper: color("orange"),
  Capped: color("blue"),
  Completion: color("green"),
};

/** Plots the final policies for each world (rows) and kind of advantage (columns). */
function plot(all: Row[]): Findings["plots"][number] {
  const values = all.flatMap((row) =>
    row.slow.map((slow) => ({
      ...{ world: row.world, collection: row.collection, weighting: row.weighting },
      ...{ advantage: ADVANTAGES[row.advantage], slow, limit: row.slowExpected },
    })),
  );
  const x = {
    field: "collection",
    type: "nominal" as const,
    sort: Object.keys(COLLECTIONS),
    title: null,
    axis: { labelAngle: -30 },
  };
  const offset = { field: "weighting", type: "nominal" as const, sort: WEIGHTINGS };
  const y = (field: string) => ({
    field,
    type: "quantitative" as const,
    title: "P(slow) at the end",
    scale: { domain: [0, 1] },
  });
  return {
    name: "E0",
    description: "Final probability of the slow action by world, collection, weighting and kind of advantage",
    spec: {
      $schema: "https://vega.github.io/schema/vega-lite/v6.json",
      data: { values },
      facet: {
        row: { field: "world", type: "nominal", sort: WORLDS.map(({ name }) => name), title: null },
        column: { field: "advantage", type: "nominal", sort: Object.values(ADVANTAGES), title: null },
      },
      spec: {
        width: 300,
        height: 150,
        layer: [
          {
            mark: { type: "tick", thickness: 2, size: 11, color: "var(--ink)", orient: "horizontal" },
            encoding: { x, xOffset: offset, y: { ...y("limit"), aggregate: "mean" } },
          },
          {
            mark: { type: "circle", size: 18, opacity: 0.6 },
            encoding: {
              x,
              xOffset: offset,
              y: y("slow"),
              color: {
                field: "weighting",
                type: "nominal",
                scale: { domain: WEIGHTINGS, range: WEIGHTINGS.map((each) => COLORS[each]) },
                legend: { disable: false, title: "durationWeighting", orient: "top" },
              },
            },
          },
        ],
      },
      // biome-ignore lint/suspicious/noExplicitAny: vega-lite's facet types do not take optional encodings
    } as any,
  };
}
