/** Fused operators in captured CUDA graphs, and what happens where their kernels cannot be loaded. */
import assert from "node:assert/strict";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import test, { after } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { pathToFileURL } from "node:url";
import { swiglu } from "../../learner/engine/graph/composites.ts";
import { Graph, type KernelSource } from "../../learner/engine/graph/graph.ts";
import { add, cast } from "../../learner/engine/graph/primitives.ts";
import { tensor } from "../../learner/engine/graph/tensor.ts";
import { KERNELS, Kernels } from "../../learner/engine/runtime/kernels.ts";
import { onNotice } from "../../learner/engine/runtime/notices.ts";
import { Runtime } from "../../learner/engine/runtime/runtime.ts";
import { counting, kernels } from "./counts.ts";

process.env.REHEARSAL_ARITHMETIC = "1"; // read when the library is loaded, with the first session on a device

const GPU = { kind: "cuda", id: 0 } as const;
const PTX = path.join(import.meta.dirname, "../../learner/engine/kernels/ptx");
const runtime = new Runtime(GPU);
after(() => runtime.release());

const [ROWS, SIZE] = [3, 16];
/** silu(x) * 2x, in a graph that may use `source`. */
function gated(source: KernelSource | undefined): Graph {
  const g = new Graph("gated", { compute: "bfloat16", kernels: source });
  const x = cast(g.input("x", "float32", ["rows", SIZE]), "bfloat16");
  g.output("y", cast(swiglu(x, add(x, x)), "float32"));
  return g;
}
const wanted = (x: number) => (x / (1 + Math.exp(-x))) * 2 * x;
function assertGated(found: ArrayLike<number>, x: Float32Array): void {
  for (const [i, value] of x.entries())
    assert.ok(Math.abs(found[i]! - wanted(value)) <= 0.01 * Math.max(1, Math.abs(wanted(value))), `${i}: ${found[i]}`);
}

test("A fused operator is recorded in a CUDA graph; replays call nothing and read the new inputs", async () => {
  const session = await runtime.createSession(gated(runtime.kernels), { captures: true });
  const [x, y] = [new Float32Array(ROWS * SIZE), new Float32Array(ROWS * SIZE)];
  const shape = [ROWS, SIZE];
  const binding = session.bind({}, { y: tensor(y, shape) }, { x: tensor(x, shape) });
  for (let run = 0; run < 4; run++) {
    for (let i = 0; i < x.length; i++) x[i] = (((i * 5 + run) % 9) - 4) / 2;
    y.fill(Number.NaN);
    kernels();
    const { counts } = await counting(() => binding.run());
    assertGated(y, x);
    if (run > 1) assert.equal(counts.launches, 0, "a replay launches the graph alone");
    if (run > 1) assert.ok(kernels().some(([name]) => name === "swiglu_forward"));
  }
  binding.release();
  await session.release();
});

/** Returns the notices that `act` sends. */
async function noticed(act: () => void): Promise<string[]> {
  const said: string[] = [];
  const end = onNotice((text) => said.push(text));
  act();
  await sleep(50);
  end();
  return said;
}

/** A copy of the compiled kernels with a file changed. */
function changed(file: string, change: (text: string) => string): URL {
  const folder = mkdtempSync(path.join(os.tmpdir(), "longrun-kernels-"));
  after(() => rmSync(folder, { recursive: true }));
  cpSync(PTX, folder, { recursive: true });
  writeFileSync(path.join(folder, file), change(readFileSync(path.join(PTX, file), "utf8")));
  return pathToFileURL(`${folder}/`);
}

test("PTX that the driver refuses is one notice, and the graph is composed of ONNX Runtime's operators", async () => {
  const folder = changed("swiglu_forward.sm_90a.ptx", () => "// nothing\n");
  const own = new Kernels(GPU, folder);
  const graphs: Graph[] = [];
  const said = await noticed(() => graphs.push(gated(own), gated(own)));
  assert.equal(said.length, 1, said.join("\n"));
  assert.match(said[0]!, /^cuda:0 runs ONNX Runtime's operators in place of fused kernels, .* CUDA failure 218/);
  assert.ok(graphs.every(({ nodes }) => nodes.every(({ domain }) => domain !== "longrun")));
  const session = await runtime.createSession(graphs[0]!, {});
  const x = Float32Array.from({ length: ROWS * SIZE }, (_, i) => ((i % 7) - 3) / 2);
  assertGated((await session.run({ x: tensor(x, [ROWS, SIZE]) })).y!.data as Float32Array, x);
  await session.release();
});

test("A kernel that needs more shared memory than the GPU has is a notice with both numbers", async () => {
  const folder = changed("launches.json", (text) => text.replaceAll('"shared": 98304', '"shared": 300000'));
  const said = await noticed(() => assert.equal(new Kernels(GPU, folder).has("head_forward"), false));
  assert.match(said.join(), /head_forward needs 300000 bytes of shared memory, and the GPU has 232448/);
});

test(`${KERNELS}=off: no kernel serves, and one notice says so`, async () => {
  process.env[KERNELS] = "off";
  const said = await noticed(() =>
    assert.ok(gated(new Kernels(GPU)).nodes.every(({ domain }) => domain !== "longrun")),
  );
  delete process.env[KERNELS];
  assert.deepEqual(said, [
    "cuda:0 runs ONNX Runtime's operators in place of fused kernels, and takes longer: LONGRUN_KERNELS is off",
  ]);
});

test("A fault in a launch is an error of the run, with its message", async () => {
  const session = await runtime.createSession(gated({ has: () => true }), {});
  const other = new Runtime(GPU); // whose kernels are not loaded
  const session2 = await other.createSession(gated({ has: () => true }), {});
  const feeds = { x: tensor(new Float32Array(ROWS * SIZE), [ROWS, SIZE]) };
  await session.run(feeds);
  await assert.rejects(session2.run(feeds), /the kernel swiglu_forward is not loaded/);
  for (const each of [session, session2]) await each.release();
  await other.release();
});
