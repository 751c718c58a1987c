/**
 * The engine's flow: the inputs of each graph, the loss and the result of each step, and the weights of policy, reference and critic
 * in shared memory. The workers (workers.ts) run graphs, generation and the loops over all weights.
 */
import { type Adaptation, adaptationOf, trainedShapes } from "./adaptation.ts";
import { CheckpointFiles, readCheckpoint } from "./checkpoint-files.ts";
import type {
  CriticStepResult,
  Engine,
  EngineOptions,
  EvaluateOptions,
  Fit,
  GenerateOptions,
  LogProbs,
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
import { join, joinEach, logProbFeeds, scalar, split } from "./feeds.ts";
import type { Tensor } from "./graph/tensor.ts";
import { type MicroBatch, microBatches, passTokens, tokenScale } from "./microbatches.ts";
import type { ModelConfig } from "./model/config.ts";
import { attentionLength, type DecoderRow, decoderFeeds, type RowLayout, rowLayoutOf } from "./model/decoder.ts";
import type { Listener, Response } from "./model/generate.ts";
import { VALUE_BIAS } from "./model/value-head.ts";
import { digestOf, ModelState } from "./model-state.ts";
import { checkCompute } from "./sessions.ts";
import { addStatistics, variance } from "./step-statistics.ts";
import { type StartWorker, Workers } from "./workers.ts";

const OFF = 1e30; // a clip without effect

export class Trainer implements Engine {
  readonly #options: EngineOptions;
  readonly #model: Adaptation;
  readonly #config: ModelConfig;
  readonly #reference: ModelState | undefined;
  readonly #workers: Workers;
  readonly #files: CheckpointFiles;
  readonly policy: ModelState;
  critic: ModelState | undefined;

  /**
   * @param onFailure called where one of its workers has failed or ended by itself
   * @param start makes a worker; default: a thread
   * @throws EngineError, ModelError for options and folders that cannot be used
   */
  constructor(options: EngineOptions, onFailure?: (failure: EngineError) => void, start?: StartWorker) {
    checkCompute(options);
    this.#options = options;
    this.#model = adaptationOf(options.model, options.adapter);
    this.#config = this.#model.config;
    const { policy } = this.#model.shapes;
    this.policy = new ModelState(policy);
    const folder = options.adapter?.folder;
    if (folder) this.policy.restore(this.#model.read(folder), undefined);
    // `initial` checks all of the model's weights
    else if (policy.length > 0) for (const [name, data] of this.#model.initial()) this.policy.weights.set(name, data);
    if (options.reference ?? true)
      this.#reference = new ModelState(policy, folder ? undefined : this.policy.weights.copy().data);
    this.#files = new CheckpointFiles(options);
    this.#workers = new Workers(options, onFailure, start);
    this.#workers.attach("policy", this.policy);
    if (this.#reference) this.#workers.attach("reference", this.#reference);
  }

  /** Resolves when all workers have read the model folder. @throws the first worker's error */
  async ready(): Promise<void> {
    await this.#workers.ready();
  }

  async generate(prompts: Int32Array[], options: GenerateOptions, listener?: Listener): Promise<Response[]> {
    const { weights = "policy", eosIds = this.#model.eosIds, ...how } = options;
    if (weights === "reference") this.#checkReference();
    return this.#workers.generate(weights, prompts, { ...how, eosIds }, listener);
  }

  async evaluate(batch: Sequence[], options: EvaluateOptions): Promise<LogProbs[]> {
    this.#check(batch);
    if (options.reference ?? true) this.#checkReference();
    const unchanged = this.#reference && this.policy.untrained(this.#reference);
    if (options.values && !this.critic) await this.initializeCritic(0);
    const { groups, feeds } = await this.#passes(batch, {}, ({ rows }) => logProbFeeds(rows, options.temperature));
    const results = batch.map(({ response }): LogProbs => {
      const empty = () => new Float32Array(response.length);
      return { logProbs: empty(), referenceLogProbs: empty(), values: empty(), entropies: empty() };
    });
    const scatter = (outputs: Outputs[], name: string, field = name as keyof LogProbs) => {
      for (const [g, group] of groups.entries()) {
        const indices = group.flat();
        const samples = indices.map((i) => batch[i]);
        for (const [part, numbers] of split(outputs[g][name].data as Float32Array, samples).entries())
          results[indices[part]][field].set(numbers);
      }
    };
    const own = await this.#workers.evaluate("evaluate", feeds);
    scatter(own, "logProbs");
    scatter(own, "entropies");
    if (options.reference ?? true) {
      const reference = unchanged ? own : await this.#workers.evaluate("reference", feeds);
      scatter(reference, "logProbs", "referenceLogProbs");
    }
    if (options.values) scatter(await this.#workers.evaluate("values", feeds), "values");
    return results;
  }

  async measureFit(batch: Sequence[]): Promise<Fit> {
    this.#check(batch);
    const { feeds } = await this.#passes(batch, {}, ({ rows }) => logProbFeeds(rows, 1));
    const fit: Fit = { loss: 0, correct: 0, tokens: 0 };
    for (const outputs of await this.#workers.evaluate("accuracy", feeds)) {
      const [logProbs, largest] = [outputs.logProbs.data, outputs.largest.data] as Float32Array[];
      for (const [t, logProb] of logProbs.entries()) {
        fit.loss -= logProb;
        if (logProb === largest[t]) fit.correct++;
      }
      fit.tokens += logProbs.length;
    }
    return fit;
  }

  async initializeCritic(value: number): Promise<void> {
    if (this.critic) return;
    await this.#workers.fetch("policy", this.policy);
    const critic = new ModelState(trainedShapes(this.#model, "critic"));
    for (const { name } of critic.weights.shapes) {
      if (name.startsWith("model.")) critic.weights.set(name, this.policy.weights.get(name).data as Float32Array);
    }
    critic.weights.set(VALUE_BIAS, Float32Array.of(value)); // the head's weights are 0, so it predicts this everywhere
    this.#useCritic(critic);
  }

  async updatePolicy(batch: PolicySample[], o: PolicyStep): Promise<PolicyStepResult> {
    this.#check(batch);
    const scale = tokenScale(batch, o);
    const scalars = {
      ratioLow: scalar(1 - o.clipRatio),
      ratioHigh: scalar(1 + (o.clipRatioHigh ?? o.clipRatio)),
      dualClip: scalar(o.dualClip || OFF),
    };
    const totals = { loss: 0, kl: 0, ratio: 0, ratioMax: 0, clipped: 0, entropy: 0, tokens: 0 };
    const { groups, feeds } = await this.#passes(batch, o, ({ rows, indices, samples }) => ({
      ...logProbFeeds(rows, o.temperature),
      ...scalars,
      proximalLogProbs: join(samples.map((sample) => sample.proximalLogProbs)),
      advantages: join(samples.map((sample) => sample.advantages)),
      policyScale: join(indices.map((i) => batch[i].importance.map((share) => share * batch[i].weight * scale[i]))),
      entropyScale: joinEach(samples, (i) => o.entropyCoefficient * scale[indices[i]]),
      referenceLogProbs: join(samples.map((sample) => sample.referenceLogProbs ?? sample.proximalLogProbs)),
      klScale: joinEach(samples, (i) => (o.klCoefficient ?? 0) * scale[indices[i]]),
    }));
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
    const [kl, ratioMean] = [totals.kl / tokens, totals.ratio / tokens];
    const [clipFraction, entropy] = [totals.clipped / tokens, totals.entropy / tokens];
    return { loss, kl, ratioMax, ratioMean, clipFraction, entropy, ...done };
  }

  async updateCritic(batch: ValueSample[], o: ValueStep): Promise<CriticStepResult> {
    this.#check(batch);
    if (!this.critic) await this.initializeCritic(0);
    const critic = this.critic!;
    const scale = tokenScale(batch, o);
    const [allReturns, residuals]: number[][] = [[], []];
    let loss = 0;
    const { feeds } = await this.#passes(batch, o, ({ indices, samples }) => ({
      oldValues: join(samples.map((sample) => sample.oldValues)),
      returns: join(samples.map((sample) => sample.returns)),
      valueScale: joinEach(samples, (i) => scale[indices[i]]),
      valueClip: scalar(o.valueClip || OFF),
    }));
    const { outputs, done } = await this.#workers.step("valueStep", "critic", critic, feeds, o);
    for (const [g, output] of outputs.entries()) {
      loss += output.loss.data[0] as number;
      const [values, returns] = [output.values.data, feeds[g].returns.data] as Float32Array[];
      for (const [t, target] of returns.entries()) {
        allReturns.push(target);
        residuals.push(target - values[t]);
      }
    }
    const whole = variance(allReturns);
    return { loss, explainedVariance: whole > 0 ? 1 - variance(residuals) / whole : 0, ...done };
  }

  async pretrain(batch: Sequence[], o: PretrainStep): Promise<StepResult> {
    this.#check(batch);
    const scale = tokenScale(batch, o);
    const { feeds } = await this.#passes(batch, o, ({ rows, indices, samples }) => ({
      ...logProbFeeds(rows, o.temperature ?? 1),
      scale: joinEach(samples, (i) => scale[indices[i]]),
    }));
    const { outputs, done } = await this.#workers.step("pretrainStep", "policy", this.policy, feeds, o);
    const loss = outputs.reduce((sum, output) => sum + (output.loss.data[0] as number), 0);
    return { loss, ...done };
  }

  async save(directory: string, taken = () => {}): Promise<{ digest: string }> {
    await this.#workers.reading;
    await this.#fetch();
    const written = this.#files.write(directory, { policy: this.policy, critic: this.critic });
    this.#workers.reading = written.catch(() => {}); // the caller gets the error
    taken();
    return { digest: await written };
  }

  async load(directory: string): Promise<void> {
    await this.#workers.reading;
    const read = readCheckpoint(directory, this.#model, this.policy, this.#options.critic !== false);
    // the whole checkpoint was readable: only now is it used
    this.policy.restore(read.weights, read.taken);
    this.#workers.changed("policy");
    this.#useCritic(read.critic);
  }

  async savePolicy(directory: string): Promise<void> {
    await this.#workers.fetch("policy", this.policy);
    this.#model.write(directory, this.policy.weights);
  }

  async loadPolicy(directory: string): Promise<void> {
    this.policy.restore(this.#model.read(directory), undefined);
    this.#workers.changed("policy");
  }

  async loadReference(directory: string): Promise<void> {
    this.#checkReference();
    if (this.#options.adapter && !this.#options.adapter.reference)
      throw new EngineError("reference", "the engine was started with a reference without an adapter");
    await this.#workers.ready();
    this.#reference!.restore(this.#model.read(directory), undefined);
    this.#workers.changed("reference");
  }

  async digest(): Promise<string> {
    await this.#fetch();
    return digestOf({ policy: this.policy, critic: this.critic });
  }

  async close(): Promise<void> {
    await this.#files.close();
    await this.#workers.close();
  }

  #useCritic(critic: ModelState | undefined): void {
    this.critic = critic;
    if (critic) this.#workers.attach("critic", critic);
  }

  /** Copies the trained weights and moments to this process's memory. */
  async #fetch(): Promise<void> {
    await this.#workers.fetch("policy", this.policy);
    if (this.critic) await this.#workers.fetch("critic", this.critic);
  }

  /**
   * Returns the micro-batches and their feeds: the decoder's, and the feeds of `also`. Response tokens are in the order of a micro-batch's
   * samples.
   */
  async #passes<T extends Sequence, F extends Record<string, Tensor>>(
    batch: readonly T[],
    step: Partial<Pick<Step, "microBatchSize">>,
    also: (group: { rows: DecoderRow[]; indices: number[]; samples: T[] }) => F,
  ) {
    const layout = rowLayoutOf(await this.#workers.packs(), this.#options.rowTokens);
    const groups = this.#microBatches(batch, layout, step);
    const feeds = groups.map((group) => {
      const rows = group.map((row) => ({ prompt: batch[row[0]].prompt, responses: row.map((i) => batch[i].response) }));
      const indices = group.flat();
      const samples = indices.map((i) => batch[i]);
      return { ...decoderFeeds(rows, this.#config, layout), ...also({ rows, indices, samples }) };
    });
    return { groups, feeds };
  }

  #microBatches(
    batch: readonly Sequence[],
    layout: RowLayout,
    { microBatchSize = Number.POSITIVE_INFINITY }: Partial<Pick<Step, "microBatchSize">>,
  ): MicroBatch[] {
    const { packs } = layout;
    const workers = this.#workers.size;
    const tokens = this.#options.microBatchTokens ?? passTokens(this.#options, workers);
    return microBatches(batch, {
      packs,
      workers,
      tokens,
      rowTokens: this.#options.rowTokens ?? tokens,
      // a pass without padding is as full as its memory allows
      sequences: packs ? Number.POSITIVE_INFINITY : microBatchSize,
      attentionLength: attentionLength(this.#config, layout),
    });
  }

  #checkReference(): void {
    if (!this.#reference) throw new EngineError("reference", "the engine was started without a reference");
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
      for (const token of [...prompt, ...response])
        if (token < 0 || token >= vocabSize) refuse(`token ${token} is not in the vocabulary of ${vocabSize}`);
    }
  }
}
