/** The thread of encoder.ts. Its data are the tokenizer's files. */
import { parentPort, workerData } from "node:worker_threads";
import { type Message, serveCalls, Tokenizer, type TokenizerFiles } from "../engine/index.ts";

export class Encoding {
  readonly #tokenizer = new Tokenizer(workerData as TokenizerFiles);

  ready(): void {}

  encode(prompt: string | readonly Message[], addSpecialTokens: boolean): Int32Array {
    return typeof prompt === "string"
      ? this.#tokenizer.encode(prompt, { addSpecialTokens })
      : this.#tokenizer.encodeChat(prompt);
  }
}

serveCalls(parentPort!, () => new Encoding());
