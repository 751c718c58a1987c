/** Reads how large a model is, from its folder's files alone. */
import { closeSync, openSync, readdirSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";

export interface ModelSize {
  parameters: number;
  /** Longest prompt and response together, tokens. */
  positions: number;
}

/** Largest header of a safetensors file, as its format says. */
const MAX_HEADER_BYTES = 100_000_000;

/** Returns undefined for a folder whose files say nothing of it; the learner then names the fault. */
export function modelSize(folder: string): ModelSize | undefined {
  try {
    const config = JSON.parse(readFileSync(join(folder, "config.json"), "utf8")) as Record<string, unknown>;
    const positions = Number(config.max_position_embeddings);
    const files = readdirSync(folder).filter((name) => /^model.*\.safetensors$/.test(name));
    const parameters = files.reduce((sum, name) => sum + elementsIn(join(folder, name)), 0);
    return parameters > 0 && positions > 0 ? { parameters, positions } : undefined;
  } catch {
    return undefined;
  }
}

function elementsIn(path: string): number {
  const file = openSync(path, "r");
  try {
    const length = Buffer.alloc(8);
    readSync(file, length, 0, 8, 0);
    const header = Buffer.alloc(Math.min(Number(length.readBigUInt64LE()), MAX_HEADER_BYTES));
    readSync(file, header, 0, header.length, 8);
    const tensors = JSON.parse(header.toString("utf8")) as Record<string, { shape?: number[] }>;
    return Object.entries(tensors).reduce(
      (sum, [name, { shape = [] }]) => sum + (name === "__metadata__" ? 0 : shape.reduce((a, b) => a * b, 1)),
      0,
    );
  } finally {
    closeSync(file);
  }
}
