/**
 * Runs two iterations of each recipe of `manifests/examples` on the stand-in for CUDA, with arithmetic, on the recipe's number of GPUs,
 * with other sizes and another task (`recipes.ts`). `test/tasks/training.tasks.ts` runs MLE-bench's tasks on synthetic stand-ins.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { after } from "node:test";
import type { IterationMetrics } from "../../learner/metrics/iteration.ts";
import type { RunSummary } from "../../learner/metrics/summary.ts";
import { RECIPES, SMALL } from "./recipes.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const folder = mkdtempSync(path.join(os.tmpdir(), "longrun-recipes-"));
after(() => rmSync(folder, { recursive: true }));
const smi = path.join(folder, "nvidia-smi");
writeFileSync(smi, "#!/bin/sh\necho 70000\n"); // free MiB
chmodSync(smi, 0o755);

const read = (run: string, name: string) => readFileSync(path.join(run, name), "utf8");

for (const { file, gpus } of RECIPES) {
  const name = path.basename(file, ".yaml");

  test(`${name} trains two iterations, and evaluates the policy before, between and after them`, () => {
    const out = path.join(folder, name);
    const settings = SMALL.flatMap((value) => ["--set", value]);
    const run = spawnSync(process.execPath, ["controller/cli.ts", "run", file, "--out", out, ...settings], {
      ...{ cwd: ROOT, encoding: "utf8", timeout: 1_150_000 },
      env: {
        ...{ ...process.env, PATH: `${folder}:${process.env.PATH}` },
        LONGRUN_DEVICE: `cuda:${Array.from({ length: gpus }, (_, id) => id).join(",")}`,
        ...{ REHEARSAL_ARITHMETIC: "1", REHEARSAL_DEVICES: String(gpus) },
      },
    });
    assert.equal(run.status, 0, run.stdout + run.stderr);
    assert.match(
      run.stdout + run.stderr,
      gpus > 1 ? /memory plan: on each of cuda:0,1,2,3/ : /memory plan: on cuda:0 /,
    );
    assert.match(run.stdout, /evaluation after iteration 1: /);
    const lines = read(out, "metrics.jsonl")
      .trim()
      .split("\n")
      .map((line): IterationMetrics => JSON.parse(line));
    assert.equal(lines.length, 2);
    for (const line of lines) {
      assert.ok(line.policySteps > 0 || line.noSignal, `iteration ${line.iteration} trains`);
      assert.equal(line.importanceDeviates, false);
    }
    assert.ok(lines.some(({ gradientNorm }) => gradientNorm !== null && gradientNorm > 0));
    const { evaluation, state } = JSON.parse(read(out, "summary.json")) as RunSummary;
    assert.equal(state, "succeeded");
    assert.deepEqual(
      [evaluation.before?.iteration, evaluation.during?.[0]?.iteration, evaluation.after?.iteration],
      [0, 1, 2],
    );
  });
}
