/**
 * The engine of `longrun evaluate`: it generates with one policy after the other and trains none, so each policy's files are used
 * unchanged. It holds no float32 copy, gradient, moment or critic.
 */
import { join } from "node:path";
import { type AdapterOptions, FROZEN, type RunningEngine } from "../engine/index.ts";

/** A model folder, and the adapter beside it. */
export interface Weights {
  model: string;
  adapter: AdapterOptions;
}

/**
 * Returns the files of a policy.
 *
 * @param model folder that the run began with
 * @param adapter the run's adapter; undefined: every weight is trained
 * @param checkpoint folder; undefined: the policy that the run began with
 */
export function weightsOf(model: string, adapter: AdapterOptions | undefined, checkpoint: string | undefined): Weights {
  if (checkpoint === undefined) return { model, adapter: FROZEN };
  const policy = join(checkpoint, "policy");
  return adapter ? { model, adapter: { ...adapter, folder: policy } } : { model: policy, adapter: FROZEN };
}

export class EvaluatedPolicy {
  /** The engine of the policy that was opened last. The reference is the policy that the run began with. */
  readonly engine: RunningEngine;
  readonly #start: (weights: Weights) => Promise<RunningEngine>;
  readonly #instruments: boolean;
  readonly #first: RunningEngine;
  #current: RunningEngine;

  private constructor(start: (weights: Weights) => Promise<RunningEngine>, first: RunningEngine, instruments: boolean) {
    this.#start = start;
    this.#instruments = instruments;
    this.#first = this.#current = first;
    const generate: RunningEngine["generate"] = (...call) => {
      const isReference = call[1].weights === "reference" && this.#instruments;
      return (isReference ? this.#first : this.#current).generate(...call);
    };
    this.engine = new Proxy({} as RunningEngine, {
      get: (_, name) => (name === "generate" ? generate : Reflect.get(this.#current, name)),
    });
  }

  /** @param instruments the policy that the run began with inserts markers: it stays open beside the others */
  static async open(
    start: (weights: Weights) => Promise<RunningEngine>,
    first: Weights,
    instruments: boolean,
  ): Promise<EvaluatedPolicy> {
    return new EvaluatedPolicy(start, await start(first), instruments);
  }

  /** Switches to another policy, and frees the memory of the previous one. */
  async change(weights: Weights): Promise<void> {
    if (this.#current !== this.#first || !this.#instruments) await this.#current.close();
    this.#current = await this.#start(weights);
  }
}
