/**
 * Tokenizes prompts in a thread of its own, one after the other, with a deadline. A long text, or an unfortunate pattern in tokenizer.json,
 * then delays other prompts for some seconds, but neither running answers nor /health.
 */
import { type Message, type TokenizerFiles, WorkerThread } from "../engine/index.ts";
import type { Around, Encoding } from "./encoder-thread.ts";
import { RequestError } from "./errors.ts";

export interface Encoded {
  /** int32 [prompt] */
  readonly tokens: Int32Array;
  /** How long it took, without the time in the queue. */
  readonly milliseconds: number;
}

export interface EncodeOptions extends Around {
  /** The deadline, from the beginning of this prompt. */
  readonly milliseconds: number;
  /** Takes the prompt out of the queue, with the signal's reason. */
  readonly signal?: AbortSignal;
}

export interface PromptEncoder {
  /** @throws RequestError after the deadline @throws Error with code `tokenizer` if the chat template refuses the messages */
  encode(prompt: string | readonly Message[], options: EncodeOptions): Promise<Encoded>;
}

export class EncoderThread implements PromptEncoder {
  readonly #files: TokenizerFiles;
  #thread: WorkerThread<Encoding>;
  #last: Promise<void> = Promise.resolve();

  constructor(files: TokenizerFiles) {
    this.#files = files;
    this.#thread = this.#start();
  }

  async encode(prompt: string | readonly Message[], options: EncodeOptions): Promise<Encoded> {
    const before = this.#last;
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#last = promise;
    await before;
    try {
      options.signal?.throwIfAborted();
      return await this.#encode(prompt, options);
    } finally {
      resolve();
    }
  }

  /** Ends the thread. Prompts that wait are rejected. */
  close(): Promise<void> {
    return this.#thread.terminate();
  }

  async #encode(prompt: string | readonly Message[], options: EncodeOptions): Promise<Encoded> {
    const thread = this.#thread;
    const { addSpecialTokens, answerPrefix } = options;
    await thread.calls.ready(); // a thread that replaces another one reads the tokenizer first
    const since = performance.now();
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      this.#replace(thread);
      late.reject(tooSlow(prompt, options.milliseconds));
    }, options.milliseconds);
    try {
      const tokens = await Promise.race([
        thread.calls.encode(prompt, { addSpecialTokens, answerPrefix }),
        late.promise,
      ]);
      return { tokens, milliseconds: performance.now() - since };
    } finally {
      clearTimeout(timer);
    }
  }

  #start(): WorkerThread<Encoding> {
    const file = new URL("./encoder-thread.ts", import.meta.url);
    const thread: WorkerThread<Encoding> = new WorkerThread(file, this.#files, "the tokenizer's thread", () =>
      this.#replace(thread),
    );
    thread.calls.ready().catch(() => {}); // who needs it gets the error
    return thread;
  }

  /** Nothing else interrupts a thread that computes. */
  #replace(thread: WorkerThread<Encoding>): void {
    if (this.#thread !== thread) return;
    this.#thread = this.#start();
    void thread.terminate();
  }
}

function tooSlow(prompt: string | readonly Message[], milliseconds: number): RequestError {
  const isText = typeof prompt === "string";
  const characters = isText ? prompt.length : prompt.reduce((sum, { content }) => sum + content.length, 0);
  const remedy = isText
    ? "shorten it, break it by spaces, or give its token ids"
    : "shorten them, break them by spaces, or give /v1/completions token ids";
  const seconds = Math.max(0.1, milliseconds / 1000).toFixed(1);
  const what = `${isText ? "prompt" : "messages"} of ${characters} characters`;
  return new RequestError(400, `${what} took longer than ${seconds} s to tokenize (tokenizeSeconds); ${remedy}`, {
    param: isText ? "prompt" : "messages",
  });
}
