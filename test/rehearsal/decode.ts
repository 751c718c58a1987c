/**
 * Measures generation's demands on a GPU with the shape of Qwen2.5-3B, LoRA on bfloat16 files and 64 slots. Rehearses two small numbers of
 * layers; each layer costs the same. `decode.json` has the current numbers; a test fails if one becomes worse.
 *
 *     node test/rehearsal/decode.ts     # writes decode.json, after a change that improves one
 */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import path from "node:path";
import type { RunningEngine } from "../../learner/engine/engine.ts";
import { SHAPES } from "../../learner/engine/model/hollow.fixture.ts";
import { elementCount, parameters } from "../../learner/engine/model/weights.ts";
import { ADAPTER } from "../bench/gpu.ts";
import { ensureRehearsal, rehearsalEnvironment } from "./build.ts";
import { type Counts, counting } from "./counts.ts";
import { onDevice } from "./phases.ts";

export const DECODE = path.join(import.meta.dirname, "decode.json");

const CONFIG = SHAPES["3b"];
const SLOTS = 64;
const DEPTHS = [2, 4] as const;
const HALF_BYTES = 2;

/** Compared numbers of one token in all slots. */
const COMPARED = [
  ...(["graphLaunches", "graphKernels", "graphCopies", "launches", "products", "toDevice", "toDeviceBytes"] as const),
  ...(["toHost", "toHostBytes", "onDevice", "synchronisations"] as const),
] as const satisfies (keyof Counts)[];
type Token = Record<(typeof COMPARED)[number], number>;

export interface Decode {
  /** Numbers of a token with all the model's layers, and of one layer alone. */
  captured: { token: Token; layer: Token };
  uncaptured: { token: Token; layer: Token };
}

interface Asked {
  layers: number;
  prompt: number;
  response: number;
}

async function engineOf<T>({ layers, prompt, response }: Asked, act: (engine: RunningEngine) => Promise<T>) {
  const shape = { config: { ...CONFIG, layers }, batch: SLOTS, prompt, response };
  const options = { adapter: ADAPTER, slots: SLOTS, positions: prompt + response };
  return onDevice(shape, options, act);
}

/** Generates the same number of samples for each prompt; all responses have the longest length. */
function generate(engine: RunningEngine, prompts: number, samples: number, length: number, maxNewTokens: number) {
  const rows = Array.from({ length: prompts * samples }, (_, i) =>
    Int32Array.from({ length }, (_, at) => (at * 7 + Math.floor(i / samples)) % 1000),
  );
  return engine.generate(rows, { seeds: rows.map((_, i) => i), temperature: 1, topP: 1, maxNewTokens });
}

/** Returns the numbers of one token in all slots, from the difference of two lengths. */
async function tokenOf(layers: number): Promise<Token> {
  const [few, more] = [16, 48];
  return engineOf({ layers, prompt: 16, response: more }, async (engine) => {
    const run = (tokens: number) => counting(() => generate(engine, SLOTS, 1, 16, tokens));
    await run(few); // makes sessions and captures steps
    const [a, b] = [(await run(few)).counts, (await run(more)).counts];
    return Object.fromEntries(COMPARED.map((name) => [name, (b[name] - a[name]) / (more - few)])) as Token;
  });
}

async function tokens(): Promise<Decode["captured"]> {
  const [few, more] = [await tokenOf(DEPTHS[0]), await tokenOf(DEPTHS[1])];
  const each = (of: (name: keyof Token) => number) =>
    Object.fromEntries(COMPARED.map((name) => [name, of(name)])) as Token;
  const layer = each((name) => (more[name] - few[name]) / (DEPTHS[1] - DEPTHS[0]));
  return { layer, token: each((name) => more[name] + (CONFIG.layers - DEPTHS[1]) * layer[name]) };
}

export async function decode(): Promise<Decode> {
  const captured = await tokens();
  process.env.LONGRUN_CUDA_GRAPHS = "off"; // the engine's worker reads it
  try {
    return { captured, uncaptured: await tokens() };
  } finally {
    delete process.env.LONGRUN_CUDA_GRAPHS;
  }
}

/**
 * Returns the bytes across the bus while 160 samples of 16 prompts pass through the slots, and the generated tokens, with a cache of
 * `positions`.
 */
export async function busBytes(positions: number) {
  const [prompt, generated, prompts, samples] = [100, 32, 16, 10];
  return engineOf({ layers: DEPTHS[0], prompt: positions - generated, response: generated }, async (engine) => {
    const run = () => counting(() => generate(engine, prompts, samples, prompt, generated));
    await run();
    const { counts } = await run();
    return { toDevice: counts.toDeviceBytes, toHost: counts.toHostBytes, tokens: prompts * samples * generated };
  });
}

/** Returns the peak of device memory of generation alone, with weights and cache, for all layers, in bytes. */
export async function generationPeak(prompt: number, response: number) {
  const peakOf = async (layers: number) => {
    const asked = { layers, prompt, response };
    return (await counting(() => engineOf(asked, (engine) => generate(engine, SLOTS, 1, prompt, 4)))).counts.peakBytes;
  };
  const [few, more] = [await peakOf(DEPTHS[0]), await peakOf(DEPTHS[1])];
  const peak = more + ((CONFIG.layers - DEPTHS[1]) * (more - few)) / (DEPTHS[1] - DEPTHS[0]);
  const weights = parameters(CONFIG).reduce((sum, { shape }) => sum + HALF_BYTES * elementCount(shape), 0);
  const { layers, keyValueHeads, headSize } = CONFIG;
  const cache = 2 * layers * SLOTS * (prompt + response) * keyValueHeads * headSize * HALF_BYTES;
  return { peak, weights, cache };
}

if (import.meta.main) {
  if (process.env.REHEARSAL_FOLDER === undefined) {
    await ensureRehearsal((line) => process.stderr.write(`${line}\n`));
    const env = { ...process.env, ...rehearsalEnvironment() };
    process.exit(spawnSync(process.execPath, process.argv.slice(1), { stdio: "inherit", env }).status ?? 1);
  }
  writeFileSync(DECODE, `${JSON.stringify(await decode(), null, 2)}\n`);
  process.exit(0);
}
