/**
 * The engine's flow: what goes into a graph together, what each step minimises and says, and the weights of policy, reference and
 * critic in shared memory. Graphs, generation and the loops over all weights are the workers' (workers.ts). The critic and moments are made when
 * they are first needed.
 */
import fs from "node:fs";
import path from "node:path";
import { type Adaptation, adaptationOf, trainedShapes } from "./adaptation.ts";
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
  Step,
  StepResult,
  ValueSample,
  ValueStep,
} from "./engine.ts";
import type { Outputs } from "./engine-worker.ts";
import { EngineError } from "./errors.ts";
import { type Tensor, tensor } from "./graph/tensor.ts";
import { attentionBlocks, type MicroBatch, microBatches, passTokens, tokenScale } from "./microbatches.ts";
import type { ModelConfig } from "./model/config.ts";
import { attentionLength, type DecoderRow, decoderFeeds, targetFeeds } from "./model/decoder.ts";
import { VALUE_BIAS } from "./model/value-head.ts";
import { ModelState } from "./model-state.ts";
import { digestOf, readCritic, readMoments, writeCritic, writeMoments } from "./saved-state.ts";
import { checkCompute } from "./sessions.ts";
import { Workers } from "./workers.ts";

const OFF = 1e30; // a clip that never binds

export class Trainer implements Engine {
  readonly #options: EngineOptions;
  readonly #model: Adaptation;
  readonly #config: ModelConfig;
  /** of attention */
  readonly #blocks: number;
  readonly #reference: ModelState;
  readonly #workers: Workers;
  readonly policy: ModelState;
  critic: ModelState | undefined;

  /**
   * @param onFailure called where one of its workers has failed or ended by itself
   * @throws EngineError, ModelError for options and folders that cannot be used
   */
  constructor(options: EngineOptions, onFailure?: (failure: EngineError) => void) {
    checkCompute(options);
    this.#options = options;
    this.#model = adaptationOf(options.model, options.adapter);
    this.#config = this.#model.config;
    this.#blocks = attentionBlocks(options);
    const { policy } = this.#model.shapes;
    this.policy = new ModelState(policy);
    for (const [name, data] of this.#model.initial()) this.policy.weights.set(name, data);
    this.#reference = new ModelState(policy, this.policy.weights.copy().data);
    this.#workers = new Workers(options, onFailure);
    this.#workers.attach("policy", this.policy);
    this.#workers.attach("reference", this.#reference);
  }

  /** All workers have read the model folder. @throws what they could not do */
  async ready(): Promise<void> {
    await this.#workers.ready();
  }

  async generate(
    prompts: Int32Array[],
    options: GenerateOptions,
    onResponse?: (index: number, response: Generated) => void,
  ): Promise<Generated[]> {
    const { weights = "policy", ...how } = options;
    return this.#workers.generate(weights, prompts, { ...how, eosIds: this.#model.eosIds }, onResponse);
  }

  async evaluate(batch: Sequence[], options: { temperature: number; values: boolean }): Promise<Evaluation[]> {
    this.#check(batch);
    const unchanged = this.policy.untrained(this.#reference);
    if (options.values && !this.critic) await this.initializeCritic(0);
    const groups = this.#microBatches(batch);
    const feeds = groups.map((group) => {
      const rows = decoderRows(group, batch);
      return { ...decoderFeeds(rows, this.#config, this.#blocks), ...logProbFeeds(rows, options.temperature) };
    });
    const results = batch.map(({ response }): Evaluation => {
      const empty = () => new Float32Array(response.length);
      return { logProbs: empty(), referenceLogProbs: empty(), values: empty(), entropies: empty() };
    });
    const scatter = (outputs: Outputs[], name: string, field = name as keyof Evaluation) => {
      for (const [g, group] of groups.entries()) {
        const indices = group.flat();
        const parts = split(
          outputs[g][name].data as Float32Array,
          indices.map((i) => batch[i]),
        );
        for (const [part, i] of indices.entries()) results[i][field].set(parts[part]);
      }
    };
    const own = await this.#workers.evaluate("evaluate", feeds);
    scatter(own, "logProbs");
    scatter(own, "entropies");
    const reference = unchanged ? own : await this.#workers.evaluate("reference", feeds);
    scatter(reference, "logProbs", "referenceLogProbs");
    if (options.values) scatter(await this.#workers.evaluate("values", feeds), "values");
    return results;
  }

  async initializeCritic(value: number): Promise<void> {
    if (this.critic) return;
    await this.#workers.fetch("policy", this.policy);
    const critic = new ModelState(trainedShapes(this.#model, "critic"));
    for (const { name } of critic.weights.shapes) {
      if (name.startsWith("model.")) critic.weights.set(name, this.policy.weights.get(name).data as Float32Array);
    }
    critic.weights.set(VALUE_BIAS, Float32Array.of(value)); // the head's weights are 0, so it says this everywhere
    this.#useCritic(critic);
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
    const groups = this.#microBatches(batch, o);
    const feeds = groups.map((group) => {
      const [rows, indices] = [decoderRows(group, batch), group.flat()];
      const samples = indices.map((i) => batch[i]);
      return {
        ...decoderFeeds(rows, this.#config, this.#blocks),
        ...logProbFeeds(rows, o.temperature),
        ...scalars,
        proximalLogProbs: tensor(join(samples.map((sample) => sample.proximalLogProbs))),
        advantages: tensor(join(samples.map((sample) => sample.advantages))),
        policyScale: tensor(
          join(indices.map((i) => batch[i].importance.map((importance) => importance * batch[i].weight * scale[i]))),
        ),
        entropyScale: tensor(
          join(indices.map((i) => new Float32Array(batch[i].response.length).fill(o.entropyCoefficient * scale[i]))),
        ),
        referenceLogProbs: tensor(join(samples.map((sample) => sample.referenceLogProbs ?? sample.proximalLogProbs))),
        klScale: tensor(
          join(indices.map((i) => new Float32Array(batch[i].response.length).fill((o.klCoefficient ?? 0) * scale[i]))),
        ),
      };
    });
    const { outputs, done } = await this.#workers.step("policyStep", "policy", this.policy, feeds, o);
    for (const [g, { loss, tokens }] of outputs.entries()) {
      const samples = groups[g].flat().map((i) => batch[i]);
      totals.loss += loss.data[0] as number;
      // log-probs of all samples, then their entropies
      const numbers = split(tokens.data as Float32Array, [...samples, ...samples]);
      for (const [j, sample] of samples.entries())
        addStatistics(totals, sample, numbers[j], numbers[samples.length + j], o);
    }
    const { loss, tokens, ratioMax } = totals;
    return {
      loss,
      kl: totals.kl / tokens,
      ratioMax,
      ratioMean: totals.ratio / tokens,
      clipFraction: totals.clipped / tokens,
      entropy: totals.entropy / tokens,
      ...done,
    };
  }

  async updateCritic(batch: ValueSample[], o: ValueStep): Promise<CriticStepResult> {
    this.#check(batch);
    if (!this.critic) await this.initializeCritic(0);
    const critic = this.critic!;
    const scale = tokenScale(batch, o);
    const spread = { returns: new Spread(), residuals: new Spread() };
    let loss = 0;
    const groups = this.#microBatches(batch, o);
    const returnsOf = (group: MicroBatch) => join(group.flat().map((i) => batch[i].returns));
    const feeds = groups.map((group) => {
      const indices = group.flat();
      return {
        ...decoderFeeds(decoderRows(group, batch), this.#config, this.#blocks),
        oldValues: tensor(join(indices.map((i) => batch[i].oldValues))),
        returns: tensor(returnsOf(group)),
        valueScale: tensor(join(indices.map((i) => new Float32Array(batch[i].response.length).fill(scale[i])))),
        valueClip: scalar(o.valueClip || OFF),
      };
    });
    const { outputs, done } = await this.#workers.step("valueStep", "critic", critic, feeds, o);
    for (const [g, output] of outputs.entries()) {
      loss += output.loss.data[0] as number;
      const [values, returns] = [output.values.data as Float32Array, returnsOf(groups[g])];
      for (let t = 0; t < returns.length; t++) {
        spread.returns.add(returns[t]);
        spread.residuals.add(returns[t] - values[t]);
      }
    }
    const explainedVariance = spread.returns.variance > 0 ? 1 - spread.residuals.variance / spread.returns.variance : 0;
    return { loss, explainedVariance, ...done };
  }

  async pretrain(batch: Sequence[], o: PretrainStep): Promise<StepResult> {
    this.#check(batch);
    const scale = tokenScale(batch, o);
    const feeds = this.#microBatches(batch, o).map((group) => {
      const rows = decoderRows(group, batch);
      return {
        ...decoderFeeds(rows, this.#config, this.#blocks),
        ...logProbFeeds(rows, o.temperature ?? 1),
        scale: tensor(join(group.flat().map((i) => new Float32Array(batch[i].response.length).fill(scale[i])))),
      };
    });
    const { outputs, done } = await this.#workers.step("pretrainStep", "policy", this.policy, feeds, o);
    const loss = outputs.reduce((sum, output) => sum + (output.loss.data[0] as number), 0);
    return { loss, ...done };
  }

  async save(directory: string): Promise<{ digest: string }> {
    await this.#fetch();
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
    let critic: ModelState | undefined;
    if (this.#options.critic !== false && fs.existsSync(path.join(directory, "critic"))) {
      critic = new ModelState(trainedShapes(this.#model, "critic"));
      readCritic(path.join(directory, "critic"), critic.weights);
      critic.restore(new Map(), readMoments(path.join(directory, "critic-optimizer.safetensors"), critic));
    }
    // all of it was readable: now it counts
    this.policy.restore(weights, policyMoments);
    this.#workers.changed("policy");
    this.#useCritic(critic);
  }

  async digest(): Promise<string> {
    await this.#fetch();
    return digestOf({ policy: this.policy, critic: this.critic });
  }

  async close(): Promise<void> {
    await this.#workers.close();
  }

  #useCritic(critic: ModelState | undefined): void {
    this.critic = critic;
    if (critic) this.#workers.attach("critic", critic);
  }

  /** What was trained is in this process's memory. */
  async #fetch(): Promise<void> {
    await this.#workers.fetch("policy", this.policy);
    if (this.critic) await this.#workers.fetch("critic", this.critic);
  }

  #microBatches(batch: readonly Sequence[], step?: Pick<Step, "microBatchSize">): MicroBatch[] {
    const ranks = this.#workers.size;
    const tokens = this.#options.microBatchTokens ?? passTokens(this.#options, ranks);
    return microBatches(batch, {
      ...{ sequences: step?.microBatchSize ?? Number.POSITIVE_INFINITY, tokens, ranks },
      ...{ rowTokens: this.#options.rowTokens ?? tokens, attentionLength: attentionLength(this.#config, this.#blocks) },
    });
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

/** The rows of a micro-batch of `batch`. Their response tokens are in the order of its flattened indices. */
function decoderRows(group: MicroBatch, batch: readonly Sequence[]): DecoderRow[] {
  return group.map((indices) => ({
    prompt: batch[indices[0]].prompt,
    responses: indices.map((i) => batch[i].response),
  }));
}

function logProbFeeds(rows: readonly DecoderRow[], temperature: number): Record<string, Tensor> {
  return { ...targetFeeds(rows), inverseTemperature: scalar(1 / temperature) };
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
