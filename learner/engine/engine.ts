/**
 * The engine: generation, log-probs and optimiser steps of one policy (and its frozen reference and critic), as the main
 * thread sees them. The work is done in other threads (engine-thread.ts and its workers), because ONNX Runtime blocks the thread that runs
 * it. Calls are served one after the other, in the order in which they were made; generation with the same weights side by side.
 */
import "./runtime/telemetry.ts";
import { WorkerThread } from "./calls.ts";
import type { EngineError } from "./errors.ts";
import type { GenerateOptions as GeneratorRequest, Listener, Response } from "./model/generate.ts";
import type { LoraConfig } from "./model/lora.ts";
import type { Device } from "./runtime/device.ts";

export interface AdapterOptions extends LoraConfig {
  /** seed of the matrices that begin at random */
  seed: number;
  /** a PEFT folder of the same rank, alpha and targets, with which the policy begins; default random matrices */
  folder?: string;
  /** the reference has an adapter of its own, which `loadReference` reads; default: it is the model itself */
  reference?: boolean;
}

/** Nothing is trained: the model's files are mapped and not copied. */
export const FROZEN: AdapterOptions = { rank: 1, alpha: 1, targets: [], seed: 0 };

/** tf32: float32 numbers, of which a GPU multiplies the first 10 bits of the mantissa. The last two need CUDA. */
export type ComputeFormat = "float32" | "tf32" | "bfloat16";

export type ActivationCheckpointing = "Auto" | "Always" | "Never";

export interface EngineOptions {
  /** a Hugging Face folder: the policy to start from, and the frozen reference */
  model: string;
  /** threads of the CPU; 0: all cores. The same number gives the same bits */
  threads: number;
  /** workers that each run micro-batches of their own, if not all threads run one together; default `workerCount` */
  workers?: number;
  /** tokens that go through a graph together; few stay in the caches, many fill more threads (default 512 a thread) */
  microBatchTokens?: number;
  /** most tokens of a prompt and responses that share it in a graph, as memory was planned for. Default microBatchTokens */
  rowTokens?: number;
  /** responses that are generated side by side, over all workers; further ones wait. It changes no response. Default 64 */
  slots?: number | undefined;
  /** tokens of a prompt and its response that a slot has room for (GeneratorOptions). Default: as many as the rows need */
  positions?: number | undefined;
  /** device of the networks; default the CPU */
  device?: Device;
  /** several GPUs, of which `device` is the first: each has a worker */
  devices?: readonly Device[];
  /**
   * Layers are computed again in the backward pass, not kept for it: a third more work, a fraction of the memory, the same
   * gradients. Auto: in micro-batches that would need more than `activationBytes` without it. Default Auto
   */
  activationCheckpointing?: ActivationCheckpointing;
  /** most bytes of a micro-batch's values before Auto recomputes them; default half of the free memory */
  activationBytes?: number;
  /** precision of matrix products; weights, gradients and optimiser state are always float32. Default float32 */
  compute?: ComputeFormat;
  /** weights, gradients and moments stay where the networks run (device-memory.ts). Default: on a GPU. Tests do it on a CPU */
  resident?: boolean;
  /**
   * Every weight is trained in bfloat16: the device holds rounded weights; float32 weights and moments stay in host memory
   * (rounded-weights.ts). Default false.
   */
  offloads?: boolean;
  /** graphs have their memory on a device in turn, and with `offloads` policy, reference and critic, too. Default false */
  swaps?: boolean;
  /** generation on a CPU reads float32 copies of a frozen model's half-precision matrices (GenerationOptions). Default false */
  widens?: boolean;
  /** low-rank adapters are trained and the model is frozen; left out: every weight is trained */
  adapter?: AdapterOptions | undefined;
  /** whether `load` takes the critic that a checkpoint has; default true */
  critic?: boolean;
  /** Whether there is a reference policy. If every weight is trained, it is a second copy of the weights. Default true. */
  reference?: boolean;
}

export interface Sequence {
  /** token ids, int32 [prompt] */
  prompt: Int32Array;
  /** token ids with the end token if there is one, int32 [response] */
  response: Int32Array;
}

export interface GenerateOptions extends Omit<GeneratorRequest, "eosIds"> {
  /** a response ends with the first of these, and includes it. Default: the model's */
  eosIds?: readonly number[];
  /** The weights that generate. The reference always has the weights of the model folder. Default: policy */
  weights?: "policy" | "reference";
}

export interface EvaluateOptions {
  temperature: number;
  /** values of the critic, which is made if there is none */
  values: boolean;
  /** log-probs of the reference too; default true */
  reference?: boolean;
}

/** All float32 [response]. */
export interface LogProbs {
  /** log pi/T of the response tokens under the current policy */
  logProbs: Float32Array;
  /** the same under the frozen reference; zeros if not requested */
  referenceLogProbs: Float32Array;
  /** V_t, read before token t; zeros if not requested */
  values: Float32Array;
  /** entropy of pi/T where token t is chosen, nats */
  entropies: Float32Array;
}

export interface Fit {
  /** sum over the response tokens of -log pi, nats */
  loss: number;
  /** response tokens that are the policy's most probable ones */
  correct: number;
  tokens: number;
}

export interface PolicySample extends Sequence {
  /** log pi/T with the weights that the update started from, float32 [response] */
  proximalLogProbs: Float32Array;
  /** float32 [response] */
  advantages: Float32Array;
  /** truncated proximal / behaviour ratio, float32 [response] */
  importance: Float32Array;
  /** the sample's duration weight; 0 leaves its policy loss out, not its entropy and KL */
  weight: number;
  /** log pi/T under the frozen reference, float32 [response]; only where klCoefficient is above 0 */
  referenceLogProbs?: Float32Array;
}

export interface ValueSample extends Sequence {
  /** V_t before the update, float32 [response] */
  oldValues: Float32Array;
  /** float32 [response] */
  returns: Float32Array;
}

export interface Adam {
  beta1: number;
  beta2: number;
  epsilon: number;
  /** decoupled, for every parameter, as in torch.optim.AdamW */
  weightDecay: number;
}

type Aggregation = "SeqMeanTokenMean" | "TokenMean" | "SeqMeanTokenSumNorm";

/** The inputs that policy steps and critic steps share. */
export interface Step {
  learningRate: number;
  /** the gradient is scaled down to this global norm; 0: it is not */
  gradientClip: number;
  adam: Adam;
  aggregation: Aggregation;
  /**
   * At most this many sequences are in memory at once; where rows are packed (model/decoder.ts) the tokens of a pass alone count. Never changes
   * a gradient by more than rounding.
   */
  microBatchSize: number;
  /** divisor of the loss: sequences or, for TokenMean, response tokens; default: the batch's numbers */
  normalizer?: { sequences: number; tokens: number };
  /** divisor of every sequence's sum, whatever its length, with SeqMeanTokenSumNorm */
  maxResponseTokens?: number;
}

export interface PolicyStep extends Step {
  temperature: number;
  clipRatio: number;
  /** ratios are clipped to 1 - clipRatio and 1 + clipRatioHigh; default clipRatio */
  clipRatioHigh?: number | undefined;
  /** c of dual clip for negative advantages; 0: off */
  dualClip: number;
  entropyCoefficient: number;
  /** coefficient of the k3 estimate of the KL to the reference in the loss; default 0 */
  klCoefficient?: number;
}

export interface ValueStep extends Step {
  /** largest move of V from oldValues; 0: no limit */
  valueClip: number;
}

export interface PretrainStep extends Step {
  /** default 1 */
  temperature?: number;
}

export interface StepResult {
  /** the loss that was minimised, before the step */
  loss: number;
  /** global norm before clipping */
  gradientNorm: number;
  /** the gradient was not finite, so nothing was changed */
  skipped: boolean;
}

export interface PolicyStepResult extends StepResult {
  /** mean over tokens of proximal - current log-prob (k1) */
  kl: number;
  ratioMax: number;
  ratioMean: number;
  /** share of tokens where a clip, dual clip included, cuts the gradient off */
  clipFraction: number;
  /** mean over tokens, nats */
  entropy: number;
}

export interface CriticStepResult extends StepResult {
  /** 1 - Var(returns - V) / Var(returns) */
  explainedVariance: number;
}

export interface Engine {
  /**
   * Samples a response to each prompt. Calls with the same weights run side by side and share the slots of the KV cache: a call begins
   * with the next token of those before it. All other calls wait until those before them have ended.
   *
   * @param listener called with each response at its end, or with its tokens during generation (`streams`)
   */
  generate(prompts: Int32Array[], options: GenerateOptions, listener?: Listener): Promise<Response[]>;
  evaluate(batch: Sequence[], options: EvaluateOptions): Promise<LogProbs[]>;
  /** Measures how well the policy predicts responses, at temperature 1; trains nothing. */
  measureFit(batch: Sequence[]): Promise<Fit>;
  /** Makes the critic, a copy of the policy's trained weights with a head that predicts `value` everywhere, unless there is one already. */
  initializeCritic(value: number): Promise<void>;
  /** One optimiser step over the batch. */
  updatePolicy(batch: PolicySample[], options: PolicyStep): Promise<PolicyStepResult>;
  /** One optimiser step of the critic. */
  updateCritic(batch: ValueSample[], options: ValueStep): Promise<CriticStepResult>;
  /** One optimiser step on the cross entropy of the response tokens. */
  pretrain(batch: Sequence[], options: PretrainStep): Promise<StepResult>;
  /**
   * Writes policy/ (a Hugging Face folder, or with an adapter one of PEFT), critic/ and the optimisers' state into `directory`, as they are
   * at its turn, and returns that state's digest. Generation and log-probs go on meanwhile; a step waits before it changes weights.
   *
   * @param taken called when later calls no longer change the files. @throws EngineError `diskFull` without room for all of it
   */
  save(directory: string, taken?: () => void): Promise<{ digest: string }>;
  /** Restores what `save` wrote, bit for bit. The reference stays. */
  load(directory: string): Promise<void>;
  /** Writes the policy's weights alone into `directory`: a Hugging Face folder, or with an adapter one of PEFT. */
  savePolicy(directory: string): Promise<void>;
  /**
   * Takes the policy's weights from a folder that `savePolicy` wrote, after the rows that are being generated; moments are dropped. Reads
   * one weight after the other into place: after an error the policy is a mixture until a call succeeds.
   */
  loadPolicy(directory: string): Promise<void>;
  /** Takes the reference's weights from a folder that `savePolicy` wrote. With adapters it needs `AdapterOptions.reference`. */
  loadReference(directory: string): Promise<void>;
  /** sha256 over the bytes of all weights and moments, hex. */
  digest(): Promise<string>;
  close(): Promise<void>;
}

/** An engine with its worker thread. */
export interface RunningEngine extends Engine {
  /** Why it cannot be used any more: its worker failed or has ended. */
  readonly failure: EngineError | undefined;
}

/**
 * Starts the engine's thread and its workers, and reads the model.
 *
 * @param onFailure called once if the engine can never be used again. @throws ModelError (by its `code`) when the folder cannot be used
 */
export async function startEngine(o: EngineOptions, onFailure?: (cause: EngineError) => void): Promise<RunningEngine> {
  const file = new URL("./engine-thread.ts", import.meta.url);
  const thread = new WorkerThread<Engine>(file, o, "the engine's thread", onFailure);
  const { calls } = thread;
  try {
    await calls.digest(); // resolves when the model has been read, or rejects with the reason
  } catch (cause) {
    await thread.terminate();
    throw cause;
  }
  return {
    generate: calls.generate,
    evaluate: calls.evaluate,
    measureFit: calls.measureFit,
    initializeCritic: calls.initializeCritic,
    updatePolicy: calls.updatePolicy,
    updateCritic: calls.updateCritic,
    pretrain: calls.pretrain,
    save: calls.save,
    load: calls.load,
    savePolicy: calls.savePolicy,
    loadPolicy: calls.loadPolicy,
    loadReference: calls.loadReference,
    digest: calls.digest,
    close: calls.close,
    get failure() {
      return thread.failure;
    },
  };
}
