/** The thread of encoder.ts. Its data are the tokenizer's files. */
import { parentPort, workerData } from "node:worker_threads";
import { type Message, serveCalls, Tokenizer, type TokenizerFiles } from "../engine/index.ts";

/** What a prompt gets besides its own tokens. */
export interface Around {
  /** Whether a text gets the tokens that tokenizer.json puts around a text. Messages have those of the template. */
  readonly addSpecialTokens: boolean;
  /** Text that the answer to messages begins with. */
  readonly answerPrefix?: string | undefined;
}

export class Encoding {
  readonly #tokenizer = new Tokenizer(workerData as TokenizerFiles);

  ready(): void {}

  encode(prompt: string | readonly Message[], { addSpecialTokens, answerPrefix }: Around): Int32Array {
    return typeof prompt === "string"
      ? this.#tokenizer.encode(prompt, { addSpecialTokens })
      : this.#tokenizer.encodeChat(prompt, answerPrefix);
  }
}

serveCalls(parentPort!, () => new Encoding());
