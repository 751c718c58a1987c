/** Compares the computed arena of small graphs (graph/session-memory.ts) with the memory that ONNX Runtime's CUDA provider takes for them. */
import assert from "node:assert/strict";
import test, { after } from "node:test";
import { Graph, type Value } from "../../learner/engine/graph/graph.ts";
import { add, cumSum, div, exp, mul, neg, reshape, sigmoid, sqrt, sub } from "../../learner/engine/graph/primitives.ts";
import { arenaBytes } from "../../learner/engine/graph/session-memory.ts";
import { Runtime } from "../../learner/engine/runtime/runtime.ts";
import { counting } from "./counts.ts";

const SIZE = 1024;
const UNIT = 4 * SIZE * SIZE;
const runtime = new Runtime({ kind: "cuda", id: 0 });
after(() => runtime.release());
const [x, other, out] = [runtime.reserve(SIZE * SIZE), runtime.reserve(SIZE * SIZE), runtime.reserve(SIZE * SIZE)];

/** Builds a graph's output from two inputs, float32 [SIZE, columns]. */
type Build = (x: Value, other: Value) => Value;
/** Never in place. */
const sums = (value: Value) => cumSum(value, 1);
const node = (type: string, value: Value, domain?: string): Value =>
  value.graph.op(type, [value], {}, [value], domain)[0]!;
const scattered = (value: Value, other: Value): Value => {
  const { graph } = value;
  const place = graph.constant([1], "int64");
  const [row] = graph.op("Gather", [other, place], { axis: 0 }, [{ dtype: "float32", shape: [1, value.shape[1]!] }]);
  return graph.op("ScatterND", [value, reshape(place, [1, 1]), row!], { reduction: "add" }, [value])[0]!;
};
/** Nobody reads the second half. */
const firstHalf: Build = (value) => {
  const parts = new Array(2).fill({ dtype: "float32", shape: [SIZE / 2, value.shape[1]!] });
  const [first] = value.graph.op("Split", [value], { axis: 0, num_outputs: 2 }, parts);
  const read = sums(first!);
  return value.graph.op("Concat", [read, read], { axis: 0 }, [value])[0]!;
};
const viewed: Build = (value) => reshape(sums(reshape(value, [2, SIZE / 2, value.shape[1]!])), value.shape);

const BETWEEN: Record<string, Build> = {
  ...{ Add: (a, b) => add(a, b), Sub: (a, b) => sub(b, a), Mul: (a) => mul(a, 3), Div: (a, b) => div(a, b) },
  ...{ Exp: exp, Neg: neg, Sqrt: sqrt, CumSum: sums, Sigmoid: sigmoid },
  ...{ Tanh: (a) => node("Tanh", a), Clip: (a) => node("Clip", a) },
  QuickGelu: (a) => node("QuickGelu", a, "com.microsoft"),
  ScatterND: scattered,
};

async function assertArena(name: string, build: Build, recomputes = false): Promise<void> {
  const graph = new Graph("arena");
  const input = (of: string) => graph.input(of, "float32", [SIZE, "columns"]);
  graph.output("y", build(input("x"), input("other")));
  graph.model.recomputes = recomputes;
  const session = await runtime.createSession(graph, { threads: 1 });
  try {
    const before = (await counting(async () => {})).counts.peakBytes;
    const given = Object.fromEntries(graph.inputs.map((it) => [it.name, it.name === "x" ? x : other]));
    const view = (buffer: typeof x) => buffer.view(0, [SIZE, SIZE]);
    const feeds = Object.fromEntries(Object.entries(given).map(([key, buffer]) => [key, view(buffer)]));
    const { counts } = await counting(() => session.run(feeds, { y: view(out) }));
    const units = (bytes: number) => Math.round((4 * bytes) / UNIT) / 4;
    const found = units(counts.peakBytes - before);
    assert.equal(units(arenaBytes(graph, { columns: SIZE })), found, `${name}${recomputes ? ", recomputed" : ""}`);
  } finally {
    await session.release();
  }
}

test("the computed arena is the provider's, whose kernels write over an input or do not", async () => {
  for (const [name, build] of Object.entries(BETWEEN))
    for (const recomputes of [false, true]) await assertArena(name, (a, b) => sums(build(sums(a), b)), recomputes);
});

test("a view of an input has no memory; an output that nobody reads has, which another value takes", async () => {
  await assertArena("a view", viewed);
  await assertArena("half", firstHalf);
});

test("an output is in the caller's memory, and a copy of the arena's where the graph recomputes", async () => {
  for (const recomputes of [false, true]) {
    await assertArena("one value", sums, recomputes);
    await assertArena("a sum", (a, b) => add(sums(a), b), recomputes);
  }
});
