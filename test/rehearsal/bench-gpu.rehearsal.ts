/** Rehearses the whole GPU benchmark, because a typo must not waste time on a real GPU. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test from "node:test";
import { peakOperations } from "../bench/gpu/device.ts";
import { BUDGET_SECONDS, runPart } from "../bench/gpu/part.ts";
import type { BenchResult } from "../bench/result.ts";

const ROOT = path.join(import.meta.dirname, "../..");
const PARTS = Object.keys(BUDGET_SECONDS);
const SECONDS = 840;

/** Runs the command. @returns the results by part, and its output */
async function bench(...flags: string[]): Promise<{ results: Record<string, BenchResult>; stdout: string }> {
  const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-bench-gpu-"));
  try {
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["test/bench/run.ts", "gpu", "--results", folder, ...flags],
      { cwd: ROOT, encoding: "utf8", timeout: SECONDS * 1000 },
    );
    assert.equal(status, 0, `${stdout}${stderr}`);
    const files = await readdir(folder);
    const results = await Promise.all(
      files.map(async (file) => JSON.parse(await readFile(path.join(folder, file), "utf8"))),
    );
    return { results: Object.fromEntries(results.map((result) => [result.part, result])), stdout };
  } finally {
    await rm(folder, { recursive: true });
  }
}

const missed = ({ goals }: BenchResult) =>
  goals.filter(({ met }) => !met).map(({ what, measured }) => `${what}: ${measured}`);
const rowsOf = ({ rows }: BenchResult, ...columns: string[]) =>
  rows.map((row) => columns.map((column) => row[column]).join(", "));
/** Returns cases that threw, and unfinished parts. */
const failed = ({ goals }: BenchResult) =>
  goals.filter(({ what, goal, met }) => !met && (goal === "runs" || / to its end$/.test(what)));

test("npm run bench gpu, with small shapes, runs every part in every format and writes the results", async () => {
  const { results, stdout } = await bench("--small");
  assert.deepEqual(Object.keys(results).sort(), [...PARTS].sort());
  for (const [part, result] of Object.entries(results)) {
    assert.deepEqual(failed(result), [], part);
    assert.match(result.method, /nothing was computed/);
  }
  const { parity, counts, speed, memory } = results as Record<string, BenchResult>;
  const cases = ["float32", "bfloat16", "tf32"].flatMap((format) => [`LoRA, ${format}`, `every weight, ${format}`]);
  assert.deepEqual(rowsOf(parity!, "trained", "compute").sort(), [...cases].sort());
  assert.deepEqual(
    missed(counts!),
    [],
    "where graphs were changed on purpose, record their nodes anew: node test/rehearsal/nodes.ts",
  );
  for (const what of ["PPO step, longrun", "generation, longrun"])
    assert.equal(rowsOf(speed!, "what", "side").filter((row) => row === what).length, cases.length);
  assert.deepEqual(rowsOf(memory!, "phase"), [
    ...["nothing yet: CUDA itself", "log-probs and values", "critic step", "policy step"],
    ...["log-probs, reference, values", "generation"],
  ]);
  for (const part of PARTS) assert.match(stdout, new RegExp(`written to .*-gpu-${part}.json`));
});

test("npm run bench gpu -- --device cpu finds the CPU's results bit-identical to themselves", async () => {
  const { results } = await bench("--device", "cpu");
  assert.deepEqual(Object.keys(results).sort(), [...PARTS].sort());
  for (const result of Object.values(results)) assert.deepEqual(failed(result), []);
  assert.deepEqual(missed(results.parity!), []);
});

test("npm run bench gpu -- --device cuda:7 says in one line for each part that there is no such device", async () => {
  const { results } = await bench("--device", "cuda:7", "--small");
  const remedy = "cuda:7 cannot be used: there is no GPU of this number; nvidia-smi -L lists them, from 0 on";
  for (const part of PARTS)
    assert.match(
      missed(results[part]!).join(),
      new RegExp(`^${part} runs to its end: exit status 1 after \\d+ s: .*${remedy}$`),
    );
});

test("All parts together take at most 14 minutes", () => {
  assert.ok(Object.values(BUDGET_SECONDS).reduce((sum, seconds) => sum + seconds) <= SECONDS);
});

test("A part that exceeds its budget is ended, and its findings are kept", async () => {
  const { findings, ending } = await runPart("parity", { device: { kind: "cpu" }, usedBytes: 0, small: true }, 3);
  assert.deepEqual(ending, { text: "ended at its budget of 3 s", whole: false });
  assert.match(findings[0]!.notes!.join(), /4 layers/);
});

test("A part whose process is killed does not end the command", async () => {
  const { NODE_OPTIONS } = process.env;
  const crash = "data:text/javascript,setTimeout(()=>process.kill(process.pid,'SIGSEGV'),2000)";
  process.env.NODE_OPTIONS = `${NODE_OPTIONS ?? ""} --import=${crash}`;
  try {
    const { ending } = await runPart("parity", { device: { kind: "cpu" }, usedBytes: 0, small: true }, 60);
    assert.match(ending.text, /^ended by SIGSEGV after \d+ s/);
    assert.equal(ending.whole, false);
  } finally {
    process.env.NODE_OPTIONS = NODE_OPTIONS;
  }
});

test("The peak of a device is its data sheet's, found by the name that nvidia-smi gives", () => {
  const peaks: (readonly [name: string, bfloat16: number | undefined])[] = [
    ...([
      ["NVIDIA H100 80GB HBM3", 989e12],
      ["NVIDIA H100 PCIe", 756e12],
      ["NVIDIA H100 NVL", 835e12],
    ] as const),
    ...([
      ["NVIDIA H200", 989e12],
      ["NVIDIA A100-SXM4-80GB", 312e12],
      ["NVIDIA L4", 121e12],
    ] as const),
    ...([
      ["NVIDIA L40", undefined],
      ["NVIDIA A10G", undefined],
      ["Tesla T4", undefined],
    ] as const),
  ];
  for (const [name, bfloat16] of peaks) assert.equal(peakOperations(name, "bfloat16"), bfloat16, name);
});
