/**
 * A generator whose engine is a vLLM server on the same machine. Shapes are those of vLLM's `entrypoints/openai/completion/protocol.py` and
 * `entrypoints/serve/lora/protocol.py`, commit 002032ee2b18e1f7bd924ec47b62504ba3866063.
 */
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { Backend, Row } from "./backend.ts";
import { GeneratorError } from "./errors.ts";
import { callJson } from "./http.ts";
import type { RowRequest, WeightsKind, WeightsName } from "./protocol.ts";

export interface VllmOptions {
  /** The URL that vLLM listens on, such as http://127.0.0.1:8000. */
  url: string;
  /** A folder that vLLM reads, too. */
  adapterFolder: string;
  /** vLLM's name of the base model (`--served-model-name`). */
  modelName: string;
  /** vLLM's `--max-num-seqs`. */
  slots: number;
  /** The device on which vLLM computes. */
  device: Backend["device"];
}

/** Prefix of the names of adapters. */
const PREFIX = "longrun-";
/** Log-probs that vLLM gives for a probability of 0. */
const LEAST_LOG_PROB = -9999;
/** Any token that no model is certain of. */
const ONLY_TOKEN = 7;
/** Seconds that vLLM may take to load an adapter or to say which models it has. */
const ANSWER_SECONDS = 120;

interface Completion {
  choices?: {
    finish_reason?: string | null;
    token_ids?: number[] | null;
    logprobs?: { token_logprobs?: (number | null)[] } | null;
  }[];
}

interface LoadedAdapter {
  name: string;
  folder: string;
  /** rows that it is generating */
  rows: number;
}

export class VllmBackend implements Backend {
  readonly engine = "VLLM";
  readonly device: Backend["device"];
  readonly slots: number;
  readonly failure = undefined;
  readonly #o: VllmOptions;
  /** The newest last. */
  #adapters: LoadedAdapter[] = [];

  private constructor(options: VllmOptions) {
    this.#o = options;
    this.device = options.device;
    this.slots = options.slots;
  }

  /** @throws GeneratorError `failed` unless vLLM answers and has the model */
  static async connect(options: VllmOptions): Promise<VllmBackend> {
    const backend = new VllmBackend(options);
    const { data = [] } = JSON.parse(await backend.#call("/v1/models")) as { data?: { id: string }[] };
    const names = data.map(({ id }) => id);
    // adapters of a sidecar that ended before
    for (const name of names.filter((id) => id.startsWith(PREFIX)))
      await backend.#call("/v1/unload_lora_adapter", { lora_name: name });
    const remedy = "give --model-name what vLLM's --served-model-name says";
    if (!names.includes(options.modelName))
      throw new GeneratorError("failed", `${options.url} has ${names.join(", ")}, not ${options.modelName}; ${remedy}`);
    await backend.#checkLogProbs();
    return backend;
  }

  /** A token that is the only one allowed is certain, unless log-probs are those before sampling parameters: vLLM's default. */
  async #checkLogProbs(): Promise<void> {
    const sampling = { seed: 1, temperature: 1, topP: 1, maxTokens: 1, stopTokens: [] };
    const row = { id: "", prompt: [1, 2, 3], ...sampling };
    const signal = AbortSignal.timeout(ANSWER_SECONDS * 1000);
    const only = { allowed_token_ids: [ONLY_TOKEN] };
    const [logProb] = rowOf(row, await this.#complete(this.#o.modelName, row, signal, only)).logProbs;
    if (logProb! > -0.01) return;
    const found = `the only token that is allowed has log-prob ${logProb}, not 0`;
    throw new GeneratorError("failed", `${found}: start vLLM with --logprobs-mode processed_logprobs`);
  }

  /** vLLM that was started again has none. */
  async hasWeights(): Promise<boolean> {
    const { data = [] } = JSON.parse(await this.#call("/v1/models")) as { data?: { id: string }[] };
    const newest = this.#adapters.at(-1)?.name;
    return data.some(({ id }) => id === newest);
  }

  /** Each version has a name of its own: vLLM's prefix cache goes by the name, and would mix two versions under one. */
  async load(folder: string, { policyVersion, digest, kind }: WeightsName & { kind: WeightsKind }): Promise<void> {
    if (kind !== "adapter")
      throw new GeneratorError(
        "request",
        "vLLM takes adapters alone: train with model.adaptation.type LoRA, or use engine Longrun",
      );
    const name = `${PREFIX}${policyVersion}-${digest.slice(0, 12)}`;
    const own = join(this.#o.adapterFolder, name);
    await rm(own, { recursive: true, force: true });
    await rename(folder, own);
    const isThere = this.#adapters.at(-1)?.name === name && (await this.hasWeights());
    if (isThere) return;
    await this.#call("/v1/load_lora_adapter", { lora_name: name, lora_path: own });
    this.#adapters = this.#adapters.filter((each) => each.name !== name);
    const replaced = this.#adapters.at(-1);
    this.#adapters.push({ name, folder: own, rows: 0 });
    if (replaced) await this.#unloadIfUnused(replaced);
  }

  async generate(rows: readonly RowRequest[], signal: AbortSignal, onRow: (row: Row) => void): Promise<void> {
    const adapter = this.#adapters.at(-1);
    if (!adapter) throw new Error("rows came before weights");
    adapter.rows += rows.length;
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    const one = async (row: RowRequest) => {
      try {
        onRow(rowOf(row, await this.#complete(adapter.name, row, either)));
      } catch (cause) {
        failed.abort(cause); // one row alone is no answer: the learner sends the others elsewhere
      }
    };
    try {
      await Promise.all(rows.map(one));
      either.throwIfAborted();
    } finally {
      adapter.rows -= rows.length;
      await this.#unloadIfUnused(adapter);
    }
  }

  async close(): Promise<void> {}

  async #complete(model: string, row: RowRequest, signal: AbortSignal, more: object = {}): Promise<Completion> {
    const { prompt, seed, temperature, topP, maxTokens, stopTokens } = row;
    // vLLM's log-probs are then those of the tokens that top-p leaves, which the learner's are not
    if (topP !== 1) throw new GeneratorError("request", `topP is ${topP}: with vLLM model.topP must be 1`);
    const sampling = { seed, temperature, top_p: 1, max_tokens: maxTokens, stop_token_ids: stopTokens };
    const output = { logprobs: 0, return_token_ids: true, skip_special_tokens: false };
    return JSON.parse(
      await this.#call("/v1/completions", { model, prompt, ...sampling, ...output, ...more }, signal),
    ) as Completion;
  }

  async #unloadIfUnused(adapter: LoadedAdapter): Promise<void> {
    if (adapter.rows > 0 || adapter === this.#adapters.at(-1) || !this.#adapters.includes(adapter)) return;
    this.#adapters = this.#adapters.filter((each) => each !== adapter);
    await this.#call("/v1/unload_lora_adapter", { lora_name: adapter.name });
    await rm(adapter.folder, { recursive: true, force: true });
  }

  /** Returns the body of the answer. @param signal of a request that may take as long as a row does */
  async #call(path: string, body?: object, signal = AbortSignal.timeout(ANSWER_SECONDS * 1000)): Promise<string> {
    const { url } = this.#o;
    const { status, text } = await callJson(new URL(path, url), { body, signal }).catch((cause: Error) => {
      signal.throwIfAborted();
      throw new GeneratorError("failed", `vLLM at ${url} does not answer: ${cause.message}`, { cause });
    });
    if (status === 200) return text;
    throw new GeneratorError(
      status === 400 ? "request" : "failed",
      `vLLM answered ${status} to ${path}: ${text.slice(0, 500)}`,
    );
  }
}

function rowOf({ id }: RowRequest, { choices = [] }: Completion): Row {
  const { token_ids: tokens, logprobs, finish_reason: finish } = choices[0] ?? {};
  const given = logprobs?.token_logprobs;
  if (!tokens || tokens.length === 0)
    throw new GeneratorError("failed", "vLLM's answer has no token_ids: this version does not know return_token_ids");
  if (given?.length !== tokens.length)
    throw new GeneratorError("failed", `vLLM gave ${given?.length ?? 0} log-probs for ${tokens.length} tokens`);
  if (finish !== "stop" && finish !== "length")
    throw new GeneratorError("failed", `vLLM ended a row with finish_reason ${finish}`);
  const logProbs = given.map((value) => value ?? LEAST_LOG_PROB);
  return { id, tokens, logProbs, finish };
}
