/** Examples as token ids, and their division into training and held-out ones. */
import { createHash } from "node:crypto";
import { permutation, type Sequence, type Tokenizer, uniforms } from "../engine/index.ts";
import { DataError, type Example } from "./examples.ts";

export interface Encoded {
  sequences: Sequence[];
  /** examples with more than `maxTokens` tokens, which are left out */
  tooLong: number;
  /** tokens of the longest example, also if it is left out */
  longest: number;
  /** examples with the tokens of an earlier one, which are left out */
  repeated: number;
}

/**
 * Returns the tokens of each prompt and of its response, with the end of the turn.
 *
 * @param endId token that ends a response @param maxTokens most tokens of a prompt and its response
 * @throws DataError naming the example whose chat the model's template refuses
 */
export function encodeExamples(
  examples: readonly Example[],
  tokenizer: Tokenizer,
  endId: number,
  maxTokens: number,
): Encoded {
  const encoded: Encoded = { sequences: [], tooLong: 0, longest: 0, repeated: 0 };
  const seen = new Set<string>();
  for (const example of examples) {
    const sequence = encode(example, tokenizer, endId);
    const tokens = sequence.prompt.length + sequence.response.length;
    const hash = digestOf([sequence]);
    encoded.longest = Math.max(encoded.longest, tokens);
    if (tokens > maxTokens) encoded.tooLong++;
    else if (seen.has(hash)) encoded.repeated++;
    else encoded.sequences.push(sequence);
    seen.add(hash);
  }
  return encoded;
}

function encode({ prompt, response, place }: Example, tokenizer: Tokenizer, endId: number): Sequence {
  const ended = (ids: Int32Array) => Int32Array.of(...ids, endId);
  if (typeof prompt === "string") {
    const before = tokenizer.encode(prompt, { addSpecialTokens: true });
    const whole = tokenizer.encode(prompt + response, { addSpecialTokens: true });
    // a text goes on as its author wrote it, unless a token crosses the boundary
    const joins = before.length < whole.length && before.every((id, i) => id === whole[i]);
    const ids = joins ? whole.subarray(before.length) : tokenizer.encode(response);
    return { prompt: before, response: ids.at(-1) === endId ? ids : ended(ids) };
  }
  try {
    return { prompt: tokenizer.encodeChat([...prompt]), response: ended(tokenizer.encode(response)) };
  } catch (cause) {
    throw new DataError(`${place}: ${(cause as Error).message}`, { cause });
  }
}

/** Returns the digest of sequences, hex: the same data in the same order has the same. */
export function digestOf(sequences: readonly Sequence[]): string {
  const hash = createHash("sha256");
  for (const { prompt, response } of sequences)
    for (const ids of [prompt, response]) hash.update(`${ids.length}\n`).update(ids);
  return hash.digest("hex");
}

/** Divides sequences at random. @param share of the sequences that are held out, rounded down; at least one stays for training */
export function holdOut(sequences: readonly Sequence[], share: number, seed: number) {
  const order = permutation(sequences.length, uniforms(seed, "held-out examples"));
  const count = Math.min(Math.floor(share * sequences.length), sequences.length - 1);
  const held = new Set(order.slice(0, count));
  const chosen = (isHeld: boolean) => sequences.filter((_, i) => held.has(i) === isHeld);
  return { training: chosen(false), heldOut: chosen(true) };
}
