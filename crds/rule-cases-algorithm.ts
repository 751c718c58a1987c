/** Cases of the rules for the algorithm, the evaluation and the end of training. */
import { CUSTOM, GRADER, type RuleCase } from "./rule-case.ts";

export const ALGORITHM_CASES: RuleCase[] = [
  {
    at: "spec",
    message: "algorithm.miniBatchSize must divide",
    refused: ["algorithm.batchSize=200"],
    accepted: ["algorithm.batchSize=256"],
  },
  {
    at: "spec",
    message: "algorithm.microBatchSize is at most",
    refused: ["algorithm.microBatchSize=129"],
    accepted: ["algorithm.microBatchSize=128"],
  },
  {
    at: "spec",
    message: "learner.compute TF32 and BFloat16 need a GPU",
    refused: ["learner.compute=BFloat16", "learner.compute=TF32"],
    accepted: ["BFloat16", "TF32"].map(
      (compute) => `learner={compute: ${compute}, device: CUDA, resources: {limits: {nvidia.com/gpu: 1}}}`,
    ),
  },
  {
    at: "spec",
    message: "algorithm.zeroSignal Resample compares the samples of a prompt",
    refused: ["algorithm.zeroSignal=Resample"],
    accepted: ["algorithm={zeroSignal: Resample, baseline: GRPO}"],
  },
  ...(["noCodeBlock", "unclosedCodeBlock", "syntaxError", "importError", "failed"] as const).map((step) => ({
    at: "spec",
    message: "a failed program with all markers must earn less than any valid one: keep each of",
    refused: [`tasks[0].failureRewards={${step}: -9.7}`],
    accepted: [`tasks[0].failureRewards={${step}: -9.75}`],
  })),
  ...(["noSubmission", "invalidSubmission"] as const).map((step) => ({
    at: "spec",
    message: "a failed program with all markers must earn less than any valid one: keep each of",
    refused: [`tasks=[{name: diamonds, failureRewards: {${step}: -2}, grader: {${GRADER}, rewardFloor: -1.3}}]`],
    accepted: [`tasks=[{name: diamonds, failureRewards: {${step}: -2.1}, grader: {${GRADER}, rewardFloor: -1.3}}]`],
  })),
  {
    at: "spec",
    message: "a failed program with all markers must earn less than any valid one: keep algorithm",
    refused: ["algorithm.markerReward=0.15"],
    accepted: ["algorithm.markerReward=0.14"],
  },
  {
    at: "spec",
    message: "a failed program with all markers must earn less than any valid one: keep algorithm",
    refused: [CUSTOM, "algorithm.markerReward=0.125", "tasks[0].grader.rewardFloor=-9.125"], // as much as the worst valid one
    accepted: [CUSTOM, "tasks[0].grader.rewardFloor=-9.25"],
  },
  {
    at: "spec",
    message: "criticWarmupIterations needs baseline Critic",
    refused: ["algorithm.baseline=BatchMean", "algorithm.criticWarmupIterations=1"],
    accepted: ["algorithm.baseline=Critic", "algorithm.criticWarmupIterations=1"],
  },
  ...["BatchMean", "GRPO", "RLOO"].map((baseline) => ({
    at: "spec",
    message: "lambda needs baseline Critic",
    refused: [`algorithm={baseline: ${baseline}, lambda: 0.95}`],
    accepted: ["algorithm={baseline: Critic, lambda: 0.95}"],
  })),
  ...["GRPO", "RLOO"].flatMap((baseline) => [
    {
      at: "spec",
      message: "baselines GRPO and RLOO compare whole samples",
      refused: [`algorithm={baseline: ${baseline}, gamma: 0.99}`],
      accepted: ["algorithm={baseline: BatchMean, gamma: 0.99}"],
    },
    {
      at: "spec",
      message: "a batch of baseline GRPO or RLOO holds whole groups",
      refused: [`algorithm={baseline: ${baseline}, groupSize: 12}`],
      accepted: [`algorithm={baseline: ${baseline}, groupSize: 16}`],
    },
    {
      at: "spec",
      message: "the samples of a group are generated together",
      refused: [`algorithm={baseline: ${baseline}, groupSize: 64}`, "model.generationBatchSize=63"],
      accepted: [`algorithm={baseline: ${baseline}, groupSize: 64}`, "model.generationBatchSize=64"],
    },
  ]),
  ...["Critic", "BatchMean", "RLOO"].map((baseline) => ({
    at: "spec",
    message: "scaleByGroupStd belongs to baseline GRPO",
    refused: [`algorithm={baseline: ${baseline}, scaleByGroupStd: false}`],
    accepted: ["algorithm={baseline: GRPO, scaleByGroupStd: false}"],
  })),
  ...["algorithm={baseline: GRPO, klPlacement: Reward, scaleByGroupStd: false}", "algorithm={baseline: GRPO}"].map(
    (accepted) => ({
      at: "spec",
      message: "in a group of equal rewards scaleByGroupStd would blow up",
      refused: ["algorithm={baseline: GRPO, klPlacement: Reward}"],
      accepted: [accepted],
    }),
  ),
  {
    at: "spec",
    message: "in a group of equal rewards scaleByGroupStd would blow up",
    refused: ["algorithm={baseline: GRPO, klPlacement: Reward}"],
    accepted: ["algorithm={baseline: GRPO, klPlacement: Reward, klCoefficient: 0}"],
  },
  ...[
    ["baseline: RLOO", "baseline: RLOO, whitening: Plain"],
    ["baseline: RLOO, whitening: 'Off'", "baseline: Critic"],
    ["baseline: GRPO, scaleByGroupStd: false", "baseline: GRPO"],
    ["baseline: Critic, whitening: 'Off'", "baseline: Critic"],
    ["baseline: BatchMean, whitening: 'Off'", "baseline: BatchMean"],
  ].map(([refused, accepted]) => ({
    at: "spec",
    message: "validScoreWeight counts standard deviations",
    refused: [`algorithm={validScoreWeight: 0.5, ${refused}}`],
    accepted: [`algorithm={validScoreWeight: 0.5, ${accepted}}`],
  })),
  {
    at: "spec",
    message: "the buffer lies below the longest response",
    refused: ["algorithm.overlongPenalty={bufferTokens: 65}", "model.maxResponseTokens=64"],
    accepted: ["algorithm.overlongPenalty={bufferTokens: 64}", "model.maxResponseTokens=64"],
  },
  {
    at: "spec",
    message: "the policy would never be trained",
    refused: ["algorithm.criticWarmupIterations=2", "stopping.iterations=2"],
    accepted: ["algorithm.criticWarmupIterations=1", "stopping.iterations=2"],
  },
  ...[
    ["warmupIterations: 100", "warmupIterations: 99"],
    [
      "type: Linear, warmupIterations: 10, decayIterations: 10",
      "type: Linear, warmupIterations: 10, decayIterations: 11",
    ],
  ].map(([refused, accepted]) => ({
    at: "spec",
    message: "the learning rate would never be reached",
    refused: [`algorithm.learningRateSchedule={${refused}}`],
    accepted: [`algorithm.learningRateSchedule={${accepted}}`],
  })),
  {
    at: "spec",
    message: "the learning rate would never be reached",
    refused: ["algorithm={learningRateSchedule: {warmupIterations: 60}, criticWarmupIterations: 40}"],
    accepted: ["algorithm={learningRateSchedule: {warmupIterations: 60}, criticWarmupIterations: 39}"],
  },
  {
    at: "spec",
    message: "the learning rate would never be reached",
    refused: ["algorithm={learningRateSchedule: {type: Linear, decayIterations: 5}, criticWarmupIterations: 5}"],
    accepted: ["algorithm={learningRateSchedule: {type: Linear, decayIterations: 5}, criticWarmupIterations: 4}"],
  },
  ...["minimumRatio: 0.1", "decayIterations: 50"].map((decay) => ({
    at: "spec.algorithm.learningRateSchedule",
    message: "minimumRatio and decayIterations belong to a decay",
    refused: [`algorithm.learningRateSchedule={${decay}}`],
    accepted: [`algorithm.learningRateSchedule={type: Cosine, ${decay}}`],
  })),
  ...["0.5", "1"].map((dualClip) => ({
    at: "spec.algorithm.dualClip",
    message: "algorithm.dualClip is 0 (off) or above 1",
    refused: [`algorithm.dualClip=${dualClip}`],
    accepted: ["algorithm.dualClip=1.01"],
  })),
  {
    at: "spec",
    message: "convergence could never be seen",
    refused: ["stopping={iterations: 10, convergence: {window: 11, tolerance: 0}}"],
    accepted: ["stopping={iterations: 10, convergence: {window: 10, tolerance: 0}}"],
  },
  {
    at: "spec",
    message: "evaluation.protocol Equal divides evaluation.samples",
    refused: ["evaluation={protocol: Equal, improve: false}"],
    accepted: ["evaluation={protocol: Paper, improve: false}"],
  },
  {
    at: "spec",
    message: "evaluation.protocol Equal divides evaluation.samples",
    refused: ["evaluation.protocol=Equal", "prompts.improveProbability=0"],
    accepted: ["evaluation={protocol: Equal, improve: true}", "prompts.improveProbability=0"],
  },
  {
    at: "spec",
    message: "evaluation.protocol Equal gives each kind of prompt half of evaluation.samples",
    refused: ["evaluation={protocol: Equal, samples: 7}"],
    accepted: ["evaluation={protocol: Equal, samples: 8}"],
  },
];
