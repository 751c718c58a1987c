/**
 * The engine's work, in the thread that calls it: weights, sessions and optimisers of policy, reference and critic.
 * Sessions, critic, gradient and moments are made when they are first needed.
 */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import type { Parameters } from "../graph/parameters.ts";
import { type Tensor, tensor } from "../graph/tensor.ts";
import type { ModelConfig } from "../model/config.ts";
import { decoderFeeds } from "../model/decoder.ts";
import { Generator } from "../model/generate.ts";
import { VALUE_BIAS, valueHeadShapes } from "../model/valuehead.ts";
import { type Adaptation, adaptationOf } from "./adaptation.ts";
import { digestOf, readCritic, readMoments, writeCritic, writeMoments } from "./checkpoint.ts";
import type {
  CriticStepResult,
  Engine,
  EngineOptions,
  Evaluation,
  Generated,
  GenerateOptions,
  PolicySample,
  PolicyStep,
  PolicyStepResult,
  PretrainStep,
  Sequence,
  StepResult,
  ValueSample,
  ValueStep,
} from "./engine.ts";
import { EngineError } from "./errors.ts";
import { MICRO_BATCH_TOKENS, microBatches, tokenScale } from "./microbatches.ts";
import { Sessions } from "./sessions.ts";
import { evaluateGraph, policyStepGraph, pretrainStepGraph, valueGraph, valueStepGraph } from "./steps.ts";
import { Trainable } from "./trainable.ts";

const OFF = 1e30; // a clip that never binds

export class Trainer implements Engine {
  readonly #options: EngineOptions;
  readonly #model: Adaptation;
  readonly #config: ModelConfig;
  readonly #reference: Parameters;
  readonly #sessions: Sessions;
  readonly #generator: Generator;
  readonly policy: Trainable;
  critic: Trainable | undefined;

  constructor(options: EngineOptions) {
    this.#options = options;
    this.#model = adaptationOf(options.model, options.adapter);
    this.#config = this.#model.config;
    this.#sessions = new Sessions(this.#model, options);
    this.policy = new Trainable(this.#model.shapes.policy);
    for (const [name, data] of this.#model.initial()) this.policy.weights.set(name, data);
    this.#reference = this.policy.weights.copy();
    this.#generator = new Generator(this.#config, { threads: options.threads });
  }

  async generate(prompts: Int32Array[], options: GenerateOptions): Promise<Generated[]> {
    const role = options.weights ?? "policy";
    const weights = this.#model.generatorWeights(role === "reference" ? this.#reference : this.policy.weights, role);
    return this.#generator.generate(weights, prompts, { ...options, eosIds: this.#model.eosIds });
  }

  async evaluate(batch: Sequence[], options: { temperature: number; values: boolean }): Promise<Evaluation[]> {
    this.#check(batch);
    const policy = await this.#sessions.get("evaluate", () => evaluateGraph(this.#model, "policy", this.#options));
    const unchanged = Buffer.compare(bytes(this.policy.weights.data), bytes(this.#reference.data)) === 0;
    const reference = unchanged
      ? undefined
      : await this.#sessions.get("reference", () => evaluateGraph(this.#model, "reference", this.#options));
    if (options.values && !this.critic) await this.initializeCritic(0);
    const values = options.values
      ? await this.#sessions.get("values", () => valueGraph(this.#model, this.#options))
      : undefined;

    const results = batch.map(({ response }): Evaluation => {
      const empty = () => new Float32Array(response.length);
      return { logProbs: empty(), referenceLogProbs: empty(), values: empty(), entropies: empty() };
    });
    for (const group of microBatches(batch, { sequences: Number.POSITIVE_INFINITY, tokens: this.#microBatchTokens })) {
      const sequences = group.map((i) => batch[i]);
      const feeds = { ...decoderFeeds(sequences, this.#config), ...logProbFeeds(sequences, options.temperature) };
      const scatter = (tokens: Tensor, field: keyof Evaluation) => {
        for (const [part, i] of split(tokens.data as Float32Array, sequences).entries())
          results[group[part]][field].set(i);
      };
      const own = await policy.run({ ...this.policy.weights.views(), ...feeds });
      scatter(own.logProbs, "logProbs");
      scatter(own.entropies, "entropies");
      scatter(
        reference ? (await reference.run({ ...this.#reference.views(), ...feeds })).logProbs : own.logProbs,
        "referenceLogProbs",
      );
      if (values) scatter((await values.run({ ...this.critic!.weights.views(), ...feeds })).values, "values");
    }
    return results;
  }

  async initializeCritic(value: number): Promise<void> {
    if (this.critic) return;
    this.critic = new Trainable(this.#criticShapes());
    for (const { name } of this.critic.weights.shapes) {
      if (name.startsWith("model.")) this.critic.weights.set(name, this.policy.weights.get(name).data as Float32Array);
    }
    this.critic.weights.set(VALUE_BIAS, Float32Array.of(value)); // the head's weights are 0, so it says this everywhere
  }

  async updatePolicy(batch: PolicySample[], o: PolicyStep): Promise<PolicyStepResult> {
    this.#check(batch);
    const scale = tokenScale(batch, o);
    const scalars = {
      ratioLow: scalar(1 - o.clipRatio),
      ratioHigh: scalar(1 + o.clipRatio),
      dualClip: scalar(o.dualClip || OFF),
    };
    const totals = { loss: 0, kl: 0, ratio: 0, ratioMax: 0, clipped: 0, entropy: 0, tokens: 0 };
    this.policy.zeroGradient();
    for (const group of this.#microBatches(batch, o)) {
      const samples = group.map((i) => batch[i]);
      const feeds = {
        ...decoderFeeds(samples, this.#config),
        ...logProbFeeds(samples, o.temperature),
        ...scalars,
        proximalLogProbs: tensor(join(samples.map((sample) => sample.proximalLogProbs))),
        advantages: tensor(join(samples.map((sample) => sample.advantages))),
        policyScale: tensor(
          join(group.map((i) => batch[i].importance.map((importance) => importance * batch[i].weight * scale[i]))),
        ),
        entropyScale: tensor(
          join(group.map((i) => new Float32Array(batch[i].response.length).fill(o.entropyCoefficient * scale[i]))),
        ),
        referenceLogProbs: tensor(join(samples.map((sample) => sample.referenceLogProbs ?? sample.proximalLogProbs))),
        klScale: tensor(
          join(group.map((i) => new Float32Array(batch[i].response.length).fill((o.klCoefficient ?? 0) * scale[i]))),
        ),
      };
      const outputs = await this.policy.accumulate(await this.#sessions.ofStep(policyStepGraph, feeds), feeds);
      totals.loss += outputs.loss.data[0] as number;
      const entropies = split(outputs.entropies.data as Float32Array, samples);
      for (const [j, logProbs] of split(outputs.logProbs.data as Float32Array, samples).entries()) {
        addStatistics(totals, samples[j], logProbs, entropies[j], o);
      }
    }
    const { loss, tokens, ratioMax } = totals;
    return {
      loss,
      kl: totals.kl / tokens,
      ratioMax,
      ratioMean: totals.ratio / tokens,
      clipFraction: totals.clipped / tokens,
      entropy: totals.entropy / tokens,
      ...this.policy.step(o),
    };
  }

  async updateCritic(batch: ValueSample[], o: ValueStep): Promise<CriticStepResult> {
    this.#check(batch);
    if (!this.critic) await this.initializeCritic(0);
    const critic = this.critic!;
    const scale = tokenScale(batch, o);
    const spread = { returns: new Spread(), residuals: new Spread() };
    let loss = 0;
    critic.zeroGradient();
    for (const group of this.#microBatches(batch, o)) {
      const samples = group.map((i) => batch[i]);
      const returns = join(samples.map((sample) => sample.returns));
      const feeds = {
        ...decoderFeeds(samples, this.#config),
        oldValues: tensor(join(samples.map((sample) => sample.oldValues))),
        returns: tensor(returns),
        valueScale: tensor(join(group.map((i) => new Float32Array(batch[i].response.length).fill(scale[i])))),
        valueClip: scalar(o.valueClip || OFF),
      };
      const outputs = await critic.accumulate(await this.#sessions.ofStep(valueStepGraph, feeds), feeds);
      loss += outputs.loss.data[0] as number;
      const values = outputs.values.data as Float32Array;
      for (let t = 0; t < returns.length; t++) {
        spread.returns.add(returns[t]);
        spread.residuals.add(returns[t] - values[t]);
      }
    }
    const explainedVariance = spread.returns.variance > 0 ? 1 - spread.residuals.variance / spread.returns.variance : 0;
    return { loss, explainedVariance, ...critic.step(o) };
  }

  async pretrain(batch: Sequence[], o: PretrainStep): Promise<StepResult> {
    this.#check(batch);
    const scale = tokenScale(batch, o);
    let loss = 0;
    this.policy.zeroGradient();
    for (const group of this.#microBatches(batch, o)) {
      const sequences = group.map((i) => batch[i]);
      const feeds = {
        ...decoderFeeds(sequences, this.#config),
        ...logProbFeeds(sequences, o.temperature ?? 1),
        scale: tensor(join(group.map((i) => new Float32Array(batch[i].response.length).fill(scale[i])))),
      };
      const outputs = await this.policy.accumulate(await this.#sessions.ofStep(pretrainStepGraph, feeds), feeds);
      loss += outputs.loss.data[0] as number;
    }
    return { loss, ...this.policy.step(o) };
  }

  async save(directory: string): Promise<{ digest: string }> {
    this.#model.write(path.join(directory, "policy"), this.policy.weights);
    writeMoments(path.join(directory, "policy-optimizer.safetensors"), this.policy);
    if (this.critic) {
      writeCritic(path.join(directory, "critic"), this.critic.weights);
      writeMoments(path.join(directory, "critic-optimizer.safetensors"), this.critic);
    }
    return { digest: await this.digest() };
  }

  async load(directory: string): Promise<void> {
    const weights = this.#model.read(path.join(directory, "policy"));
    const policyMoments = readMoments(path.join(directory, "policy-optimizer.safetensors"), this.policy);
    let critic: Trainable | undefined;
    if (this.#options.critic !== false && fs.existsSync(path.join(directory, "critic"))) {
      critic = new Trainable(this.#criticShapes());
      readCritic(path.join(directory, "critic"), critic.weights);
      critic.moments = readMoments(path.join(directory, "critic-optimizer.safetensors"), critic);
    }
    // all of it was readable: now it counts
    for (const [name, data] of weights) this.policy.weights.set(name, data);
    this.policy.moments = policyMoments;
    this.critic = critic;
  }

  async digest(): Promise<string> {
    return digestOf({ policy: this.policy, critic: this.critic });
  }

  async close(): Promise<void> {
    await this.#generator.release();
    await this.#sessions.release();
  }

  get #microBatchTokens(): number {
    return this.#options.microBatchTokens ?? MICRO_BATCH_TOKENS * (this.#options.threads || os.availableParallelism());
  }

  #criticShapes() {
    return [...this.#model.shapes.critic, ...valueHeadShapes(this.#config)];
  }

  #microBatches(batch: readonly Sequence[], { microBatchSize }: { microBatchSize: number }): number[][] {
    return microBatches(batch, { sequences: microBatchSize, tokens: this.#microBatchTokens });
  }

  #check(batch: readonly Sequence[]): void {
    const { maxPositions, vocabSize } = this.#config;
    for (const [i, { prompt, response }] of batch.entries()) {
      const refuse = (problem: string) => {
        throw new EngineError("batch", `sequence ${i}: ${problem}`);
      };
      if (prompt.length === 0) refuse("its prompt is empty; begin it with some token");
      const length = prompt.length + response.length;
      if (length > maxPositions) refuse(`it has ${length} tokens; the model has ${maxPositions} positions`);
      for (const tokens of [prompt, response]) {
        for (const token of tokens)
          if (token < 0 || token >= vocabSize) refuse(`token ${token} is not in the vocabulary of ${vocabSize}`);
      }
    }
  }
}

function scalar(value: number): Tensor {
  return tensor(Float32Array.of(value), []);
}

function bytes(data: Float32Array): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}

function logProbFeeds(sequences: readonly Sequence[], temperature: number): Record<string, Tensor> {
  const targets = new Int32Array(sequences.reduce((total, { response }) => total + response.length, 0));
  let at = 0;
  for (const { response } of sequences) {
    targets.set(response, at);
    at += response.length;
  }
  return { targets: tensor(targets), inverseTemperature: scalar(1 / temperature) };
}

function join(parts: readonly Float32Array[]): Float32Array {
  const joined = new Float32Array(parts.reduce((total, part) => total + part.length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}

/** Cuts per-token numbers into those of each sequence. */
function split(tokens: Float32Array, sequences: readonly Sequence[]): Float32Array[] {
  let at = 0;
  return sequences.map(({ response }) => {
    at += response.length;
    return tokens.subarray(at - response.length, at);
  });
}

function addStatistics(
  totals: { kl: number; ratio: number; ratioMax: number; clipped: number; entropy: number; tokens: number },
  { proximalLogProbs, advantages }: PolicySample,
  logProbs: Float32Array,
  entropies: Float32Array,
  { clipRatio, dualClip }: PolicyStep,
): void {
  for (let t = 0; t < logProbs.length; t++) {
    const ratio = Math.exp(logProbs[t] - proximalLogProbs[t]);
    totals.kl += proximalLogProbs[t] - logProbs[t];
    totals.ratio += ratio;
    totals.ratioMax = Math.max(totals.ratioMax, ratio);
    const a = advantages[t];
    const dual = dualClip > 0 && ratio > dualClip;
    if ((a > 0 && ratio > 1 + clipRatio) || (a < 0 && (ratio < 1 - clipRatio || dual))) totals.clipped++;
    totals.entropy += entropies[t];
    totals.tokens++;
  }
}

/** Variance of numbers as they come (Welford). */
class Spread {
  #count = 0;
  #mean = 0;
  #squares = 0;

  add(value: number): void {
    this.#count++;
    const delta = value - this.#mean;
    this.#mean += delta / this.#count;
    this.#squares += delta * (value - this.#mean);
  }

  get variance(): number {
    return this.#count > 0 ? this.#squares / this.#count : 0;
  }
}
