/**
 * Each fused operator through ONNX Runtime's CUDA provider, its PTX executed on the host, beside the primitives that it is composed of on
 * the CPU: values and gradients, on odd lengths, one row, responses of one token, and rows that fill their blocks.
 */
import assert from "node:assert/strict";
import test, { after, before } from "node:test";
import { adamwScalars, adamwStep, sumOfSquares } from "../../learner/engine/adamw.ts";
import { deviceAdamW } from "../../learner/engine/device-adamw.ts";
import { attention, masksOf, type Sight, sightInputs } from "../../learner/engine/graph/attention.ts";
import { embedding, embeddingPlan, normOf, plusOutput, swiglu, turned } from "../../learner/engine/graph/composites.ts";
import { gradients } from "../../learner/engine/graph/gradients.ts";
import { Graph, type KernelSource, type Value } from "../../learner/engine/graph/graph.ts";
import { add, cast, mul, sum } from "../../learner/engine/graph/primitives.ts";
import { type LinearOutput, matmul } from "../../learner/engine/graph/products.ts";
import { type Tensor, tensor } from "../../learner/engine/graph/tensor.ts";
import { decoderFeeds, rowLayoutOf } from "../../learner/engine/model/decoder.ts";
import { adapterNames, joinedAdapters } from "../../learner/engine/model/lora.ts";
import { tokenLogProbs } from "../../learner/engine/model/token-log-probs.ts";
import type { DeviceBuffer } from "../../learner/engine/runtime/buffer.ts";
import { Runtime } from "../../learner/engine/runtime/runtime.ts";
import { GENERATED } from "./generation-cases.ts";
import { type Compared, numbers, prepared, tensorOfNumbers } from "./kernel-numbers.ts";
import { QWEN2 } from "./small-models.ts";

/** A graph with values to compare, and gradients of the sum of the values' products with fixed numbers. */
interface Case {
  /** shapes of inputs with gradients; `bfloat16`: what a product made */
  differentiable: Record<string, { shape: number[]; bfloat16?: boolean; scale?: number }>;
  /** inputs without */
  feeds?: Record<string, Tensor>;
  /** Returns the values, by name. */
  build(g: Graph, of: (name: string) => Value): Record<string, Value>;
  /** Values that are sums in float32, and as exact. */
  exact?: string[];
  /** no kernel computes all of it */
  composed?: boolean;
  /** a part of the cotangents that is 0: rows of padding */
  weights?: Record<string, Float32Array>;
}

/** The graph of a case, composed of primitives or with kernels, and its feeds. */
function graphOf(kernels: KernelSource | undefined, it: Case): { graph: Graph; feeds: Record<string, Tensor> } {
  const g = new Graph("kernel", kernels ? { compute: "bfloat16", kernels } : {});
  const feeds: Record<string, Tensor> = { ...it.feeds };
  const inputs = new Map<string, Value>();
  for (const [i, [name, { shape, bfloat16, scale }]] of Object.entries(it.differentiable).entries()) {
    feeds[name] = tensorOfNumbers(shape, 7 + i, scale);
    const input = g.input(name, "float32", shape, { requiresGrad: true });
    inputs.set(name, bfloat16 && kernels ? cast(input, "bfloat16") : input);
  }
  const values = it.build(g, (name) => inputs.get(name)!);
  let loss: Value | undefined;
  for (const [i, [name, value]] of Object.entries(values).entries()) {
    const wide = cast(value, "float32");
    const shape = value.shape as number[];
    const term = sum(mul(wide, g.input(`weight of ${name}`, "float32", shape)));
    const weights = it.weights?.[name];
    feeds[`weight of ${name}`] = weights ? tensor(weights, shape) : tensorOfNumbers(shape, 91 + i);
    loss = loss ? add(loss, term) : term;
    g.output(name, wide);
  }
  const trained = g.inputs.filter(({ requiresGrad }) => requiresGrad);
  for (const [i, gradient] of gradients(loss!, trained).entries()) g.output(`d ${trained[i]!.name}`, gradient);
  const fused = g.nodes.some(({ domain }) => domain === "longrun");
  assert.equal(fused, kernels !== undefined && !it.composed, "whether the graph has an operator of our own");
  return { graph: g, feeds };
}

/** A linear layer's output that is an input of the test. */
const outputOf = (product: Value, bias?: Value): LinearOutput => {
  const wide = () => (bias ? add(cast(product, "float32"), bias) : cast(product, "float32"));
  return { narrow: () => product, wide, product: () => product, bias };
};

const EPSILON = 1e-6;
/** Norms of a stream with and without a sum, whose sum is used again or not, and whose weight is trained or not. */
function norm(rows: number, size: number, { adds = true, continues = true, trained = true } = {}): Case {
  const weight = numbers(size, 3);
  return {
    differentiable: {
      x: { shape: [rows, size] },
      ...(adds && { added: { shape: [rows, size], bfloat16: true } }),
      ...(trained && { weight: { shape: [size] } }),
    },
    feeds: trained ? {} : { fixed: tensor(weight) },
    build(g, of) {
      const scale = trained ? of("weight") : g.input("fixed", "float32", [size]);
      const stream = adds ? plusOutput(of("x"), outputOf(of("added"))) : [of("x")];
      const [total, y] = normOf(stream, scale, EPSILON);
      return { y, ...(continues && { total: mul(total, 1) }) };
    },
    exact: ["total"],
  };
}

function rotary(tokens: number, heads: number, headSize: number, biased: boolean): Case {
  const [width, half, positions] = [heads * headSize, headSize / 2, 17];
  const angles = (of: (x: number) => number) => {
    const at = (i: number) => of(Math.floor(i / half) * 0.3 ** (((i % half) * 8) / half));
    return tensor(
      Float32Array.from({ length: positions * half }, (_, i) => at(i)),
      [positions, half],
    );
  };
  const places = BigInt64Array.from({ length: tokens }, (_, i) => BigInt((i * 7) % positions));
  return {
    differentiable: {
      x: { shape: [tokens, width], bfloat16: true },
      ...(biased && { bias: { shape: [width], scale: 5 } }),
    },
    feeds: {
      cos: angles(Math.cos),
      sin: angles(Math.sin),
      negativeSin: angles((x) => -Math.sin(x)),
      places: tensor(places, [1, tokens]),
    },
    build(g, of) {
      const table = (name: string) => g.input(name, "float32", [positions, half]);
      const rotating = { cos: table("cos"), sin: table("sin"), negativeSin: table("negativeSin") };
      const shape = { batch: 1, time: tokens, heads, positions: g.input("places", "int64", [1, tokens]) };
      return { y: turned(outputOf(of("x"), biased ? of("bias") : undefined), rotating, shape) };
    },
  };
}

/** Rows of a prompt and responses, by their lengths. */
function rowsOf(headSize: number, heads: number, keyValueHeads: number, lengths: number[][]): Case {
  const { feeds, shape } = linesOf(headSize, heads, keyValueHeads, lengths);
  const [batch, time] = feeds.ids!.shape as [number, number];
  const real = Float32Array.from({ length: batch * time }, (_, at) => {
    const [prompt, ...responses] = lengths[Math.floor(at / time)]!;
    return at % time < prompt! - 1 + responses.reduce((a, b) => a + b, 0) ? 1 : 0;
  });
  const width = heads * headSize;
  const weights = numbers(batch * time * width, 91).map((x, i) => x * real[Math.floor(i / width)]!);
  const input = (count: number) => ({ shape: [batch * time, count * headSize], bfloat16: true, scale: 1.5 });
  return {
    differentiable: { q: input(heads), k: input(keyValueHeads), v: input(keyValueHeads) },
    feeds: { ...feeds, real: tensor(real, [batch * time, 1]) },
    build(g, of) {
      const sight: Sight = sightInputs(g, shape);
      const out = attention(of("q"), of("k"), of("v"), masksOf(sight, shape), shape);
      return { out: mul(cast(out, "float32"), g.input("real", "float32", [batch * time, 1])) };
    },
    weights: { out: weights },
  };
}

/** The same rows one after the other, without padding; the primitives have each in a padded line of its own. */
function packedRowsOf(headSize: number, heads: number, keyValueHeads: number, lengths: number[][]): Case {
  const lines = linesOf(headSize, heads, keyValueHeads, lengths);
  const line = linesOf(headSize, heads, keyValueHeads, lengths, true);
  const [padded, tokens] = [lines.feeds, line.feeds].map(({ ids }) => ids!.data.length) as [number, number];
  /** 1 where a place of the padded lines has a token of the one line */
  const places = new Float32Array(padded * tokens);
  let token = 0;
  for (const [row, [prompt, ...responses]] of lengths.entries()) {
    const begin = (row * padded) / lengths.length;
    const length = prompt! - 1 + responses.reduce((a, b) => a + b, 0);
    for (let at = begin; at < begin + length; at++) places[at * tokens + token++] = 1;
  }
  const input = (count: number) => ({ shape: [tokens, count * headSize], bfloat16: true, scale: 1.5 });
  return {
    differentiable: { q: input(heads), k: input(keyValueHeads), v: input(keyValueHeads) },
    feeds: { ...lines.feeds, spans: line.feeds.spans!, places: tensor(places, [padded, tokens]) },
    build(g, of) {
      const { shape } = g.model.kernels ? line : lines;
      const given = ["q", "k", "v"].map(of) as [Value, Value, Value];
      const masks = masksOf(sightInputs(g, shape), shape);
      if (g.model.kernels) return { out: attention(...given, masks, shape) };
      const at = g.input("places", "float32", [padded, tokens]);
      const spread = given.map((each) => matmul(at, each)) as [Value, Value, Value];
      return { out: matmul(at, attention(...spread, masks, shape), { transA: true }) };
    },
  };
}

function linesOf(headSize: number, heads: number, keyValueHeads: number, lengths: number[][], packs = false) {
  const ids = (count: number) => new Int32Array(count).fill(1);
  const rows = lengths.map(([prompt, ...responses]) => ({ prompt: ids(prompt!), responses: responses.map(ids) }));
  const layout = rowLayoutOf(packs);
  const feeds = decoderFeeds(rows, { ...QWEN2, headSize }, layout);
  const [batch, time] = feeds.ids!.shape as [number, number];
  const { blocks } = layout;
  return { feeds, shape: { batch, blocks, block: time / blocks, heads, keyValueHeads, headSize } };
}

function logProbs(rows: number, size: number, vocabulary: number, trained = true, largest = false): Case {
  const targets = Int32Array.from({ length: rows }, (_, i) => (i * 997 + 15) % vocabulary);
  targets[rows - 1] = vocabulary - 1;
  const scale = 1 / Math.sqrt(size);
  return {
    differentiable: {
      hidden: { shape: [rows, size], bfloat16: true, scale: 3 },
      ...(trained && { matrix: { shape: [vocabulary, size], scale: 2 * scale } }),
    },
    feeds: {
      targets: tensor(targets),
      inverseTemperature: tensor(Float32Array.of(1 / 0.7), []),
      ...(!trained && { fixed: tensor(numbers(vocabulary * size, 5, 2 * scale), [vocabulary, size]) }),
    },
    build(g, of) {
      const fixed = () => g.input("fixed", "float32", [vocabulary, size]);
      // a frozen matrix is in the dtype of its file
      const matrix = trained ? of("matrix") : g.model.kernels ? cast(fixed(), "bfloat16") : fixed();
      const given = [g.input("targets", "int32", [rows]), g.input("inverseTemperature", "float32", [])] as const;
      const { logProbs, entropies, ...more } = tokenLogProbs(of("hidden"), matrix, ...given, { largest });
      if (more.largest) g.output("largest", more.largest);
      return { logProbs, entropies };
    },
    exact: ["logProbs", "entropies"],
    composed: largest,
  };
}

const gates = (rows: number, width: number): Case => ({
  differentiable: {
    gate: { shape: [rows, width], bfloat16: true, scale: 4 },
    up: { shape: [rows, width], bfloat16: true },
  },
  build: (_, of) => ({ y: swiglu(of("gate"), of("up")) }),
});

/** The gradient of an embedding of ids of which some repeat, added to another gradient of the same table. */
function embedded(positions: number, size: number, vocabulary: number, distinct: number): Case {
  const ids = Int32Array.from(
    { length: positions },
    (_, i) => ((i * i * 7) % distinct) * Math.floor(vocabulary / distinct),
  );
  const { order, distinct: found, begins, ends } = embeddingPlan(ids, vocabulary);
  return {
    differentiable: { table: { shape: [vocabulary, size] } },
    feeds: {
      ids: tensor(ids),
      order: tensor(order, [1, positions]),
      distinct: tensor(found, [found.length, 1]),
      ...{ begins: tensor(begins), ends: tensor(ends) },
    },
    build(g, of) {
      const each = (name: string, shape: number[]) => g.input(name, "int32", shape);
      const [begin, end] = [each("begins", [found.length]), each("ends", [found.length])];
      const plan = {
        order: each("order", [1, positions]),
        distinct: each("distinct", [found.length, 1]),
        begins: begin,
        ends: end,
      };
      return { y: embedding(of("table"), each("ids", [positions]), plan), more: mul(of("table"), 0.5) };
    },
    exact: ["y", "more", "d table"],
  };
}

/** Adapters of two or three layers that share an input. */
function shared(rows: number, size: number, rank: number, outs: number[]): Case {
  const paths = ["q", "k", "v"].slice(0, outs.length);
  const names = paths.map((path) => adapterNames(`in.${path}`));
  const matrix = (shape: number[]) => ({ shape, bfloat16: true, scale: 0.5 });
  return {
    differentiable: {
      x: { shape: [rows, size], bfloat16: true },
      ...Object.fromEntries(
        names.flatMap(({ a, b }, i) => [
          [a, matrix([rank, size])],
          [b, matrix([outs[i]!, rank])],
        ]),
      ),
    },
    build(_, of) {
      const values = new Map(names.flatMap(({ a, b }) => [a, b]).map((name) => [name, of(name)]));
      const output = joinedAdapters({ scale: 0.5, values }, [paths]);
      return Object.fromEntries(paths.map((path) => [path, output(of("x"), `in.${path}`)!]));
    },
  };
}

const CASES = {
  "adapters of three layers with one input, one row": () => shared(1, 48, 16, [16, 32, 16]),
  "adapters of three layers with one input, rows of two blocks": () => shared(131, 272, 20, [48, 16, 16]),
  "adapters of two layers with one input": () => shared(37, 144, 3, [32, 48]),
  "embedding of one token": () => embedded(1, 16, 3, 1),
  "embedding of tokens that repeat": () => embedded(301, 272, 64, 31),
  "embedding of one token at all places": () => embedded(67, 1040, 5, 1),
  "norm of one row": () => norm(1, 64),
  "norm of more rows than partial sums": () => norm(515, 896),
  "norm, its sum not used again": () => norm(3, 1040, { continues: false }),
  "norm of an input": () => norm(3, 2064, { adds: false }),
  "norm of an input that ends": () => norm(2, 8192, { adds: false, continues: false }),
  "norm with a frozen weight": () => norm(5, 2048, { trained: false }),
  "norm with a frozen weight that ends": () => norm(5, 32, { trained: false, continues: false }),
  "gates of one row": () => gates(1, 16),
  "gates that fill their blocks": () => gates(4, 2048),
  "gates of odd rows": () => gates(37, 144),
  "rotary positions with a bias": () => rotary(13, 14, 64, true),
  "rotary positions of one token": () => rotary(1, 2, 128, false),
  "rotary positions of a small head": () => rotary(5, 9, 32, true),
  "attention of one row, head size 64": () => rowsOf(64, 14, 2, [[60, 50, 71]]),
  "attention of one row, head size 128": () => rowsOf(128, 4, 2, [[60, 50, 71]]),
  "attention of responses of one token": () =>
    rowsOf(64, 2, 1, [
      [1, 1],
      [2, 1, 1, 1],
      [5, 3],
    ]),
  "attention of rows of several lengths, head size 64": () =>
    rowsOf(64, 4, 2, [
      [9, 40, 1, 33],
      [70, 7],
      [1, 90],
    ]),
  "attention of rows of several lengths, head size 128": () =>
    rowsOf(128, 2, 1, [
      [140, 9, 30],
      [20, 7],
    ]),
  "attention of rows that fill their blocks": () =>
    rowsOf(64, 2, 2, [
      [65, 64, 128],
      [257, 0],
    ]),
  "attention of rows one after the other, head size 64": () =>
    packedRowsOf(64, 4, 2, [
      [9, 40, 1, 33],
      [70, 7],
      [1, 90],
      [1, 1],
      [3, 1, 1],
    ]),
  "attention of rows one after the other, head size 128": () =>
    packedRowsOf(128, 2, 1, [
      [140, 9, 30],
      [20, 7],
      [1, 129],
    ]),
  "log-probs of one row": () => logProbs(1, 64, 2064),
  "log-probs of rows that fill their blocks, of parts without entries": () => logProbs(128, 64, 1024),
  "log-probs of odd rows": () => logProbs(131, 80, 2320),
  "log-probs with the largest, beside a frozen matrix": () => logProbs(7, 144, 272, false, true),
  "log-probs with a frozen matrix": () => logProbs(7, 144, 272, false),
} satisfies Record<string, () => Case>;

/** What kernels compute beside what primitives do, by the case's name. */
export const COMPARED: Record<string, () => Compared> = {
  ...Object.fromEntries(
    Object.entries(CASES).map(([name, make]) => [
      name,
      () => {
        const it = make();
        return { graphOf: (kernels: KernelSource | undefined) => graphOf(kernels, it), exact: it.exact };
      },
    ]),
  ),
  ...GENERATED,
};

const ADAM = { beta1: 0.9, beta2: 0.95, epsilon: 1e-8, weightDecay: 0.1 };

/** Two steps of AdamW and the sum of squares over so many numbers, from one number on, on both. */
export async function checkOptimiser(gpu: Runtime, count: number, from: number): Promise<void> {
  const total = from + count;
  const model = { weights: numbers(total, 1), gradient: numbers(total, 2) };
  const moments = { first: numbers(count, 3), second: numbers(count, 4).map((x) => x * x) };
  const held = { ...model, ...moments };
  const optimiser = await deviceAdamW(gpu, 1, false, { compute: "bfloat16", kernels: gpu.kernels! });
  const there = Object.fromEntries(
    await Promise.all(Object.entries(held).map(async ([name, data]) => [name, await placed(gpu, data)] as const)),
  ) as Record<keyof typeof held, DeviceBuffer>;
  const range = { from, to: total };
  const exact = sumOfSquares(model.gradient.subarray(from));
  assert.ok(Math.abs((await optimiser.squares(there.gradient, range)) - exact) <= 1e-12 * exact);
  for (const step of [1, 2]) {
    const scalars = adamwScalars(step, { ...ADAM, learningRate: 0.01, scale: 0.3 });
    await optimiser.step(there, range, scalars);
    adamwStep({ ...moments, weights: model.weights.subarray(from), gradient: model.gradient.subarray(from) }, scalars);
  }
  for (const [name, wanted] of Object.entries(held)) {
    const found = new Float32Array(wanted.length);
    await gpu.read(there[name as keyof typeof held], found);
    assert.deepEqual(found, wanted, `${name}: the same bits`);
  }
  for (const buffer of Object.values(there)) buffer.release();
  await optimiser.release();
}

async function placed(gpu: Runtime, data: Float32Array): Promise<DeviceBuffer> {
  const buffer = await gpu.allocate(data.length);
  await gpu.write(buffer, data);
  return buffer;
}

/** Tests all kernels on a GPU of this compute capability. */
export function testKernels(capability: string): void {
  process.env.REHEARSAL_ARITHMETIC = "1"; // read when the library is loaded, with the first session on a device
  process.env.REHEARSAL_CAPABILITY = capability;
  let cpu: Runtime;
  let gpu: Runtime;
  before(() => {
    cpu = new Runtime({ kind: "cpu" });
    gpu = new Runtime({ kind: "cuda", id: 0 });
  });
  after(async () => {
    await cpu.release();
    await gpu.release();
  });
  for (const [name, it] of Object.entries(COMPARED))
    test(`${name}: the kernels of compute capability ${capability} compute what the primitives do`, async () => {
      const comparison = await prepared(cpu, gpu, it());
      const found = await comparison.run();
      assert.deepEqual(comparison.faults(found), []);
      assert.deepEqual(await comparison.run(), found, "the same bits again");
      await comparison.release();
    });
  for (const [count, from] of [
    [1, 0],
    [1040, 0],
    [1025, 0],
    [4096, 3],
  ] as const)
    test(`AdamW of ${count} numbers from number ${from} on: compute capability ${capability} gives the CPU's bits`, () =>
      checkOptimiser(gpu, count, from));
}
