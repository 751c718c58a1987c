/** Tests CUDA graphs: calls that the stand-in forbids during a capture, and bindings whose runs are captured and replayed. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import test, { after } from "node:test";
import { startEngine } from "../../learner/engine/engine.ts";
import { Graph, type Value } from "../../learner/engine/graph/graph.ts";
import { add, cast, mul } from "../../learner/engine/graph/primitives.ts";
import { matmul } from "../../learner/engine/graph/products.ts";
import { tensor } from "../../learner/engine/graph/tensor.ts";
import { MOST_GRAPHS } from "../../learner/engine/runtime/capture.ts";
import { koffi } from "../../learner/engine/runtime/koffi.ts";
import { onNotice } from "../../learner/engine/runtime/notices.ts";
import { Runtime } from "../../learner/engine/runtime/runtime.ts";
import type { Session } from "../../learner/engine/runtime/session.ts";
import { LIBRARY } from "./build.ts";
import { counting, liveGraphs } from "./counts.ts";
import { QWEN2, writeModel } from "./small-models.ts";

process.env.REHEARSAL_ARITHMETIC = "1"; // read when the library is loaded, with the first session on a device

const runtime = new Runtime({ kind: "cuda", id: 0 });
after(() => runtime.release());

const COLUMNS = 4;

/** x [rows, 4] times w + bias, and x itself as integers: a product, sums, and an output that stays on the device. */
function lines(): Graph {
  const g = new Graph("lines");
  const x = g.input("x", "float32", ["rows", COLUMNS]);
  const scaled = mul(x, g.input("scale", "float32", ["rows", 1]));
  g.output("y", add(matmul(scaled, g.input("w", "float32", [COLUMNS, 2])), g.input("bias", "float32", [2])));
  g.output("whole", cast(x, "int32"));
  return g;
}

const expected = (x: Float32Array, scale: Float32Array, w: readonly number[], bias: readonly number[]) =>
  Array.from(scale, (factor, row) =>
    bias.map((b, column) => {
      const terms = Array.from({ length: COLUMNS }, (_, i) => factor * x[row * COLUMNS + i]! * w[2 * i + column]!);
      return Math.fround(terms.reduce((sum, term) => sum + term, 0) + b);
    }),
  ).flat();

const WEIGHTS = [1, 2, 3, 4, 5, 6, 7, 8];

/** Returns the graph's inputs for this number of rows, with weights on the device. */
async function bound(session: Session, rows: number, bias = [0, 0]) {
  const [weights, whole] = [await runtime.allocate(16), await runtime.allocate(rows * COLUMNS)];
  await runtime.write(weights, Float32Array.from([...WEIGHTS, ...bias]));
  const [x, scale, y] = [new Float32Array(rows * COLUMNS), new Float32Array(rows).fill(1), new Float32Array(rows * 2)];
  const binding = session.bind(
    { w: weights.view(0, [COLUMNS, 2]), bias: weights.view(8, [2]) },
    { y: tensor(y, [rows, 2]), whole: whole.viewOfBytes(0, "int32", [rows, COLUMNS]) },
    { x: tensor(x, [rows, COLUMNS]), scale: tensor(scale, [rows, 1]) },
  );
  return {
    ...{ x, scale, y, weights },
    /** Runs once with new numbers. Returns the counted operations. */
    async check(seed: number): Promise<Awaited<ReturnType<typeof counting>>["counts"]> {
      for (let i = 0; i < x.length; i++) x[i] = ((seed + i) % 7) + 1;
      scale.fill(seed);
      y.fill(Number.NaN);
      const { counts } = await counting(() => binding.run());
      assert.deepEqual([...y], expected(x, scale, WEIGHTS, bias));
      return counts;
    },
    release() {
      binding.release();
      weights.release();
      whole.release();
    },
  };
}

test("A replay with changed inputs gives changed outputs, with one launch, two copies and one wait", async () => {
  const session = await runtime.createSession(lines(), { captures: true });
  const rows = await bound(session, 3);
  await rows.check(1);
  for (const seed of [2, 5]) {
    const { graphLaunches, graphKernels, graphCopies, ...counts } = await rows.check(seed);
    assert.deepEqual([graphLaunches, graphCopies], [1, 0]);
    assert.ok(graphKernels >= 4);
    assert.deepEqual([counts.launches, counts.products, counts.cudnn, counts.onDevice], [0, 0, 0, 0]);
    assert.deepEqual([counts.toDevice, counts.toHost, counts.synchronisations], [1, 1, 1]);
  }
  // data at an unsent address is read again too
  await runtime.write(rows.weights, Float32Array.from([...WEIGHTS.map((w) => 2 * w), 0, 0]));
  await assert.rejects(rows.check(3), /Expected values/);
  rows.release();
  await session.release();
});

test("Bindings with other numbers of rows, or in other memory, each replay their own graph", async () => {
  const session = await runtime.createSession(lines(), { captures: true });
  const all = [await bound(session, 3), await bound(session, 8), await bound(session, 3, [10, 20])];
  for (const each of all) assert.equal((await each.check(1)).graphLaunches, 1);
  for (const seed of [2, 3, 4])
    for (const each of seed % 2 ? all : all.toReversed()) {
      const { graphLaunches, launches } = await each.check(seed);
      assert.deepEqual([graphLaunches, launches], [1, 0]);
    }
  // the memory of a released binding goes to another one
  all[0]!.release();
  all[0] = await bound(session, 5, [-1, 1]);
  for (const seed of [5, 6]) for (const each of all) await each.check(seed);
  for (const each of all) each.release();
  await session.release();
});

test("A session that has captured as many graphs as it may keep continues to work, and so do its bindings", async () => {
  const session = await runtime.createSession(lines(), { captures: true });
  const first = await bound(session, 1);
  await first.check(1);
  for (let rows = 2; rows <= MOST_GRAPHS + 3; rows++) {
    const more = await bound(session, rows);
    await more.check(rows);
    more.release();
    assert.ok(liveGraphs() <= MOST_GRAPHS, `${liveGraphs()} graphs after ${rows}`);
  }
  await first.check(3);
  assert.deepEqual((await first.check(4)).launches, 0);
  first.release();
  await session.release();
  assert.equal(liveGraphs(), 0);
});

/** Returns the engine's notices during `act`. */
async function notices(act: () => Promise<void>): Promise<string[]> {
  const said: string[] = [];
  const end = onNotice((text) => said.push(text));
  await act();
  await new Promise((resolve) => setTimeout(resolve, 100)); // they arrive over a channel
  end();
  return said;
}

const ROWS = 3;
/** Operations on x [3, 4] that a CUDA graph cannot hold, their result for a number, and why they cannot be captured. */
const HARD: Record<string, { op(g: Graph, x: Value): Value; of(x: number): number; says: RegExp }> = {
  GatherND: {
    op: (g, x) => g.op("GatherND", [x, g.constant([0, 1, 2], "int64", [ROWS, 1])], {}, [x])[0]!,
    of: (x) => x,
    says: /^'GatherND' is not captured as a CUDA graph, and takes longer: CUDA failure 90\d: operation .*captur/,
  },
  Atan: {
    op: (g, x) => g.op("Atan", [x], {}, [x])[0]!,
    of: Math.atan,
    says: /^'Atan' is not captured as a CUDA graph, .*graph nodes have not been .* to the CUDAExecutionProvider/,
  },
};

for (const [operator, { op, of, says }] of Object.entries(HARD))
  test(`A graph with ${operator} cannot be captured: it runs without capture, and says why once`, async () => {
    const [x, y] = [new Float32Array(ROWS * COLUMNS), new Float32Array(ROWS * COLUMNS)];
    const g = new Graph(operator);
    g.output("y", add(op(g, g.input("x", "float32", [ROWS, COLUMNS])), 1));
    const said = await notices(async () => {
      const session = await runtime.createSession(g, { captures: true });
      const binding = session.bind({}, { y: tensor(y, [ROWS, COLUMNS]) }, { x: tensor(x, [ROWS, COLUMNS]) });
      for (const first of [1, 2, 3]) {
        for (let i = 0; i < x.length; i++) x[i] = first + i;
        const { counts } = await counting(() => binding.run());
        assert.equal(counts.graphLaunches, 0);
        for (const [i, value] of y.entries()) assert.ok(Math.abs(value - of(x[i]!) - 1) < 1e-6, `${i}: ${value}`);
      }
      binding.release();
      await session.release();
    });
    assert.equal(said.length, 1, said.join("\n"));
    assert.match(said[0]!, says);
  });

test("LONGRUN_CUDA_GRAPHS=off runs a binding without CUDA graphs, and says so", () => {
  const engine = new URL("../../learner/engine/", import.meta.url).href;
  const script = `
    import { onNotice } from "${engine}runtime/notices.ts";
    import { Graph } from "${engine}graph/graph.ts";
    import { add } from "${engine}graph/primitives.ts";
    import { tensor } from "${engine}graph/tensor.ts";
    import { Runtime } from "${engine}runtime/runtime.ts";
    onNotice((text) => console.log(text));
    const g = new Graph("sum");
    g.output("y", add(g.input("x", "float32", [2]), 1));
    const session = await new Runtime({ kind: "cuda", id: 0 }).createSession(g, { captures: true });
    const y = new Float32Array(2);
    await session.bind({}, { y: tensor(y) }, { x: tensor(Float32Array.of(1, 2)) }).run();
    console.log(y.join());
    setTimeout(() => process.exit(0), 200);`;
  for (const [setting, says] of [
    ["off", "'sum' is not captured as a CUDA graph, and takes longer: LONGRUN_CUDA_GRAPHS is off"],
    ["", undefined],
  ] as const) {
    const { stdout, stderr } = spawnSync(process.execPath, ["--input-type=module", "--eval", script], {
      encoding: "utf8",
      env: { ...process.env, LONGRUN_CUDA_GRAPHS: setting },
    });
    const lines = stdout.trim().split("\n").sort();
    assert.deepEqual(lines, ["2,3", ...(says ? [says] : [])].sort(), stderr);
  }
});

test("The engine generates the same rows with and without CUDA graphs, and its worker says why it has none", async () => {
  const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-capture-"));
  try {
    const model = path.join(folder, "model");
    writeModel(model, QWEN2, "F32");
    const prompts = [Int32Array.of(1, 2, 3), Int32Array.of(4, 5), Int32Array.of(6, 7, 8, 9)];
    const generated = async (setting: string) => {
      process.env.LONGRUN_CUDA_GRAPHS = setting;
      const engine = await startEngine({ model, threads: 1, device: { kind: "cuda", id: 0 }, slots: 2 });
      const options = { seeds: [1, 2, 3], temperature: 1, topP: 0.9, maxNewTokens: 12 };
      const { result, counts } = await counting(() => engine.generate(prompts, options));
      await engine.close();
      return { result, launches: counts.graphLaunches };
    };
    const captured = await generated("");
    let uncaptured: typeof captured | undefined;
    const said = await notices(async () => {
      uncaptured = await generated("off");
    });
    assert.ok(captured.launches >= 12);
    assert.equal(uncaptured!.launches, 0);
    assert.deepEqual(uncaptured!.result, captured.result);
    assert.deepEqual(said, ["'decode' is not captured as a CUDA graph, and takes longer: LONGRUN_CUDA_GRAPHS is off"]);
  } finally {
    delete process.env.LONGRUN_CUDA_GRAPHS;
    await rm(folder, { recursive: true });
  }
});

/** Returns CUDA's own functions, of the stand-in. */
function cuda() {
  const library = koffi().load(path.join(process.env.REHEARSAL_FOLDER!, LIBRARY));
  const pointer =
    (name: string, ...types: string[]) =>
    (...given: unknown[]) => {
      const out = new BigUint64Array(1);
      assert.equal(library.func(name, "int", ["void *", ...types])(out, ...given), 0, name);
      return out[0]!;
    };
  const call = (name: string, ...types: string[]) =>
    library.func(name, "int", types) as (...given: unknown[]) => number;
  return {
    ...{ malloc: pointer("cudaMalloc", "size_t"), hostAlloc: pointer("cudaHostAlloc", "size_t", "uint") },
    ...{ stream: pointer("cudaStreamCreateWithFlags", "uint"), event: pointer("cudaEventCreate") },
    tryMalloc: call("cudaMalloc", "void *", "size_t"),
    tryHostAlloc: call("cudaHostAlloc", "void *", "size_t", "uint"),
    free: call("cudaFree", "void *"),
    begin: call("cudaStreamBeginCapture", "void *", "int"),
    end: call("cudaStreamEndCapture", "void *", "void *"),
    instantiate: call("cudaGraphInstantiate", "void *", "void *", "uint64_t"),
    launch: call("cudaGraphLaunch", "void *", "void *"),
    copy: call("cudaMemcpy", "void *", "void *", "size_t", "int"),
    copyAsync: call("cudaMemcpyAsync", "void *", "void *", "size_t", "int", "void *"),
    set: call("cudaMemsetAsync", "void *", "int", "size_t", "void *"),
    synchronise: call("cudaStreamSynchronize", "void *"),
    synchroniseDevice: call("cudaDeviceSynchronize"),
    record: call("cudaEventRecord", "void *", "void *"),
    wait: call("cudaStreamWaitEvent", "void *", "void *", "uint"),
    synchroniseEvent: call("cudaEventSynchronize", "void *"),
  };
}

const [DEFAULT_STREAM, BLOCKING, NON_BLOCKING, GLOBAL, BY_ADDRESS] = [0n, 0, 1, 0, 4];

test("A call that CUDA forbids during a capture fails in the stand-in, and the capture is lost", () => {
  const c = cuda();
  const [there, pinned, here] = [c.malloc(64), c.hostAlloc(64, 0), new Uint8Array(64)];
  const [blocking, stream, other] = [c.stream(BLOCKING), c.stream(NON_BLOCKING), c.stream(NON_BLOCKING)];
  const [earlier, event] = [c.event(), c.event()];
  assert.equal(c.record(earlier, other), 0);
  const out = new BigUint64Array(1);
  /** @returns the errors of `act` and of the end of the capture */
  const captured = (of: bigint, act: (stream: bigint) => number): [number, number] => {
    assert.equal(c.begin(of, GLOBAL), 0);
    const error = act(of);
    return [error, c.end(of, out)];
  };
  const forbidden: Record<string, [error: number, act: (stream: bigint) => number, of?: bigint]> = {
    "an allocation": [900, () => c.tryMalloc(new BigUint64Array(1), 64)],
    "a release": [900, () => c.free(there)],
    "an allocation of pinned memory": [900, () => c.tryHostAlloc(new BigUint64Array(1), 64, 0)],
    "a wait for the stream": [900, (of) => c.synchronise(of)],
    "a wait for the device": [900, () => c.synchroniseDevice()],
    "a copy that waits": [900, () => c.copy(there, pinned, 64, BY_ADDRESS)],
    "a copy from pageable memory": [900, (of) => c.copyAsync(there, here, 64, BY_ADDRESS, of)],
    "a copy to pageable memory": [900, (of) => c.copyAsync(here, there, 64, BY_ADDRESS, of)],
    "work for the default stream": [906, () => c.set(there, 0, 64, DEFAULT_STREAM), blocking],
    "a wait for an event from outside": [905, (of) => c.wait(of, earlier, 0)],
    "a wait for an event of the capture": [907, (of) => c.record(event, of) || c.synchroniseEvent(event)],
  };
  for (const [what, [error, act, of = stream]] of Object.entries(forbidden)) {
    assert.deepEqual(captured(of, act), [error, 901], what);
    assert.equal(out[0], 0n, what);
  }
  assert.equal(c.begin(DEFAULT_STREAM, GLOBAL), 900);
  assert.equal(captured(stream, (of) => c.begin(of, GLOBAL))[0], 401);
  // allowed calls, on the stream and beside it
  const allowed = (of: bigint) =>
    c.copyAsync(there, pinned, 64, BY_ADDRESS, of) || c.set(there, 1, 32, of) || c.set(there, 2, 64, other);
  assert.deepEqual(captured(stream, allowed), [0, 0]);
  const graph = new BigUint64Array(1);
  assert.equal(c.instantiate(graph, out[0], 0), 0);
  // only this stream was recorded: another stream's work was done at once
  const look = () => {
    assert.equal(c.copy(here, there, 64, BY_ADDRESS), 0);
    return [here[0], here[63]];
  };
  new Uint8Array(koffi().view(pinned, 64)).fill(7);
  assert.deepEqual(look(), [2, 2]);
  assert.deepEqual(
    captured(stream, (of) => c.launch(graph[0], of)),
    [900, 901],
  );
  assert.equal(c.launch(graph[0], stream), 0);
  assert.deepEqual(look(), [1, 7]);
  new Uint8Array(koffi().view(pinned, 64)).fill(8);
  assert.equal(c.launch(graph[0], stream), 0);
  assert.deepEqual(look(), [1, 8], "a replay reads what lies there now");
});
