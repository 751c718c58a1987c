/**
 * Solutions from an OpenAI-compatible API (`POST URL/chat/completions`), in the engine's place. A request holds the model's name, the prompt's
 * messages, temperature, top_p if it is not 1, max_tokens and a seed, and the key as its bearer token; redirects are not followed.
 */

import { ENDPOINT_KEY, type EndpointSettings } from "../../../proto/solve.ts";
import type { Response } from "../../engine/index.ts";
import { send, textOf } from "../../generators/http.ts";
import type { Writers } from "../../rollout/generation.ts";
import { type Answer, readAnswer } from "./answer.ts";
import { decodeMessages, encodeText } from "./bytes.ts";
import { EndpointError, PassingFault } from "./errors.ts";
import { LIMITS, type Limits } from "./limits.ts";
import { retried } from "./retry.ts";
import type { UsageLog } from "./usage.ts";

export interface EndpointOptions {
  settings: EndpointSettings;
  /** Absent: the endpoint needs none. */
  key: string | undefined;
  usage: UsageLog;
  signal: AbortSignal;
  /** Called with one line before each wait for another try. */
  onFault: (line: string) => void;
  limits?: Partial<Limits>;
}

type Options = Parameters<Writers["generate"]>[1];
type Listener = Parameters<Writers["generate"]>[2];

/** Seeds of OpenAI's API are integers; most servers take 31 bits. */
const SEEDS = 2 ** 31;

export class Endpoint implements Writers {
  readonly #o: EndpointOptions;
  readonly #limits: Limits;
  readonly #url: URL;
  /** Requests that wait for one of `concurrency` places. */
  readonly #waiting: (() => void)[] = [];
  #free: number;
  /** The first refusal: no further request is sent. */
  #refusal: Error | undefined;

  constructor(o: EndpointOptions) {
    this.#o = o;
    this.#limits = { ...LIMITS, ...o.limits };
    this.#free = o.settings.concurrency;
    this.#url = completionsOf(o.settings.url);
  }

  get slots(): number {
    return this.#o.settings.concurrency;
  }

  /** @param prompts as `encodeMessages` returns them @throws EndpointError; the signal's reason */
  generate(prompts: readonly Int32Array[], options: Options, listener?: Listener): Promise<Response[]> {
    return Promise.all(
      prompts.map(async (prompt, index) => {
        const { text, finished } = await this.#inTurn(() => this.#answerTo(prompt, options, options.seeds[index]!));
        const response = encodeText(text);
        const answer = { response, logProbs: new Float32Array(response.length), finished };
        listener?.(index, answer);
        return answer;
      }),
    );
  }

  async #inTurn<Result>(work: () => Promise<Result>): Promise<Result> {
    if (this.#free === 0) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    else this.#free--;
    try {
      if (this.#refusal) throw this.#refusal;
      return await work();
    } catch (error) {
      if (error instanceof EndpointError) this.#refusal ??= error;
      throw error;
    } finally {
      const next = this.#waiting.shift();
      if (next) next();
      else this.#free++;
    }
  }

  async #answerTo(prompt: Int32Array, options: Options, wide: number): Promise<Answer> {
    const { settings, signal, onFault } = this.#o;
    const seed = Math.floor(wide) % SEEDS;
    const fields: Record<string, unknown> = {
      model: settings.model,
      messages: decodeMessages(prompt),
      temperature: options.temperature,
      ...(options.topP !== 1 && { top_p: options.topP }),
      max_tokens: options.maxNewTokens,
      seed,
      ...settings.body,
    };
    const kept = Object.entries(fields).filter(([, value]) => value !== null);
    const body = Buffer.from(JSON.stringify(Object.fromEntries(kept)));
    return retried(() => this.#attempt(body, seed), this.#limits, {
      signal,
      onFault: (fault, seconds) => onFault(`${fault.message}; trying again in ${seconds.toFixed(1)} s`),
    });
  }

  async #attempt(body: Buffer, seed: number): Promise<Answer> {
    const { key, usage, signal } = this.#o;
    const { requestSeconds, answerBytes } = this.#limits;
    const started = performance.now();
    const said = (promptTokens: number, answerTokens: number, fault?: string) => {
      const seconds = Math.round(performance.now() - started) / 1000;
      usage.add({ at: new Date().toISOString(), seed, seconds, promptTokens, answerTokens, ...(fault && { fault }) });
    };
    const timeout = AbortSignal.timeout(requestSeconds * 1000);
    try {
      const headers = {
        "content-type": "application/json",
        accept: "application/json",
        "content-length": body.length,
        ...(key && { authorization: `Bearer ${key}` }),
      };
      const ends = AbortSignal.any([signal, timeout]);
      const answer = await send(this.#url, {}, { method: "POST", headers, body, signal: ends }).catch(passing);
      const text = await textOf(answer, answerBytes).catch(passing);
      const status = answer.statusCode ?? 0;
      // Here, because a message may be cut within the key. A solution stays as it is: a key can be a word.
      const read = readAnswer(status, status === 200 ? text : this.#withoutKey(text), answer.headers["retry-after"]);
      said(read.promptTokens, read.answerTokens);
      return read;
    } catch (error) {
      signal.throwIfAborted();
      const fault = timeout.aborted
        ? new PassingFault(`the endpoint gave no whole answer in ${requestSeconds} s`)
        : error;
      said(0, 0, (fault as Error).message);
      throw fault;
    }
  }

  /** A server may repeat the key in its message. */
  #withoutKey(text: string): string {
    const { key } = this.#o;
    return key ? text.replaceAll(key, () => `[${ENDPOINT_KEY}]`) : text;
  }
}

/** A connection that breaks, or an answer that is too long. */
function passing(cause: unknown): never {
  throw new PassingFault(`the endpoint's answer: ${(cause as Error).message}`, undefined, { cause });
}

/** Returns the address of chat completions below a base such as `https://api.openai.com/v1`. */
export function completionsOf(base: string): URL {
  const url = new URL(base);
  url.pathname = `${url.pathname.replace(/\/+$/, "")}/chat/completions`;
  return url;
}
