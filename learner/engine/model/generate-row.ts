/** Requests and answers of generation: one row for each prompt. */
import { createHash } from "node:crypto";
import { uniforms } from "./random.ts";

export interface GenerateOptions {
  /** one per prompt: the same seed, prompt and weights give the same response */
  readonly seeds: readonly number[];
  /** 0: the most probable token, with log-probs at temperature 1 */
  readonly temperature: number;
  /** sample from the smallest set of tokens that has this probability; 1: from all, at no cost */
  readonly topP: number;
  readonly maxNewTokens: number;
  /** a response ends with the first of these, and includes it */
  readonly eosIds: readonly number[];
  /** the listener gets tokens every `STREAM_MILLISECONDS`, not once at the end of a response */
  readonly streams?: boolean;
  /** ends the call's rows at once: its promise rejects with the signal's reason */
  readonly signal?: AbortSignal;
}

export interface Response {
  readonly response: Int32Array;
  /** float32 [response length], under softmax(logits / temperature) over the whole vocabulary, also when topP < 1 (as verl does) */
  readonly logProbs: Float32Array;
  /** whether it ended with an EOS token */
  readonly finished: boolean;
}

/** The tokens of a response that the listener does not know yet: all of them if nothing is streamed. */
export interface ResponsePart extends Response {
  readonly ended: boolean;
}

/** @param index index of the response's prompt */
export type Listener = (index: number, part: ResponsePart) => void;

/** Interval between messages to the listener of a stream. */
const STREAM_MILLISECONDS = 20;

/** A prompt, its response so far, and the call that waits for it. */
export class Row {
  readonly prompt: Int32Array;
  /** equal for equal prompts */
  readonly key: string;
  readonly call: GenerateOptions;
  /** the next random number in [0, 1) */
  readonly uniform: () => number;
  readonly answer = Promise.withResolvers<Response>();
  /** the response is complete */
  ended = false;
  readonly #listener: (part: ResponsePart) => void;
  readonly #tokens: number[] = [];
  readonly #logProbs: number[] = [];
  /** tokens that the listener knows, and since when */
  #told = 0;
  #toldAt = 0;

  constructor(prompt: Int32Array, seed: number, call: GenerateOptions, listener: (part: ResponsePart) => void) {
    this.prompt = prompt;
    this.key = createHash("sha256").update(prompt).digest("base64");
    this.call = call;
    this.uniform = uniforms(seed, "tokens");
    this.#listener = listener;
  }

  /** Most tokens of the prompt and the response. */
  get positions(): number {
    return this.prompt.length + this.call.maxNewTokens;
  }

  push(token: number, logProb: number): void {
    this.#tokens.push(token);
    this.#logProbs.push(logProb);
    this.ended = this.call.eosIds.includes(token) || this.#tokens.length === this.call.maxNewTokens;
  }

  /** Sends the listener the newest tokens: at the end of the response, or in a stream every STREAM_MILLISECONDS. */
  tell(now: number): void {
    if (!this.ended && !(this.call.streams && now >= this.#toldAt + STREAM_MILLISECONDS)) return;
    this.#listener({ ...this.response(this.#told), ended: this.ended });
    [this.#told, this.#toldAt] = [this.#tokens.length, now];
  }

  /** The response from token `from` on. */
  response(from = 0): Response {
    return {
      response: Int32Array.from(this.#tokens.slice(from)),
      logProbs: Float32Array.from(this.#logProbs.slice(from)),
      finished: this.call.eosIds.includes(this.#tokens.at(-1)!),
    };
  }
}
