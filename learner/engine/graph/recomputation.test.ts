import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { test } from "node:test";
import { createSession } from "../runtime/runtime.ts";
import { draw } from "./differences.fixture.ts";
import { gradients } from "./gradients.ts";
import { Graph, type Value } from "./graph.ts";
import { peakMemory } from "./memory.ts";
import { add, exp, mul, sum } from "./primitives.ts";
import { matmul } from "./products.ts";
import { checkpoint } from "./recomputation.ts";
import { tensor } from "./tensor.ts";

const [LAYERS, SIZE, ROWS] = [6, 32, 50];

/** Layers x + exp(0.1 x W), each of which keeps its exp for the backward pass unless it is checkpointed. */
function graphOf(checkpointing: boolean): Graph {
  const g = new Graph("layers");
  let x: Value = g.input("x", "float32", ["rows", SIZE], { requiresGrad: true });
  const input = x;
  const weights = Array.from({ length: LAYERS }, (_, i) =>
    g.input(`w${i}`, "float32", [SIZE, SIZE], { requiresGrad: true }),
  );
  for (const w of weights) {
    const layer = ([y]: Value[]) => [add(y!, exp(exp(mul(matmul(y!, w), 0.1))))];
    [x] = (checkpointing ? checkpoint([x], layer) : layer([x])) as [Value];
  }
  const loss = sum(x);
  g.output("loss", loss);
  for (const [i, d] of gradients(loss, [input, ...weights]).entries()) g.output(`d${i}`, d);
  return g;
}

const FEEDS = {
  x: tensor(draw(ROWS * SIZE, [-1, 1], 1), [ROWS, SIZE]),
  ...Object.fromEntries(
    Array.from({ length: LAYERS }, (_, i) => [`w${i}`, tensor(draw(SIZE * SIZE, [-1, 1], i + 2), [SIZE, SIZE])]),
  ),
};

test("checkpointing gives the same bits", async () => {
  const results = [];
  for (const checkpointing of [false, true]) {
    const session = await createSession(graphOf(checkpointing), { threads: 1 });
    results.push(await session.run(FEEDS));
    await session.release();
  }
  assert.deepEqual(results[1], results[0]);
});

test("checkpointing keeps one value a layer", () => {
  const value = 4 * SIZE * 1000;
  const [kept, recomputed] = [false, true].map(
    (checkpointing) => peakMemory(graphOf(checkpointing), { rows: 1000 }, { outputsHeld: true }).bytes / value,
  );
  assert.ok(kept! >= 3 * LAYERS, `${kept} values without`);
  assert.ok(recomputed! <= LAYERS + 8, `${recomputed} values with`);
});

test("ONNX Runtime computes a checkpointed layer again once the layer's cotangent is there", async () => {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), "checkpoint-"));
  const session = await createSession(graphOf(true), { threads: 1, profilePrefix: path.join(folder, "profile") });
  await session.run(FEEDS);
  await session.release();
  const [file] = fs.readdirSync(folder);
  const events = JSON.parse(fs.readFileSync(path.join(folder, file!), "utf8")) as {
    name: string;
    args?: { op_name?: string };
  }[];
  fs.rmSync(folder, { recursive: true });
  const kernels = events.flatMap(({ name, args }) => (name.endsWith("_kernel_time") ? [args?.op_name ?? ""] : []));
  const places = (type: string) => kernels.flatMap((kernel, i) => (kernel === type ? [i] : []));
  const exps = places("Exp");
  assert.equal(exps.length, 4 * LAYERS, "twice in each layer, forward and backward");
  assert.ok(places("Identity").length >= LAYERS, "a gradient is copied out when it is there, not at the end");
  // of each layer's backward: two Exp, then products with its cotangent, before the next layer's two
  const products = [...places("FusedMatMul"), ...places("Gemm")];
  for (let layer = 0; layer + 1 < LAYERS; layer++) {
    const [last, next] = [exps[2 * (LAYERS + layer) + 1]!, exps[2 * (LAYERS + layer + 1)]!];
    assert.equal(products.filter((place) => place > last && place < next).length, 3, kernels.join(" "));
  }
});
