/** A generator with our own engine. The first weights start the engine: they determine whether it takes adapters, and of which rank. */
import { rm } from "node:fs/promises";
import {
  type AdapterOptions,
  type Device,
  type InferenceRequest,
  type MemoryPlan,
  type ModelConfig,
  type ModelError,
  type ResponsePart,
  type RunningEngine,
  readAdapter,
  startEngine,
} from "../engine/index.ts";
import type { Backend, Row } from "./backend.ts";
import { GeneratorError } from "./errors.ts";
import type { RowRequest, WeightsKind, WeightsName } from "./protocol.ts";

interface EngineBackendOptions {
  /** The model folder that adapters belong to. For full weights only its configuration is used. */
  model: string;
  config: ModelConfig;
  threads: number;
  device: Device;
  slots: number;
  /** Most tokens of a prompt and its response. */
  positions: number;
  /** Called once if the engine has failed: the backend can never be used again. */
  onFailure?: (failure: Error) => void;
  /** Plans the engine's memory with such weights before it is started. @throws if it does not fit */
  plan: (weights: Omit<InferenceRequest["models"][number], "folder">) => Pick<MemoryPlan, "widens">;
}

export class EngineBackend implements Backend {
  readonly engine = "Longrun";
  readonly device: Backend["device"];
  readonly slots: number;
  readonly #o: EngineBackendOptions;
  #engine: RunningEngine | undefined;
  /** The kind of weights that the engine was started for; another kind needs another engine. */
  #startedFor = "";

  constructor(options: EngineBackendOptions) {
    this.#o = options;
    this.device = options.device.kind;
    this.slots = options.slots;
  }

  get failure(): Error | undefined {
    return this.#engine?.failure;
  }

  async hasWeights(): Promise<boolean> {
    if (this.failure) throw new GeneratorError("failed", this.failure.message, { cause: this.failure });
    return this.#engine !== undefined;
  }

  /** Running rows end first, because the engine has one policy. */
  async load(folder: string, { kind }: WeightsName & { kind: WeightsKind }): Promise<void> {
    try {
      const lora = kind === "adapter" ? readAdapter(folder, this.#o.config).lora : undefined;
      const wanted = JSON.stringify(lora ?? kind);
      if (this.#engine && wanted !== this.#startedFor) {
        await this.#engine.close();
        this.#engine = undefined;
      }
      if (!this.#engine) {
        const { widens } = this.#o.plan(lora ? { lora } : { whole: true });
        this.#engine = await this.#start(widens, lora && { ...lora, seed: 0, folder });
        this.#startedFor = wanted;
        if (lora) return;
      }
      await this.#engine.loadPolicy(folder);
    } finally {
      await rm(folder, { recursive: true, force: true });
    }
  }

  async generate(rows: readonly RowRequest[], signal: AbortSignal, onRow: (row: Row) => void): Promise<void> {
    const engine = this.#engine;
    if (!engine) throw new Error("rows came before weights");
    // one call of the engine has one temperature, one length and one list of stop tokens
    const calls = Map.groupBy(rows, ({ temperature, topP, maxTokens, stopTokens }) =>
      JSON.stringify([temperature, topP, maxTokens, stopTokens]),
    );
    const ending = new AbortController();
    const either = AbortSignal.any([signal, ending.signal]);
    const generate = async (call: readonly RowRequest[]) => {
      const { temperature, topP, maxTokens: maxNewTokens, stopTokens: eosIds } = call[0]!;
      const tell = (index: number, { response, logProbs, finished }: ResponsePart) => {
        if (either.aborted) return;
        const tokens = Array.from(response);
        onRow({ id: call[index]!.id, tokens, logProbs: Array.from(logProbs), finish: finished ? "stop" : "length" });
      };
      const prompts = call.map(({ prompt }) => Int32Array.from(prompt));
      const seeds = call.map(({ seed }) => seed);
      try {
        await engine.generate(prompts, { seeds, temperature, topP, maxNewTokens, eosIds, signal: either }, tell);
      } catch (cause) {
        ending.abort(cause); // the request has failed; the learner sends the remaining rows elsewhere
      }
    };
    await Promise.all([...calls.values()].map(generate));
    if (!either.aborted) return;
    const cause = either.reason as ModelError;
    throw cause.code === "generation" ? new GeneratorError("request", cause.message, { cause }) : cause;
  }

  async close(): Promise<void> {
    if (this.#engine && !this.#engine.failure) await this.#engine.close();
  }

  #start(widens: boolean, adapter: AdapterOptions | undefined): Promise<RunningEngine> {
    const { model, threads, device, slots, positions } = this.#o;
    // a reference would be a second copy of full weights
    const options = { model, threads, device, slots, positions, adapter, widens, critic: false, reference: false };
    return startEngine(options, this.#o.onFailure);
  }
}
