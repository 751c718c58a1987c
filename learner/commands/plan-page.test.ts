import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { type Budget, Fitting, fits, LORA } from "../engine/fit.ts";
import { ratios, SIZES, section } from "./plan-page.ts";

const ROOT = join(import.meta.dirname, "../..");
const page = readFileSync(join(ROOT, "learner/engine/plans.md"), "utf8");

test("the page has its head and a section for each size, and the smallest section is made anew", () => {
  const head = readFileSync(join(ROOT, "learner/engine/plans.head.md"), "utf8");
  assert.ok(page.startsWith(head) && page.slice(head.length).startsWith(section(SIZES[0]!)));
  const sizes = [...page.matchAll(/^## Qwen2\.5-(.+)$/gm)].map(([, size]) => size);
  assert.deepEqual(sizes, SIZES);
});

// The whole page takes a minute: plan-page.ts --check.
for (const size of SIZES)
  test(`the page has the plans of Qwen2.5-${size} for one GPU of 80 GB`, () => {
    const lines = page.split(`## Qwen2.5-${size}\n`)[1]!.split("\n## ")[0]!.split("\n");
    const budget: Budget = { host: undefined, gpu: { bytes: 80e9, source: "given" } };
    const request = {
      ...{ model: join(ROOT, "test/fixtures/qwen2.5", size), device: { kind: "cuda", id: 0 } as const, critic: true },
      ...{ maxPromptTokens: 1024, maxResponseTokens: 1024, generationBatchSize: 64, samplesPerPrompt: 1 },
      ...{ microBatchSize: 8, compute: "bfloat16" as const },
    };
    for (const [trained, adapter] of [
      ["LoRA", LORA],
      ["every weight", undefined],
    ] as const) {
      const [, cell] = lines.find((line) => line.startsWith(`${trained}, 80 GB each`))!.split(/ {2,}/);
      const plan = new Fitting(0, budget).best({ ...request, adapter });
      assert.equal(cell, `${fits(plan, budget) ? "" : "no: "}${(plan.gpuBytes / 1e9).toFixed(1)}`);
    }
  });

test("plans are 1.0 to 1.2 times the rehearsals' peaks that the page shows", () => {
  const found = SIZES.flatMap((size) => {
    const text = page.split(`## Qwen2.5-${size}\n`)[1]!.split("\n## ")[0]!;
    const table = ratios(size, text);
    assert.ok(text.trimEnd().endsWith(table.trimEnd()), size);
    return [...table.matchAll(/\d\.\d\d/g)].map(Number);
  });
  assert.ok(found.length >= 120, `${found.length} entries`);
  for (const ratio of found) assert.ok(ratio >= 1 && ratio <= 1.2, `${ratio}`);
});
