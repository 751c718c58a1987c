/**
 * Tests whether a device computes the same as the CPU in float32: log-probs, both steps and their changes, and generation.
 *
 * The batch has a prompt of the greatest length, as improve prompts have, prompts of mixed lengths, and shared prompts. Many tokens end a
 * response, so rows end at different times.
 */

import type { ComputeFormat, GenerateOptions, RunningEngine } from "../../../learner/engine/engine.ts";
import { startEngine } from "../../../learner/engine/engine.ts";
import type { Response } from "../../../learner/engine/index.ts";
import type { ModelConfig } from "../../../learner/engine/model/config.ts";
import { uniforms } from "../../../learner/engine/model/random.ts";
import { writeRandomModel } from "../random-model.ts";
import type { Goal } from "../result.ts";
import { type Finding, findingsOf, type PartOptions } from "./part.ts";
import { advantageOf, filled, formatsOf, MODELS, returnOf, type Sample, STEP, TRAINED, type Trained } from "./work.ts";

/**
 * Largest differences from the CPU: in nats at temperature 1 for log-probs and entropies, relative for everything else. Products have 24, 8
 * and 11 bits. In bfloat16 PyTorch's log-probs of this model differ from float32's by 5e-3 (autocast on a CPU, the head in float32, 4
 * layers, 23 November 2026): the bound for bfloat16 is six times that, and the bound for TF32 an eighth of it.
 */
export const TOLERANCE: Record<ComputeFormat, number> = { float32: 1e-3, bfloat16: 3e-2, tf32: 4e-3 };
/**
 * Largest difference of log-probs after a step, as a share of the step's change: Adam's first step moves each weight by its gradient's
 * sign, which rounding turns for the smallest gradients. PyTorch in bfloat16 differs from its float32 by 6.4 % (this model, every weight,
 * autocast on a CPU, 26 November 2026); an eighth for TF32.
 */
const MOVED_SHARE: Record<ComputeFormat, number> = { float32: 1e-3, bfloat16: 0.1, tf32: 0.0125 };
/** Relative differences of losses divide by at least this, because a loss can be near 0. */
const LEAST_LOSS = 0.1;

/** A CPU gives the same bits if tensors stay on the device, except for the gradient's norm, which is summed in another order. */
const CPU_TOLERANCE = { bits: 0, norm: 1e-12 };

/** So low that few tokens are likely: the weights are random, and a sum over 151,936 equally likely tokens would be all rounding. */
const TEMPERATURE = 0.1;
const SAMPLINGS: Record<string, Pick<GenerateOptions, "temperature" | "topP">> = {
  greedy: { temperature: 0, topP: 1 },
  "top-p": { temperature: TEMPERATURE, topP: 0.9 },
  "all tokens": { temperature: TEMPERATURE, topP: 1 },
};
/** Ratios of the policy step: inside the clip's interval and far outside. */
const LOG_RATIOS = [-0.5, -0.1, 0.1, 0.5];
/** Adapters start at 0 and change log-probs less. */
const LEARNING_RATE: Record<Trained, number> = { lora: 1e-3, all: 1e-4 };

/** Lengths of [prompt, response]; prompts of equal length are the same prompt. */
interface Work {
  config: ModelConfig;
  lengths: [prompt: number, response: number][];
  newTokens: number;
  /** One in `ends` tokens of the vocabulary ends a response. */
  ends: number;
}

/** Qwen2.5-0.5B's sizes and vocabulary, with few layers, because the CPU must not need minutes. */
const WORK: Work = {
  config: { ...MODELS["0.5b"], layers: 4 },
  lengths: [
    ...([
      [1024, 64],
      [1024, 100],
      [200, 33],
      [300, 16],
      [64, 1],
      [64, 64],
      [9, 100],
      [1, 7],
    ] as [number, number][]),
  ],
  ...{ newTokens: 32, ends: 12 },
};
const SMALL_WORK: Work = {
  config: MODELS.quickstart,
  lengths: [
    [64, 16],
    [64, 9],
    [40, 20],
    [8, 1],
    [8, 12],
    [1, 5],
  ],
  ...{ newTokens: 20, ends: 8 },
};

/** Results of one side. */
interface Computed {
  logProbs: Float32Array[];
  entropies: Float32Array[];
  generated: Record<string, Response[]>;
  critic: { loss: number; gradientNorm: number };
  policy: { loss: number; gradientNorm: number };
  after: { logProbs: Float32Array[]; values: Float32Array[] };
}

export async function* parity({ device, small, folder }: PartOptions): AsyncGenerator<Finding> {
  const work = small ? SMALL_WORK : WORK;
  const eosIds = Array.from({ length: Math.floor(work.config.vocabSize / work.ends) }, (_, i) => work.ends * i + 5);
  writeRandomModel(folder, work.config, "BF16", eosIds);
  const batch = samplesOf(work);
  const { layers, vocabSize } = work.config;
  const lengths = work.lengths.map((pair) => pair.join("+")).join(", ");
  yield { notes: [`${layers} layers, ${vocabSize} tokens; sequences of ${lengths} tokens; the CPU in float32`] };
  const exact = device.kind === "cpu";
  for (const trained of Object.keys(TRAINED) as Trained[]) {
    const longest = Math.max(...work.lengths.map(([prompt, response]) => prompt + response));
    const shared = {
      ...{ model: folder, threads: 0, workers: 1, ...TRAINED[trained].engine },
      ...{ microBatchTokens: 2 * longest, rowTokens: longest, activationCheckpointing: "Never" as const },
    };
    const cpu = await startEngine({ ...shared, device: { kind: "cpu" } });
    const expected = await compute(cpu, trained, work, batch);
    for (const format of formatsOf(device))
      yield* findingsOf(`${TRAINED[trained].name}, ${format}: parity`, async function* () {
        const engine = await startEngine({ ...shared, device, resident: true, compute: format });
        try {
          const found = await compute(engine, trained, work, batch, expected.logProbs);
          yield await comparison(cpu, expected, found, { batch, vocabulary: vocabSize, trained, format, exact });
        } finally {
          await engine.close();
        }
      });
    await cpu.close();
  }
}

function samplesOf({ config, lengths }: Work): Sample[] {
  const next = uniforms(3, "parity");
  const draw = (length: number) => Int32Array.from({ length }, () => Math.floor(config.vocabSize * next()));
  const prompts = new Map(lengths.map(([prompt]) => [prompt, draw(prompt)]));
  return lengths.map(([prompt, response]) => ({ prompt: prompts.get(prompt)!, response: draw(response) }));
}

/** @param proximal log-probs before the update for both sides; default: computed here */
async function compute(
  engine: RunningEngine,
  trained: Trained,
  { newTokens }: Work,
  batch: Sample[],
  proximal?: Float32Array[],
): Promise<Computed> {
  const prompts = batch.map(({ prompt }) => prompt);
  const generated: Computed["generated"] = {};
  for (const [name, sampling] of Object.entries(SAMPLINGS))
    generated[name] = await engine.generate(prompts, {
      ...{ ...sampling, maxNewTokens: newTokens, seeds: prompts.map((_, i) => i) },
    });
  const evaluated = await engine.evaluate(batch, { temperature: 1, values: false });
  const logProbs = evaluated.map((sample) => sample.logProbs);
  const step = { ...STEP, learningRate: LEARNING_RATE[trained], entropyCoefficient: 0.01, microBatchSize: 4 };
  const critic = await engine.updateCritic(
    batch.map((sample, i) => ({
      ...sample,
      oldValues: filled(sample.response.length, 0),
      returns: filled(sample.response.length, returnOf(i)),
    })),
    { ...step, valueClip: 0.2 },
  );
  const policy = await engine.updatePolicy(
    batch.map((sample, i) => ({
      ...{ ...sample, advantages: filled(sample.response.length, advantageOf(i)), weight: 1 },
      importance: filled(sample.response.length, 1),
      proximalLogProbs: (proximal ?? logProbs)[i]!.map((value, t) => value - LOG_RATIOS[t % LOG_RATIOS.length]!),
    })),
    step,
  );
  const after = await engine.evaluate(batch, { temperature: 1, values: true });
  return {
    ...{ logProbs, entropies: evaluated.map((sample) => sample.entropies), generated, critic, policy },
    after: { logProbs: after.map((sample) => sample.logProbs), values: after.map((sample) => sample.values) },
  };
}

interface Case {
  batch: Sample[];
  /** Number of tokens. */
  vocabulary: number;
  trained: Trained;
  format: ComputeFormat;
  /** Both sides are the CPU, which gives the same bits. */
  exact: boolean;
}

async function comparison(
  cpu: RunningEngine,
  expected: Computed,
  found: Computed,
  { batch, vocabulary, trained, format, exact }: Case,
): Promise<Finding> {
  const name = `${TRAINED[trained].name}, ${format}`;
  const tolerance = TOLERANCE[format];
  const generates = exact ? tolerance : TOLERANCE.bfloat16; // independent of training's format
  const goals: Goal[] = [];
  const within = (what: string, measured: number, bound = exact ? CPU_TOLERANCE.bits : tolerance) =>
    goals.push({
      what: `${name}: ${what}`,
      goal: `<= ${Number(bound.toPrecision(2))}`,
      measured: measured.toExponential(1),
      met: measured <= bound,
    });
  within("log-probs", largest(expected.logProbs, found.logProbs));
  within("entropies", largest(expected.entropies, found.entropies));
  for (const model of ["critic", "policy"] as const) {
    const [own, other] = [expected[model], found[model]];
    within(`${model} step, loss, relative`, Math.abs(own.loss - other.loss) / Math.max(LEAST_LOSS, Math.abs(own.loss)));
    const norms = Math.abs(own.gradientNorm - other.gradientNorm) / own.gradientNorm;
    within(`${model} step, gradient norm, relative`, norms, exact ? CPU_TOLERANCE.norm : tolerance);
  }
  const moved = largest(expected.logProbs, expected.after.logProbs);
  within(
    `log-probs after it (moved by ${moved.toExponential(1)})`,
    largest(expected.after.logProbs, found.after.logProbs),
    exact ? CPU_TOLERANCE.bits : Math.max(tolerance, MOVED_SHARE[format] * moved),
  );
  const movedValues = Math.max(...expected.after.values.flatMap((values) => [...values.map(Math.abs)]));
  const values = largest(expected.after.values, found.after.values) / movedValues;
  within(`values after it, relative (moved by ${movedValues.toExponential(1)})`, values);
  const tokens: Record<string, string> = {};
  for (const [sampling, { temperature }] of Object.entries(SAMPLINGS)) {
    const [own, other] = [expected.generated[sampling]!, found.generated[sampling]!];
    const inside = (token: number) => token >= 0 && token < vocabulary;
    const outside = other.reduce((count, { response }) => count + response.filter((token) => !inside(token)).length, 0);
    if (outside > 0) within(`${sampling}: tokens that are not in the vocabulary`, outside, 0);
    const responses = batch.map(({ prompt }, i) => ({
      ...{ prompt, response: other[i]!.response.map((token) => (inside(token) ? token : 0)) },
    }));
    // the reference has the weights from before the steps
    const known = await cpu.evaluate(responses, { temperature: temperature || 1, values: false });
    const onCpu = known.map(({ referenceLogProbs }) => referenceLogProbs);
    const generatedLogProbs = largest(
      other.map(({ logProbs }) => logProbs),
      onCpu,
    );
    // the temperature divides logits, and so their differences
    const bound = generates / (temperature || 1);
    within(`${sampling}: log-probs of the tokens that it took`, generatedLogProbs, bound);
    const first = firstDifferences(own, other);
    tokens[sampling] = differencesText(first, own.length);
    if (exact && sampling !== "greedy")
      goals.push({
        ...{ what: `${name}: ${sampling}: tokens`, goal: "the same" },
        ...{ measured: tokens[sampling], met: first.every((at) => at === undefined) },
      });
    if (sampling !== "greedy") continue;
    // if the CPU's token and the device's token differ, both must be about equally likely
    const gaps = first.map((at, i) => (at === undefined ? 0 : own[i]!.logProbs[at]! - onCpu[i]![at]!));
    const gap = Math.max(...gaps.map((value) => (Number.isNaN(value) ? Number.POSITIVE_INFINITY : value)));
    within(
      `greedy: the CPU's token is likelier where the device takes another (tokens: ${tokens.greedy})`,
      gap,
      exact ? CPU_TOLERANCE.bits : 2 * generates,
    );
  }
  const ends = new Set(expected.generated["all tokens"]!.map(({ response }) => response.length)).size;
  goals.push({
    what: `${name}: rows end at different times`,
    goal: ">= 3 lengths",
    measured: `${ends} lengths`,
    met: ends >= 3,
  });
  const met = goals.filter((goal) => goal.met).length;
  return {
    rows: [{ trained: TRAINED[trained].name, compute: format, "goals met": `${met} of ${goals.length}`, ...tokens }],
    goals,
  };
}

/** Returns the largest difference between two lists of equally long arrays; Infinity if one is not finite. */
function largest(a: readonly Float32Array[], b: readonly Float32Array[]): number {
  let most = 0;
  for (const [i, numbers] of a.entries())
    for (const [j, number] of numbers.entries()) {
      const difference = Math.abs(number - b[i]![j]!);
      most = Math.max(most, Number.isFinite(difference) ? difference : Number.POSITIVE_INFINITY);
    }
  return most;
}

/** Returns for each row the first position at which tokens differ; undefined if all are the same. */
function firstDifferences(own: readonly Response[], other: readonly Response[]): (number | undefined)[] {
  return own.map(({ response }, i) => {
    const at = response.findIndex((token, t) => token !== other[i]!.response[t]);
    if (at >= 0) return at;
    return other[i]!.response.length > response.length ? response.length : undefined;
  });
}

/** Returns e.g. `5 of 8 rows the same, first difference: row 2, token 17`. */
function differencesText(first: readonly (number | undefined)[], rows: number): string {
  const different = first.flatMap((at, row) => (at === undefined ? [] : [{ at, row }]));
  if (different.length === 0) return "the same";
  const earliest = different.reduce((a, b) => (b.at < a.at ? b : a));
  return `${rows - different.length} of ${rows} rows the same, first difference: row ${earliest.row}, token ${earliest.at}`;
}
