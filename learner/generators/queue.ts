/** Rows that wait for a generator, and the calls that they belong to. */
import type { Engine, Response } from "../engine/index.ts";
import type { RowRequest } from "./protocol.ts";

/** A response and the policy version that wrote it. */
export interface VersionedResponse extends Response {
  policyVersion: number;
}

export type GenerateOptions = Pick<
  Parameters<Engine["generate"]>[1],
  "seeds" | "temperature" | "topP" | "maxNewTokens"
>;

/** Called with each response when it has ended. */
export type Listener = (index: number, part: VersionedResponse & { ended: boolean }) => void;

interface Call {
  options: GenerateOptions;
  listener: Listener;
  responses: VersionedResponse[];
  left: number;
  resolve: (responses: VersionedResponse[]) => void;
  reject: (cause: unknown) => void;
}

export interface Row {
  call: Call;
  index: number;
  prompt: Int32Array;
  request: RowRequest;
  /** Why generators refused it, by their names. */
  refusals: Map<string, Error>;
}

export class RowQueue {
  readonly #waiting: Row[] = [];
  readonly #calls = new Set<Call>();
  #nextId = 0;

  /** Rows that wait for a generator. */
  get waiting(): number {
    return this.#waiting.length;
  }

  /** Whether a call has rows that are not written yet. */
  get isOpen(): boolean {
    return this.#calls.size > 0;
  }

  /** Adds a row for each prompt. @returns all responses, once the last has ended */
  add(
    prompts: readonly Int32Array[],
    options: GenerateOptions,
    stopTokens: readonly number[],
    listener: Listener,
  ): Promise<VersionedResponse[]> {
    const { promise, resolve, reject } = Promise.withResolvers<VersionedResponse[]>();
    const call: Call = { options, listener, responses: [], left: prompts.length, resolve, reject };
    this.#calls.add(call);
    const { temperature, topP, maxNewTokens: maxTokens, seeds } = options;
    for (const [index, prompt] of prompts.entries()) {
      const sampling = { seed: seeds[index]!, temperature, topP, maxTokens, stopTokens: [...stopTokens] };
      const request = { id: String(this.#nextId++), prompt: Array.from(prompt), ...sampling };
      this.#waiting.push({ call, index, prompt, request, refusals: new Map() });
    }
    return promise;
  }

  /** Removes and returns the next row for which `fits` holds. */
  take(fits: (row: Row) => boolean): Row | undefined {
    const at = this.#waiting.findIndex(fits);
    return at < 0 ? undefined : this.#waiting.splice(at, 1)[0];
  }

  /** Puts rows back at the front of the queue, except rows of failed calls. @returns their number */
  putBack(rows: readonly Row[]): number {
    const open = rows.filter(({ call }) => this.#calls.has(call));
    this.#waiting.unshift(...open);
    return open.length;
  }

  /** Hands a row's response to its call. */
  finish({ call, index }: Row, response: VersionedResponse): void {
    if (!this.#calls.has(call)) return;
    call.responses[index] = response;
    call.left--;
    call.listener(index, { ...response, ended: true });
    if (call.left > 0) return;
    this.#calls.delete(call);
    call.resolve(call.responses);
  }

  /** Ends the call that a row belongs to, with an error. */
  fail({ call }: Pick<Row, "call">, cause: unknown): void {
    if (!this.#calls.delete(call)) return;
    const others = this.#waiting.filter((row) => row.call !== call);
    this.#waiting.splice(0, this.#waiting.length, ...others);
    call.reject(cause);
  }

  failAll(cause: unknown): void {
    for (const call of [...this.#calls]) this.fail({ call }, cause);
  }
}
