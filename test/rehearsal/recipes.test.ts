/** Compares the numbers in the comments of `manifests/examples` with the plans. `recipes.rehearsal.ts` runs the recipes. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import path from "node:path";
import test from "node:test";
import { planOf, RECIPES } from "./recipes.ts";

const ROOT = path.join(import.meta.dirname, "../..");
/** Relative rounding of a comment's number. */
const ROUNDING = 0.03;

for (const recipe of RECIPES)
  test(`${recipe.file} fits ${recipe.gpus} x ${recipe.gigabytes} GB, and takes the memory that its comments name`, () => {
    const text = readFileSync(path.join(ROOT, recipe.file), "utf8");
    const plan = planOf(recipe);
    const bytesOf = (what: string) => plan.rows.find((row) => row.what === what)!.gpuBytes;
    const told = (pattern: RegExp) => pattern.exec(text)?.slice(1) ?? assert.fail(`${recipe.file} has no ${pattern}`);
    const near = (said: string | undefined, bytes: number) =>
      assert.ok(Math.abs(Number(said) / (bytes / 1e9) - 1) < ROUNDING, `${said} GB: the plan has ${bytes / 1e9}`);
    const [gpu, host] = told(/Planned, not measured: ([\d.]+) GB of (?:the|each) GPU, ([\d.]+) GB of this machine/);
    near(gpu, plan.gpuBytes);
    near(host, plan.hostBytes);
    near(told(/generationBatchSize: .* KV cache of ([\d.]+) GB/)[0], bytesOf("cache"));
    near(told(/checkpoint: .* ([\d.]+) GB each/)[0], plan.checkpointBytes);
    const [sequences, layers] = told(/microBatchSize: .* (\d) of the longest sequences .*layers (recomputed|kept)/);
    assert.equal(Number(sequences), plan.microBatchTokens / plan.rowTokens);
    assert.equal(layers === "recomputed", plan.checkpointing);
  });
