/** Model folders without weights, requests for plans, and budgets. */
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after } from "node:test";
import type { Budget } from "./fit.ts";
import { SHAPES, writeHollowModel } from "./model/hollow.fixture.ts";
import { PROJECTIONS } from "./model/lora.ts";
import type { PlanRequest } from "./plan.ts";

export const GB = 1e9;
const folder = fs.mkdtempSync(path.join(os.tmpdir(), "plan-"));
after(() => fs.rmSync(folder, { recursive: true }));
export const SMALL = {
  ...SHAPES["0.5b"],
  ...{ vocabSize: 2048, hiddenSize: 128, intermediateSize: 384, layers: 4, heads: 4, headSize: 32 },
};
export function model(name: keyof typeof SHAPES | "small", dtype?: "F32" | "BF16"): string {
  const at = path.join(folder, `${name}-${dtype}`);
  if (!fs.existsSync(at)) writeHollowModel(at, name === "small" ? SMALL : SHAPES[name], dtype);
  return at;
}
export const LORA = { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 0 };
/** A manifest's defaults. */
export const PAPER = {
  ...{ adapter: undefined, critic: true, device: { kind: "cpu" } as const },
  ...{ maxPromptTokens: 1024, maxResponseTokens: 1024, microBatchSize: 8 },
  ...{ generationBatchSize: 64, samplesPerPrompt: 1 },
};
export const small = (change: Partial<PlanRequest> = {}): PlanRequest => ({
  ...PAPER,
  model: model("small"),
  ...change,
});
export const host = (bytes: number): Budget => ({ host: { bytes, source: "free on this machine" }, gpu: undefined });
export const bytesOf = ({ rows }: { rows: { what: string; hostBytes: number }[] }, what: string) =>
  rows.find((row) => row.what === what)!.hostBytes;

/** Returns the first `count` GPUs. */
export const gpus = (count: number) => Array.from({ length: count }, (_, id) => ({ kind: "cuda", id }) as const);
