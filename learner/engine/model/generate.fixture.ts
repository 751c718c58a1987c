/** Models with the responses that transformers gives, and generators of them. */
import fs from "node:fs";
import path from "node:path";
import { after } from "node:test";
import { fileURLToPath } from "node:url";
import { parseConfig } from "./config.ts";
import { selectWeights } from "./folder.fixture.ts";
import { type GenerateOptions, Generator } from "./generate.ts";
import { readSafetensors } from "./safetensors.ts";

const FIXTURES = fileURLToPath(new URL("../../../test/fixtures/generation", import.meta.url));
export const NAMES = ["qwen2", "llama"];

export interface Reference {
  cases: { prompt: number[]; greedy: number[]; logProbs: Record<string, number[]>; logits: number[] }[];
}

export const OPTIONS = { temperature: 1, topP: 1, maxNewTokens: 72, eosIds: [] } satisfies Partial<GenerateOptions>;
export const seedsFor = (rows: ArrayLike<unknown>) => Array.from({ length: rows.length }, (_, i) => i + 1);

export function load(name: string) {
  const json = (file: string) => JSON.parse(fs.readFileSync(path.join(FIXTURES, name, file), "utf8"));
  const config = parseConfig(json("config.json"));
  const file = path.join(FIXTURES, name, "model.safetensors");
  const weights = selectWeights(config, readSafetensors(file), file);
  return { config, weights, reference: json("reference.json") as Reference };
}

/** Returns a model with the prompts of its reference, a generator, and functions that generate. */
export function generation(name: string) {
  const { config, weights, reference } = load(name);
  const newGenerator = (more: object = {}) => {
    const generator = new Generator(config, { threads: 1, ...more });
    after(() => generator.release());
    return generator;
  };
  const generator = newGenerator();
  const prompts = reference.cases.map(({ prompt }) => Int32Array.from(prompt));
  const generate = (rows: Int32Array[], options: Partial<GenerateOptions> = {}, by = generator) =>
    by.generate(weights, rows, { ...OPTIONS, seeds: seedsFor(rows), ...options });
  const withSlots = (slots: number, positions?: number) => newGenerator({ slots, ...(positions && { positions }) });
  return { config, weights, reference, prompts, generator, generate, withSlots };
}
