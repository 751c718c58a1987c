import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { mleBenchTask, mleBenchTasks } from "./mlebench-tasks.ts";
import { type RewardRules, rewardOf } from "./reward.ts";
import {
  defaultMedalRewards,
  describeKind,
  earnedReward,
  type KindRules,
  noStanding,
  rewardKindFault,
  type Standing,
  withThresholds,
} from "./reward-kinds.ts";

const range = { worst: 1100, best: 100 };
const medals = { gold: 280, silver: 300, bronze: 340, median: 700 };
const lower = { direction: "Lower", rewardRange: range } as const;
const medal: KindRules = { ...lower, reward: "Medal", medals };
const rank: KindRules = { ...lower, reward: "Rank" };
const gain: KindRules = { ...lower, reward: "Improvement" };
const higher = { direction: "Higher", rewardRange: { worst: 0.5, best: 1 } } as const;
const after = (earlierScores: number[], parentScore?: number): Standing => ({ earlierScores, parentScore });

const cases: [name: string, score: number, rules: KindRules, standing: Standing, expected: number][] = [
  ["without a kind: the range", 600, lower, noStanding, 0.5],
  ["Score", 600, { ...lower, reward: "Score" }, noStanding, 0.5],
  ["gold at its threshold", 280, medal, noStanding, 1],
  ["silver", 280.00001, medal, noStanding, 0.75],
  ["bronze at its threshold", 340, medal, noStanding, 0.5],
  ["above the median", 699.9, medal, noStanding, 0.25],
  ["the median is not above itself", 700, medal, noStanding, 0],
  ["no median is known", 699.9, { ...medal, medals: { gold: 280, silver: 300, bronze: 340 } }, noStanding, 0],
  ["steps of the manifest", 300, { ...medal, medalRewards: { ...defaultMedalRewards, silver: 0.9 } }, noStanding, 0.9],
  [
    "gold, higher is better",
    0.9,
    { ...higher, reward: "Medal", medals: { gold: 0.9, silver: 0.8, bronze: 0.7 } },
    noStanding,
    1,
  ],
  [
    "no medal, higher is better",
    0.69,
    { ...higher, reward: "Medal", medals: { gold: 0.9, silver: 0.8, bronze: 0.7 } },
    noStanding,
    0,
  ],
  ["the first program ranks in the middle", 600, rank, noStanding, 0.5],
  ["better than all four", 1, rank, after([5, 6, 7, 8]), 0.9],
  ["worse than all four", 9, rank, after([5, 6, 7, 8]), 0.1],
  ["equal to all four", 5, rank, after([5, 5, 5, 5]), 0.5],
  ["two worse, one equal, one better", 6, rank, after([7, 5, 6, 8]), 0.6],
  ["higher is better", 6, { ...higher, reward: "Rank" }, after([7, 5, 6, 8]), 0.4],
  ["better than its parent", 500, gain, after([], 600), 0.1],
  ["worse than its parent", 700, gain, after([], 600), -0.1],
  ["a parent with the score 0", 100, gain, after([], 0), -0.1],
  ["a draft: over the range's worst", 600, gain, noStanding, 0.5],
  ["higher than its parent", 0.8, { ...higher, reward: "Improvement" }, after([], 0.75), 0.1],
];
for (const [name, score, rules, standing, expected] of cases)
  test(`the reward of a valid score: ${name}`, () => {
    assert.ok(
      Math.abs(earnedReward(score, rules, standing) - expected) < 1e-9,
      String(earnedReward(score, rules, standing)),
    );
  });

const valid = (score: number, guards: "perfect"[] = []) => ({
  outcome: "completed" as const,
  ...{ exitStatus: 0, insertedMarkers: [], seenMarkers: [], forgedMarkers: 0 },
  graded: { valid: true, score, reason: { code: "valid" as const, message: "valid" }, guards },
});
const constants = { failureReward: -10, markerReward: 0.1 };
/** What a program without a valid submission can earn at most: all seven markers. */
const mostInvalid = -9.3;
const anyScore = fc.double({ noNaN: true, noDefaultInfinity: true });

test("of every kind, every valid reward is above every invalid one, and the cap of guards holds", () => {
  const kinds = fc.constantFrom(...[medal, rank, gain], {
    ...medal,
    medalRewards: { gold: -50, silver: -60, bronze: -70, median: -80, none: -90 },
  });
  fc.assert(
    fc.property(
      kinds,
      anyScore,
      fc.option(anyScore, { nil: undefined }),
      fc.array(anyScore),
      (kind, score, parent, earlier) => {
        const rules: RewardRules = { ...kind, rewardFloor: -9, guardedRewardCap: 0.1 };
        const [honest, flagged] = [valid(score), valid(score, ["perfect"])].map(
          (facts) => rewardOf(facts, constants, rules, after(earlier, parent))!,
        );
        assert.ok(Number.isFinite(honest!.reward) && honest!.reward > mostInvalid);
        assert.ok(flagged!.reward > mostInvalid && flagged!.reward <= 0.1);
        assert.equal(flagged!.capped, honest!.reward > 0.1);
      },
    ),
  );
});

test("a better score never earns less, and a rank lies between 0 and 1", () => {
  fc.assert(
    fc.property(fc.constantFrom(medal, rank, gain), anyScore, anyScore, fc.array(anyScore), (kind, a, b, earlier) => {
      const [best, worst] = [Math.min(a, b), Math.max(a, b)].map((score) =>
        earnedReward(score, kind, after(earlier, 400)),
      );
      assert.ok(best! >= worst!);
      if (kind === rank) assert.ok(best! < 1 && worst! > 0);
    }),
  );
});

test("MLE-bench's tasks have the medals of their leaderboards, and a range from its median to its gold", () => {
  for (const { direction, leaderboard } of Object.values(mleBenchTasks())) {
    const of = (reward: "Medal" | "Improvement") => withThresholds<KindRules>({ direction, reward }, leaderboard);
    const { gold, silver, bronze, median } = leaderboard;
    assert.deepEqual(
      [gold, silver, bronze].map((score) => earnedReward(score, of("Medal"), noStanding)),
      [1, silver === gold ? 1 : 0.75, bronze === silver ? 0.75 : 0.5],
    );
    assert.equal(rewardKindFault(of("Medal")), undefined);
    assert.equal(earnedReward(gold, of("Improvement"), noStanding), 1);
    assert.equal(Math.abs(earnedReward(median, of("Improvement"), after([], median))), 0);
    assert.equal(rewardKindFault(of("Improvement")), undefined);
  }
  const { leaderboard } = mleBenchTask("random-acts-of-pizza")!;
  const own = withThresholds({ ...higher, reward: "Medal", medals }, leaderboard);
  assert.equal(own.medals, medals, "the manifest's take precedence");
});

const faults: [name: string, rules: KindRules, message: RegExp | undefined][] = [
  ["Score", { direction: "Lower" }, undefined],
  ["Rank needs nothing", { direction: "Lower", reward: "Rank" }, undefined],
  [
    "no range",
    { direction: "Lower", reward: "Improvement" },
    /in units of grader\.rewardRange, and the task has none; give one/,
  ],
  [
    "no medals",
    { direction: "Lower", reward: "Medal" },
    /which longrun knows of MLE-bench's tasks alone; give tasks\[\]\.medals/,
  ],
  ["medals", medal, undefined],
  [
    "the wrong way round",
    { ...medal, direction: "Higher" },
    /are 280, 300, 340, 700, but higher scores are better; put them in order, gold best/,
  ],
  ["silver above gold", { ...medal, medals: { gold: 300, silver: 280, bronze: 340 } }, /but lower scores are better/],
  ["a median above bronze", { ...medal, medals: { ...medals, median: 339 } }, /put them in order/],
  ["equal thresholds", { ...medal, medals: { gold: 1, silver: 1, bronze: 1, median: 1 } }, undefined],
  [
    "steps that fall",
    { ...medal, medalRewards: { ...defaultMedalRewards, gold: 0.7 } },
    /gold, silver, bronze, median and none earn 0\.7, 0\.75, 0\.5, 0\.25, 0; give no step less than a worse one/,
  ],
];
for (const [name, rules, message] of faults)
  test(`rules that cannot give the reward are named: ${name}`, () => {
    const fault = rewardKindFault(rules);
    if (message === undefined) assert.equal(fault, undefined);
    else assert.match(fault!, message);
  });

test("a line says what scores earn", () => {
  assert.deepEqual([{ ...lower }, medal, rank, gain].map(describeKind), [
    "score 1100 earns 0, score 100 earns 1",
    "gold (280) 1, silver (300) 0.75, bronze (340) 0.5, above the median (700) 0.25, else 0",
    "share of the run's earlier valid programs that the program beats",
    "gain over the parent's score, of drafts over 1100; 1000 earns 1",
  ]);
});
