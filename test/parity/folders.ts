/**
 * Writes the folders of the parity tests:
 *
 *     node test/parity/folders.ts OUT
 *
 * Weights come from a hash of the tensor's name and the position in it, so they are the same everywhere and no weight file has to be
 * stored. They are small multiples of 1/128, which bfloat16 and float16 hold exactly.
 */
import fs from "node:fs";
import path from "node:path";
import { parseConfig } from "../../learner/engine/model/config.ts";
import { saveWeights } from "../../learner/engine/model/files.ts";
import { elementCount, parameters } from "../../learner/engine/model/weights.ts";
import { CASES, type ParityCase } from "./cases.ts";

export function writeFolder(folder: string, { config, dtype, shardBytes }: ParityCase): void {
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(config));
  const tensors = parameters(parseConfig(config)).map(({ name, shape, kind }) => ({
    name,
    shape,
    read: () => randomTensor(name, elementCount(shape), kind === "norm" ? 1 : 0),
  }));
  saveWeights(folder, tensors, { dtype, shardBytes });
}

/** Returns numbers in centre - 0.5 .. centre + 0.5, multiples of 1/128. */
function randomTensor(name: string, count: number, centre: number): Float32Array {
  const seed = hashOf(name);
  return Float32Array.from({ length: count }, (_, i) => centre + (mix(seed + i) >>> 25) / 128 - 0.5);
}

/** Returns the tokens of a sequence; `index` distinguishes the sequences of a case. */
export function tokensOf({ name, config }: ParityCase, index: number, length: number): Int32Array {
  const seed = hashOf(`${name} ${index}`);
  return Int32Array.from({ length }, (_, i) => mix(seed + i) % (config.vocab_size as number));
}

/** FNV-1a, 32 bits. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5;
  for (const byte of Buffer.from(text)) hash = Math.imul(hash ^ byte, 0x01000193);
  return hash >>> 0;
}

/** The finaliser of MurmurHash3 over a Weyl sequence. */
function mix(counter: number): number {
  let h = Math.imul(counter, 0x9e3779b9);
  h = Math.imul(h ^ (h >>> 16), 0x85ebca6b);
  h = Math.imul(h ^ (h >>> 13), 0xc2b2ae35);
  return (h ^ (h >>> 16)) >>> 0;
}

/** Length of a greedy continuation's prompt, in tokens. */
export const GREEDY_PROMPT = 8;
export const GREEDY_TOKENS = 256;

if (import.meta.main) {
  const out = process.argv[2];
  if (out === undefined) throw new Error("usage: node test/parity/folders.ts OUT");
  for (const parity of CASES) {
    const folder = path.join(out, parity.name);
    writeFolder(folder, parity);
    const sequences = parity.lengths.map((length, index) => [...tokensOf(parity, index, length)]);
    const prompt = [...tokensOf(parity, parity.lengths.length, GREEDY_PROMPT)];
    fs.writeFileSync(
      path.join(folder, "request.json"),
      JSON.stringify({ sequences, prompt, newTokens: GREEDY_TOKENS }),
    );
  }
}
