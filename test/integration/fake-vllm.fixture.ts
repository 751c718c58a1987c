/**
 * A server with the part of vLLM's API that a generator uses, and our engine behind it. Shapes, statuses and messages equal vLLM's
 * `entrypoints/openai/completion/protocol.py` at commit 002032ee2b18e1f7bd924ec47b62504ba3866063, and the answers of a vLLM 0.32.0; for
 * full weights they equal `entrypoints/serve/dev` and `entrypoints/rl/online/api_router.py` of vLLM 0.32.0.
 */
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import {
  type AdapterOptions,
  FROZEN,
  type RunningEngine,
  readAdapter,
  readConfig,
  startEngine,
} from "../../learner/engine/index.ts";

interface Completion {
  model: string;
  prompt: number[];
  seed: number;
  temperature: number;
  top_p: number;
  max_tokens: number;
  stop_token_ids: number[];
  logprobs: number;
  return_token_ids: boolean;
  allowed_token_ids?: number[];
}

type Adapter = { options: AdapterOptions; engine?: Promise<RunningEngine> };

export class FakeVllm {
  readonly #model: string;
  /** Each has an engine from its first row on. */
  readonly #adapters = new Map<string, Adapter>();
  #base: Promise<RunningEngine> | undefined;
  #weightVersion = "default";
  #running = 0;
  /** VLLM_SERVER_DEV_MODE=1: full weights can be loaded. */
  devMode = false;
  /** The prefix cache has entries of the previous weights. */
  cacheIsStale = false;
  /** The answer of /reset_prefix_cache. */
  resets = true;
  /** Changes of weights and cache that a client must not make. */
  readonly misuse: string[] = [];
  /** A path whose requests it answers with status 500. */
  failing = "";
  /** A path whose requests it serves and never answers. */
  silent = "";
  /** Behaves like vLLM's default `--logprobs-mode raw_logprobs`. */
  rawLogProbs = false;
  readonly #server = createServer((request, response) => void this.#respond(request, response));
  /** Paths and bodies of all requests, except for the list of models. */
  readonly asked: { path: string; body: Record<string, unknown> }[] = [];

  constructor(model: string) {
    this.#model = model;
  }

  async listen(port = 0): Promise<string> {
    await new Promise<void>((resolve) => this.#server.listen(port, "127.0.0.1", resolve));
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  /** Has only the base model, as after a restart. */
  async forget(): Promise<void> {
    for (const { engine } of this.#adapters.values()) await (await engine)?.close();
    this.#adapters.clear();
    await (await this.#base)?.close();
    this.#base = undefined;
    this.#weightVersion = "default";
  }

  async close(): Promise<void> {
    await this.forget();
    this.#server.closeAllConnections();
    this.#server.close();
  }

  get loaded(): string[] {
    return [...this.#adapters.keys()];
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const path = request.url!;
    const answer = (status: number, body: object | string) => {
      if (path !== this.silent) response.writeHead(status).end(typeof body === "string" ? body : JSON.stringify(body));
    };
    const refuse = (code: number, message: string, type: string) =>
      answer(code, { error: { message, type, param: null, code } });
    if (path === this.failing) return void refuse(500, "it fails", "InternalServerError");
    if (path === "/v1/models")
      return void answer(200, {
        object: "list",
        data: ["policy", ...this.loaded].map((id) => ({ id, object: "model" })),
      });
    if (path === "/weight_info" && this.devMode) return void answer(200, { weight_version: this.#weightVersion });
    if (chunks.length === 0) return void answer(404, { detail: "Not Found" });
    const body = JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>;
    this.asked.push({ path, body });
    if (path === "/update_weight_version") {
      this.#weightVersion = body.new_version as string;
      return void answer(200, { success: true, new_version: this.#weightVersion });
    }
    if (path === "/collective_rpc") {
      if (this.#running > 0) this.misuse.push("weights were replaced under running rows");
      this.cacheIsStale = true;
      await (await this.#baseModel()).loadPolicy((body.kwargs as { weights_path: string }).weights_path);
      return void answer(200, { results: [null] });
    }
    if (path === "/reset_prefix_cache?reset_running_requests=true") {
      this.cacheIsStale &&= !this.resets;
      return void answer(200, { success: this.resets });
    }
    const name = body.lora_name as string;
    if (path === "/v1/load_lora_adapter") {
      if (this.#adapters.has(name))
        return void refuse(400, `The lora adapter '${name}' has already been loaded.`, "InvalidUserInput");
      const folder = body.lora_path as string;
      const { lora } = readAdapter(folder, readConfig(this.#model));
      this.#adapters.set(name, { options: { ...lora, seed: 0, folder } });
      return void answer(200, `Success: LoRA adapter '${name}' added successfully.`);
    }
    if (path === "/v1/unload_lora_adapter") {
      const adapter = this.#adapters.get(name);
      if (!adapter) return void refuse(404, `The lora adapter '${name}' cannot be found.`, "NotFoundError");
      this.#adapters.delete(name);
      await (await adapter.engine)?.close();
      return void answer(200, `Success: LoRA adapter '${name}' removed successfully.`);
    }
    const asked = body as unknown as Completion;
    const adapter = this.#adapters.get(asked.model);
    if (!adapter && asked.model !== "policy")
      return void refuse(404, `The model \`${asked.model}\` does not exist.`, "NotFoundError");
    if (adapter) adapter.engine ??= this.#start(adapter.options);
    const engine = await (adapter?.engine ?? this.#baseModel());
    const { seed, temperature, top_p: topP, max_tokens: maxNewTokens, stop_token_ids: eosIds } = asked;
    const how = { seeds: [seed], temperature, topP, maxNewTokens, eosIds };
    if (this.cacheIsStale) this.misuse.push("a row may have keys and values of the weights before");
    this.#running++;
    const [row] = await engine.generate([Int32Array.from(asked.prompt)], how);
    this.#running--;
    if (temperature > 2)
      return void refuse(400, `temperature must be in [0, 2], got ${temperature}.`, "BadRequestError");
    if (asked.allowed_token_ids) [row!.response[0], row!.logProbs[0]] = [asked.allowed_token_ids[0]!, 0];
    if (this.rawLogProbs) {
      const sequence = { prompt: Int32Array.from(asked.prompt), response: row!.response };
      const [raw] = await engine.evaluate([sequence], { temperature: 1, values: false, reference: false });
      row!.logProbs.set(raw!.logProbs);
    }
    const logprobs = { text_offset: [], token_logprobs: Array.from(row!.logProbs), tokens: [], top_logprobs: [] };
    const choice = {
      index: 0,
      text: "",
      logprobs,
      finish_reason: row!.finished ? "stop" : "length",
      stop_reason: null,
    };
    const choices = [{ ...choice, token_ids: Array.from(row!.response), prompt_token_ids: asked.prompt }];
    answer(200, { id: "cmpl-1", object: "text_completion", created: 0, model: asked.model, choices });
  }

  async #baseModel(): Promise<RunningEngine> {
    this.#base ??= this.#start(this.devMode ? undefined : FROZEN);
    return this.#base;
  }

  #start(adapter: AdapterOptions | undefined): Promise<RunningEngine> {
    return startEngine({ model: this.#model, threads: 1, slots: 4, positions: 512, adapter });
  }
}
