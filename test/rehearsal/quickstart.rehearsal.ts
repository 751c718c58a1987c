/** A whole learner with `LONGRUN_DEVICE=cuda:0`: the quickstart, started by `longrun run`. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { COUNTERS } from "./counts.ts";

const ROOT = path.join(import.meta.dirname, "../..");

async function quickstart<T>(bytes: string, act: (run: ReturnType<typeof spawnSync>, out: string) => Promise<T>) {
  const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-quickstart-"));
  const out = path.join(folder, "run");
  try {
    const env = { ...process.env, LONGRUN_DEVICE: "cuda:0", REHEARSAL_BYTES: bytes };
    const manifest = "manifests/quickstart/trainingrun.yaml";
    const run = spawnSync(
      process.execPath,
      ["controller/cli.ts", "run", manifest, "--out", out, "--set", "spec.stopping.iterations=2"],
      {
        ...{ cwd: ROOT, encoding: "utf8", timeout: 400_000 },
        env: { ...env, REHEARSAL_REPORT: path.join(folder, "report") },
      },
    );
    return await act(run, out);
  } finally {
    await rm(folder, { recursive: true });
  }
}

test("two iterations of the quickstart, with an evaluation before and after and a checkpoint", async () => {
  await quickstart("80e9", async ({ status, stdout, stderr }, out) => {
    assert.equal(status, 0, `${stdout}${stderr}`);
    const lines = (await readFile(path.join(out, "metrics.jsonl"), "utf8")).trim().split("\n");
    assert.equal(lines.length, 2);
    assert.match(String(stdout), /memory plan: on cuda:0/);
    const reports = (await readFile(path.join(path.dirname(out), "report"), "utf8")).trim().split("\n");
    const launched = reports.map((line) => JSON.parse(line).counts[COUNTERS.indexOf("launches")]);
    assert.ok(Math.max(...launched) > 10_000, `the learner launched ${launched} kernels`);
  });
});

test("where the GPU's memory is full the run ends with one line that says so", async () => {
  await quickstart("30e6", async ({ status, stdout, stderr }) => {
    assert.equal(status, 1);
    const said = `${stdout}${stderr}`.split("\n").filter((line) => /memory is full/.test(line));
    assert.equal(said.length, 1, `${stdout}${stderr}`);
    assert.match(
      said[0]!,
      /^the run failed: cuda:0 cannot be used: the GPU's memory is full; end what else uses it \(nvidia-smi\)/,
    );
  });
});
