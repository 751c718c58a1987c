/**
 * A generator whose engine is a vLLM server on the same machine. Shapes are from vLLM's `entrypoints/openai/completion/protocol.py` and
 * `entrypoints/serve/lora/protocol.py`, commit 002032ee2b18e1f7bd924ec47b62504ba3866063; for full weights of `entrypoints/serve/dev` and
 * `entrypoints/rl/online/api_router.py` of vLLM 0.32.0.
 */
import { readdir, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { readHeader } from "../engine/index.ts";
import type { Backend, Row } from "./backend.ts";
import { GeneratorError } from "./errors.ts";
import { callJson } from "./http.ts";
import type { RowRequest, WeightsKind, WeightsName } from "./protocol.ts";
import { parseModels, parseRow, parseSuccess, parseWeightVersion, type WrittenRow } from "./vllm-answers.ts";

export interface VllmOptions {
  /** The URL that vLLM listens on, such as http://127.0.0.1:8000. */
  url: string;
  /** A folder that vLLM can read. */
  adapterFolder: string;
  /** vLLM's name of the base model (`--served-model-name`). */
  modelName: string;
  /** vLLM's `--max-num-seqs`. */
  slots: number;
  /** The device on which vLLM computes. */
  device: Backend["device"];
  /** Default `ANSWER_SECONDS`. */
  answerSeconds?: number;
  /** called with one line about each fault that ends no request */
  onFault: (line: string) => void;
}

/** Prefix of the names of adapters and of full weights. */
const PREFIX = "longrun-";
/** vLLM's weight version while full weights are loaded. */
const LOADING = `${PREFIX}loading`;
/** Log-probs that vLLM gives for a probability of 0. */
const LEAST_LOG_PROB = -9999;
/** Any token that no model is certain of. */
const ONLY_TOKEN = 7;
/** Seconds that vLLM may take to load or unload an adapter, or to list its models. */
const ANSWER_SECONDS = 120;
/** Seconds that vLLM may take to read full weights. */
const RELOAD_SECONDS = 900;

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
  #newest: LoadedAdapter | undefined;
  /** Adapters that vLLM has, or may have, beside the newest. */
  #older: LoadedAdapter[] = [];
  /** Name of the full weights that replace vLLM's base model; undefined with adapters, or before the first weights. */
  #whole: string | undefined;
  readonly #running = new Set<Promise<void>>();

  private constructor(options: VllmOptions) {
    this.#o = options;
    this.device = options.device;
    this.slots = options.slots;
  }

  /** @throws GeneratorError `failed` unless vLLM answers and has the model */
  static async connect(options: VllmOptions): Promise<VllmBackend> {
    const backend = new VllmBackend(options);
    const names = await backend.#models();
    // adapters of a sidecar that ended before
    const left = names.filter((id) => id.startsWith(PREFIX) && id !== options.modelName);
    backend.#older = left.map((name) => ({ name, folder: join(options.adapterFolder, name), rows: 0 }));
    await backend.#unloadUnused();
    const remedy = "give --model-name what vLLM's --served-model-name says";
    if (!names.includes(options.modelName))
      throw new GeneratorError("failed", `${options.url} has ${names.join(", ")}, not ${options.modelName}; ${remedy}`);
    await backend.#checkLogProbs();
    return backend;
  }

  /** Checks that log-probs are the processed ones: if only one token is allowed, its log-prob is 0, but not in vLLM's default mode. */
  async #checkLogProbs(): Promise<void> {
    const sampling = { seed: 1, temperature: 1, topP: 1, maxTokens: 1, stopTokens: [] };
    const row = { id: "", prompt: [1, 2, 3], ...sampling };
    const only = { allowed_token_ids: [ONLY_TOKEN] };
    const [logProb] = (await this.#complete(this.#o.modelName, row, undefined, only)).logProbs;
    if (logProb != null && logProb > -0.01) return;
    const found = `the only token that is allowed has log-prob ${logProb}, not 0`;
    throw new GeneratorError("failed", `${found}: start vLLM with --logprobs-mode processed_logprobs`);
  }

  /** Returns whether vLLM still has the newest weights. A restarted vLLM has lost them. */
  async hasWeights(): Promise<boolean> {
    if (this.#whole !== undefined) return (await this.#weightVersion()) === this.#whole;
    return this.#newest !== undefined && (await this.#models()).includes(this.#newest.name);
  }

  async load(folder: string, { policyVersion, digest, kind }: WeightsName & { kind: WeightsKind }): Promise<void> {
    const name = `${PREFIX}${policyVersion}-${digest.slice(0, 12)}`;
    const own = join(this.#o.adapterFolder, name);
    await rm(own, { recursive: true, force: true });
    await rename(folder, own);
    if (kind === "adapter") return this.#loadAdapter(name, own);
    try {
      await this.#loadWhole(name, own);
    } finally {
      await rm(own, { recursive: true, force: true });
    }
  }

  /** Each version has a name of its own: vLLM's prefix cache uses the name as its key, and would mix two versions of one name. */
  async #loadAdapter(name: string, own: string): Promise<void> {
    const known = [this.#newest, ...this.#older].find((each) => each?.name === name);
    const adapter = known ?? { name, folder: own, rows: 0 };
    try {
      if ((await this.#weightVersion())?.startsWith(PREFIX))
        throw new GeneratorError("request", "vLLM has full weights in place of its base model's: start it again");
      // vLLM already has it after a repeated request, or after an answer that came too late
      if (!(await this.#models()).includes(name))
        await this.#call("/v1/load_lora_adapter", { lora_name: name, lora_path: own });
      if (this.#newest && this.#newest !== adapter) this.#older.push(this.#newest);
      this.#older = this.#older.filter((each) => each !== adapter);
      this.#newest = adapter;
    } catch (cause) {
      if (!known) this.#older.push(adapter);
      throw cause;
    } finally {
      await this.#unloadUnused();
    }
  }

  /**
   * Replaces the base model's weights by full weights, after the running rows. The prefix cache still has keys and values of the earlier
   * weights, so the version counts only after the cache was reset.
   */
  async #loadWhole(name: string, own: string): Promise<void> {
    const remedy =
      "set VLLM_SERVER_DEV_MODE=1, train with model.adaptation.type LoRA and generation.weightSync Adapter, or use engine Longrun";
    if ((await this.#weightVersion()) === undefined)
      throw new GeneratorError("request", `this vLLM cannot replace its weights: ${remedy}`);
    if (this.device === "cpu" && (await isTied(own)))
      throw new GeneratorError(
        "request",
        "vLLM on a CPU does not replace an output layer that is tied to the embedding (tie_word_embeddings): use a GPU, or engine Longrun",
      );
    await Promise.allSettled(this.#running);
    this.#whole = undefined;
    await this.#call("/update_weight_version", { new_version: LOADING });
    const reload = { method: "reload_weights", kwargs: { weights_path: own } };
    await this.#call("/collective_rpc", reload, { seconds: RELOAD_SECONDS });
    const reset = "/reset_prefix_cache?reset_running_requests=true";
    if (!parseSuccess(reset, await this.#call(reset, {})))
      throw new GeneratorError("failed", "vLLM did not reset its prefix cache");
    await this.#call("/update_weight_version", { new_version: name });
    this.#whole = name;
  }

  async generate(rows: readonly RowRequest[], signal: AbortSignal, onRow: (row: Row) => void): Promise<void> {
    const running = this.#whole === undefined ? this.#adapted(rows, signal, onRow) : this.#plain(rows, signal, onRow);
    this.#running.add(running);
    await running.finally(() => this.#running.delete(running));
  }

  async #plain(rows: readonly RowRequest[], signal: AbortSignal, onRow: (row: Row) => void): Promise<void> {
    // a restarted vLLM has its base model's weights under the same name
    if (!(await this.hasWeights())) throw new GeneratorError("version", "vLLM has other weights: it was started again");
    await this.#write(this.#o.modelName, rows, signal, onRow);
  }

  async #adapted(rows: readonly RowRequest[], signal: AbortSignal, onRow: (row: Row) => void): Promise<void> {
    const adapter = this.#newest;
    if (!adapter) throw new Error("rows came before weights");
    adapter.rows += rows.length;
    try {
      await this.#write(adapter.name, rows, signal, onRow);
    } finally {
      adapter.rows -= rows.length;
      void this.#unloadUnused();
    }
  }

  async #write(
    model: string,
    rows: readonly RowRequest[],
    signal: AbortSignal,
    onRow: (row: Row) => void,
  ): Promise<void> {
    const failed = new AbortController();
    const either = AbortSignal.any([signal, failed.signal]);
    const one = async (row: RowRequest) => {
      try {
        const { tokens, logProbs, finish } = await this.#complete(model, row, either);
        onRow({ id: row.id, tokens, logProbs: logProbs.map((value) => value ?? LEAST_LOG_PROB), finish });
      } catch (cause) {
        failed.abort(cause); // an answer with a part of the rows is an error; the learner sends the rows elsewhere
      }
    };
    await Promise.all(rows.map(one));
    either.throwIfAborted();
  }

  async close(): Promise<void> {}

  async #complete(model: string, row: RowRequest, signal?: AbortSignal, more: object = {}): Promise<WrittenRow> {
    const { prompt, seed, temperature, topP, maxTokens, stopTokens } = row;
    // with top-p vLLM normalises log-probs over the remaining tokens, and the learner over all tokens
    if (topP !== 1) throw new GeneratorError("request", `topP is ${topP}: with vLLM model.topP must be 1`);
    const sampling = { seed, temperature, top_p: 1, max_tokens: maxTokens, stop_token_ids: stopTokens };
    const output = { logprobs: 0, return_token_ids: true, skip_special_tokens: false };
    const path = "/v1/completions";
    return parseRow(path, await this.#call(path, { model, prompt, ...sampling, ...output, ...more }, { signal }));
  }

  /** Unloads older adapters that generate no row. An adapter that vLLM does not unload now is unloaded at the next occasion. */
  async #unloadUnused(): Promise<void> {
    const unused = this.#older.filter(({ rows }) => rows === 0);
    this.#older = this.#older.filter((each) => !unused.includes(each));
    for (const adapter of unused)
      await this.#unload(adapter).catch((cause: Error) => {
        this.#older.push(adapter);
        this.#o.onFault(`adapter ${adapter.name} is still loaded: ${cause.message}`);
      });
  }

  async #unload({ name, folder }: LoadedAdapter): Promise<void> {
    const path = "/v1/unload_lora_adapter";
    const { status, text } = await this.#ask(path, { lora_name: name });
    if (status !== 200 && status !== 404) throw refusal(status, path, text); // 404: it has no such adapter
    await rm(folder, { recursive: true, force: true });
  }

  /** Returns the names of the base model and of the adapters that vLLM has. */
  async #models(): Promise<string[]> {
    const path = "/v1/models";
    return parseModels(path, await this.#call(path));
  }

  /** Returns "default", or the last version that was set; undefined: this vLLM has no such endpoint. */
  async #weightVersion(): Promise<string | undefined> {
    const path = "/weight_info";
    const { status, text } = await this.#ask(path);
    if (status === 404) return undefined;
    if (status === 200) return parseWeightVersion(path, text);
    throw refusal(status, path, text);
  }

  /** Returns the body of the answer. */
  async #call(path: string, body?: object, limit?: Limit): Promise<string> {
    const { status, text } = await this.#ask(path, body, limit);
    if (status === 200) return text;
    throw refusal(status, path, text);
  }

  async #ask(path: string, body?: object, limit: Limit = {}) {
    const { url, answerSeconds = ANSWER_SECONDS } = this.#o;
    const { signal, seconds = answerSeconds } = limit;
    const end = signal ?? AbortSignal.timeout(seconds * 1000);
    return callJson(new URL(path, url), { body, signal: end }).catch((cause: Error) => {
      signal?.throwIfAborted();
      const problem = end.aborted ? `it took more than ${seconds} s for ${path}` : cause.message;
      throw new GeneratorError("failed", `vLLM at ${url} does not answer: ${problem}`, { cause });
    });
  }
}

/** Limit of a request: a signal for a row, which may take long, or a number of seconds. */
type Limit = { signal?: AbortSignal | undefined; seconds?: number };

/** Returns whether the output layer is tied to the embedding. On a CPU vLLM packs a copy of it that `reload_weights` does not update. */
async function isTied(folder: string): Promise<boolean> {
  const files = (await readdir(folder)).filter((name) => name.endsWith(".safetensors"));
  const tensors = files.flatMap((name) => readHeader(join(folder, name)).tensors);
  return !tensors.some(({ name }) => name === "lm_head.weight");
}

const refusal = (status: number | undefined, path: string, text: string) =>
  new GeneratorError(
    status === 400 ? "request" : "failed",
    `vLLM answered ${status} to ${path}: ${text.slice(0, 500)}`,
  );
