/** Tests on the CPU, where we make the same calls of ONNX Runtime as on a GPU. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, test } from "node:test";
import * as ort from "onnxruntime-node";
import { embedding, embeddingPlan } from "../graph/composites.ts";
import { stopGradient } from "../graph/emit.ts";
import { GraphError } from "../graph/errors.ts";
import { gradients } from "../graph/gradients.ts";
import { Graph } from "../graph/graph.ts";
import { add, cast, concat, exp, mul, plus, sum } from "../graph/primitives.ts";
import { linear, matmul } from "../graph/products.ts";
import { serialise } from "../graph/serialise.ts";
import { tensor, tensorOf } from "../graph/tensor.ts";
import { load, ortApi } from "./api.ts";
import { BLOCK_NUMBERS, DeviceBuffer } from "./buffer.ts";
import { onnxRuntimeFolder } from "./device.ts";
import { createSession, probeDevice, Runtime } from "./runtime.ts";

const runtime = new Runtime({ kind: "cpu" });
after(() => runtime.release());

test("the package's library is loaded once", () => {
  assert.match(ortApi().version, /^1\.30\./);
  assert.equal(ortApi(), ortApi());
});

test("a graph gives the bits of the Node.js binding for every kind of input and output", async () => {
  const build = () => {
    const g = new Graph("kinds");
    const x = g.input("x", "float32", ["rows", 3]);
    const w = g.input("w", "float32", [3, 2]);
    const scale = g.input("scale", "float32", []);
    const counts = g.input("counts", "int64", ["rows"]);
    const flags = g.input("flags", "bool", ["rows"]);
    const ids = g.input("ids", "int32", ["some"]);
    g.output("product", mul(matmul(exp(x), w), scale));
    g.output("double", sum(cast(x, "float64")));
    g.output("long", add(counts, 1));
    g.output("flag", cast(cast(flags, "int32"), "bool"));
    g.output("int", concat([ids, ids], 0));
    return g;
  };
  const feeds = {
    x: tensor(Float32Array.from({ length: 64 }, (_, i) => i / 7).subarray(5, 11), [2, 3]),
    w: tensorOf("float32", [1, -2, 3, 0.5, 0.25, 9], [3, 2]),
    scale: tensor(Float32Array.of(1 / 3), []),
    counts: tensor(BigInt64Array.of(5n, -6n)),
    flags: tensor(Uint8Array.of(1, 0), [2], "bool"),
    ids: tensor(new Int32Array(0)),
  };
  const stock = await ort.InferenceSession.create(serialise(build()));
  const expected = await stock.run(
    Object.fromEntries(
      Object.entries(feeds).map(([name, { dtype, shape, data }]) => [
        name,
        new ort.Tensor(dtype as "float32", data as Float32Array, shape),
      ]),
    ),
  );
  const ours = await runtime.createSession(build(), {});
  for (let repeated = 0; repeated < 3; repeated++) {
    const results = await ours.run(feeds);
    for (const [name, { type, dims, data }] of Object.entries(expected)) {
      assert.equal(results[name]!.dtype, type, name);
      assert.deepEqual([...results[name]!.shape], [...dims], name);
      assert.deepEqual(results[name]!.data, data, name);
    }
  }
  assert.deepEqual(Object.keys(await ours.run(feeds, ["long"])), ["long"]);
  const target = tensor(new Float32Array(new SharedArrayBuffer(64)).subarray(2, 6), [2, 2]);
  const { product } = await ours.run(feeds, { product: target });
  assert.equal(product, target);
  assert.deepEqual([...target.data], [...(expected.product!.data as Float32Array)]);
  await stock.release();
  await ours.release();
});

test("tensors stay where they are between runs, and one can be read and written by the same run", async () => {
  const buffer = await runtime.allocate(40);
  const numbers = Float32Array.from({ length: 40 }, (_, i) => i);
  await runtime.write(buffer, numbers);
  const g = new Graph("add");
  g.output("sum", add(g.input("a", "float32", ["n", 2]), g.input("b", "float32", ["n", 2])));
  const session = await runtime.createSession(g, {});
  const part = buffer.view(16, [4, 2]);
  const ones = tensor(new Float32Array(8).fill(1), [4, 2]);
  for (let i = 0; i < 5; i++) assert.deepEqual(await session.run({ a: part, b: ones }, { sum: part }), {});
  const back = new Float32Array(40);
  await runtime.read(buffer, back);
  assert.deepEqual(
    back,
    numbers.map((x, i) => x + (i >= 16 && i < 24 ? 5 : 0)),
  );
  await runtime.zero(buffer);
  await runtime.read(buffer, back);
  assert.deepEqual(back, new Float32Array(40));
  await session.release();
  buffer.release();
});

test("kernels add products and an embedding's rows to a sum in place", async () => {
  const [tokens, vocabulary] = [70, 9];
  const ids = Int32Array.from({ length: tokens }, (_, i) => (i * i) % vocabulary);
  const numbers = (count: number, step: number) => Float32Array.from({ length: count }, (_, i) => Math.sin(step * i));
  for (const threads of [1, 3])
    for (const [rows, columns] of [
      [vocabulary, 33],
      [vocabulary, 1],
      [1, 33],
      [300, 200],
    ] as const) {
      const g = new Graph("sums");
      const d = g.input("d", "float32", [tokens, rows]);
      const x = g.input("x", "float32", [tokens, columns], { requiresGrad: true });
      const w = g.input("w", "float32", [rows, columns], { requiresGrad: true });
      const feeds = {
        d: tensor(numbers(tokens * rows, 0.7), [tokens, rows]),
        x: tensor(numbers(tokens * columns, 1.3), [tokens, columns]),
        w: tensor(numbers(rows * columns, 2.1), [rows, columns]),
      };
      // their gradients are d^T x and twice that; a table of as many rows as there are ids is read as an embedding, too
      const products = [sum(mul(linear(x, w), d)), sum(mul(linear(mul(x, 2), w), d))];
      const tied = rows === vocabulary;
      const { order, distinct, begins, ends } = embeddingPlan(ids, vocabulary);
      const plan = {
        ...{ order: g.initializer("order", tensor(order)), begins: g.initializer("begins", tensor(begins)) },
        ends: g.initializer("ends", tensor(ends)),
        distinct: g.initializer("distinct", tensor(distinct, [distinct.length, 1])),
      };
      const looked = tied ? [sum(mul(embedding(w, g.initializer("ids", tensor(ids)), plan), stopGradient(x)))] : [];
      const [dw] = gradients(
        [...products, ...looked].reduce((a, b) => add(a, b)),
        [w],
      );
      g.output("new sum", plus(g.input("sum", "float32", [rows, columns]), dw!));
      const expected = new Float64Array(rows * columns).fill(5);
      for (let t = 0; t < tokens; t++) {
        const value = (c: number) => feeds.x.data[t * columns + c] as number;
        for (let r = 0; r < rows; r++)
          for (let c = 0; c < columns; c++)
            expected[r * columns + c]! += 3 * (feeds.d.data[t * rows + r] as number) * value(c);
        if (tied) for (let c = 0; c < columns; c++) expected[ids[t]! * columns + c]! += value(c);
      }
      const total = tensor(new Float32Array(rows * columns).fill(5), [rows, columns]);
      const session = await createSession(g, { threads });
      await session.run({ ...feeds, sum: total }, { "new sum": total });
      for (const [i, want] of expected.entries())
        assert.ok(
          Math.abs((total.data[i] as number) - want) < 1e-4,
          `[${rows},${columns}] ${i}: ${total.data[i]}, ${want}`,
        );
      await session.release();
    }
});

test("buffers larger than a block are written, read and filled in blocks", async () => {
  const length = BLOCK_NUMBERS + 3;
  const buffer = await runtime.allocate(length);
  assert.deepEqual(
    [...buffer.blocks()].map(({ start, end }) => [start, end]),
    [
      [0, BLOCK_NUMBERS],
      [BLOCK_NUMBERS, length],
    ],
  );
  const numbers = new Float32Array(length);
  numbers.set([7, 8, 9], BLOCK_NUMBERS);
  numbers[1] = 6;
  await runtime.write(buffer, numbers);
  const back = new Float32Array(length);
  await runtime.read(buffer, back);
  assert.equal(Buffer.compare(new Uint8Array(back.buffer), new Uint8Array(numbers.buffer)), 0);
  buffer.release();
});

test("an error of ONNX Runtime is reported and the session can be used again", async () => {
  const g = new Graph("product");
  g.output("y", matmul(g.input("a", "float32", ["n", 2]), g.input("b", "float32", [2, 1])));
  const session = await runtime.createSession(g, {});
  const [a, b] = [tensor(new Float32Array(6).fill(2), [3, 2]), tensor(new Float32Array(2).fill(3), [2, 1])];
  await assert.rejects(session.run({ a }), { code: "feed", message: "run: the input 'b' is missing" });
  await assert.rejects(session.run({ a: tensor(new Float32Array(3), [3, 1]), b }), {
    code: "session",
    message: /^ONNX Runtime: .*invalid dimensions/s,
  });
  await assert.rejects(session.run({ a, b }, ["z"]), { code: "session", message: /ONNX Runtime: .*z/s });
  assert.deepEqual((await session.run({ a, b })).y!.data, new Float32Array(3).fill(12));
  await session.release();

  const nonsense = new Graph("nonsense");
  nonsense.output(
    "y",
    nonsense.op("NoSuchOperator", [nonsense.constant(1)], {}, [{ dtype: "float32", shape: [] }])[0]!,
  );
  await assert.rejects(runtime.createSession(nonsense, {}), { code: "session", message: /NoSuchOperator/ });
});

const none = () => {
  throw new Error("Cannot find module 'koffi'\nRequire stack:");
};

const installed = existsSync(join(onnxRuntimeFolder(), "libonnxruntime_providers_cuda.so"));
test("ONNX Runtime gets CUDA's options, and refuses them for lack of a library", { skip: installed }, () => {
  const api = ortApi();
  const options = api.created((out) => api.CreateCUDAProviderOptions(out));
  assert.throws(() => api.UpdateCUDAProviderOptions(options, ["device_id"], ["0"], 1), {
    code: "session",
    message: /Failed to load library .*libonnxruntime_providers_shared/s,
  });
  api.ReleaseCUDAProviderOptions(options);
  const memory = api.created((out) => api.CreateMemoryInfo("Cuda", 1, 3, 0, out));
  api.ReleaseMemoryInfo(memory);
  assert.throws(() => api.CreateMemoryInfo("Nonsense", 1, 3, 0, new BigUint64Array(1)), /device is not supported/);
});

test("ONNX Runtime writes outputs into the caller's memory without a copy", async () => {
  const g = new Graph("large");
  g.output("y", add(g.input("x", "float32", ["n"]), 1));
  const large = 2 ** 25; // 128 MiB
  const [x, y] = [tensor(new Float32Array(large).fill(0)), tensor(new Float32Array(large))];
  (y.data as Float32Array).fill(0);
  const session = await createSession(g, { threads: 1 });
  const before = process.memoryUsage.rss();
  const results = await session.run({ x }, { y });
  assert.ok(process.memoryUsage.rss() - before < 2 * large, "a copy has 4 bytes a number");
  assert.equal(results.y, y);
  assert.equal(y.data[large - 1], 1);
  await session.release();
});

test("a missing koffi, library or CUDA file is refused in one line with the remedy", async () => {
  const oneLine = (message: RegExp) => (error: unknown) => {
    assert.ok(error instanceof GraphError && error.code === "device");
    assert.match(error.message, message);
    assert.doesNotMatch(error.message, /\n/);
    return true;
  };
  assert.throws(() => load("x", none), oneLine(/^koffi, .*cannot be loaded \(Cannot find module 'koffi'\).*`npm ci`/));
  assert.throws(
    () => load("/nowhere/libonnxruntime.so"),
    oneLine(/^\/nowhere\/libonnxruntime.so cannot be loaded \(.*`npm ci`/),
  );
  if (!installed)
    await assert.rejects(
      probeDevice({ kind: "cuda", id: 0 }),
      oneLine(/^cuda:0 cannot be used: .*script\/install\.js/),
    );
  await probeDevice({ kind: "cpu" });
});

test("the library stays loaded when the threads that used it have ended", {
  skip: !existsSync("/proc/self/maps") && "needs /proc/self/maps",
}, () => {
  const here = (file: string) => JSON.stringify(new URL(file, import.meta.url).href);
  const worker = `
    import { Graph } from ${here("../graph/graph.ts")};
    import { createSession } from ${here("./runtime.ts")};
    const graph = new Graph("same");
    graph.output("y", graph.input("x", "float32", [1]));
    await (await createSession(graph, { threads: 2 })).release();`;
  const program = `
    import { once } from "node:events";
    import { readFileSync } from "node:fs";
    import { Worker } from "node:worker_threads";
    for (let i = 0; i < 2; i++) {
      await once(new Worker(new URL(${JSON.stringify(`data:text/javascript,${encodeURIComponent(worker)}`)})), "exit");
      console.log(readFileSync("/proc/self/maps", "utf8").includes("libonnxruntime.so"));
    }`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", program], {
    encoding: "utf8",
  });
  assert.deepEqual([status, stdout.trim().split("\n")], [0, ["true", "true"]], stderr);
});

test("a buffer whose numbers cannot be written is freed: a KV cache would be lost for later calls", async (t) => {
  const full = new Error("the GPU's memory is full");
  const freed = t.mock.method(DeviceBuffer.prototype, "release");
  for (const part of ["zero", "write"] as const)
    t.mock.method(runtime, part, async () => {
      throw full;
    });
  await assert.rejects(runtime.allocate(8), full);
  assert.equal(freed.mock.callCount(), 1);
  await assert.rejects(runtime.place(new Uint8Array(8)), full);
  assert.equal(freed.mock.callCount(), 2);
  const earlier = runtime.reserve(2);
  await assert.rejects(runtime.place(new Uint8Array(8), earlier), full);
  assert.equal(freed.mock.callCount(), 2, "its owner frees it");
  t.mock.restoreAll();
  earlier.release();
});
