/** Tests the stand-in for CUDA: devices, memory, accesses that the host must not make, kernels that compute sizes. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import test from "node:test";
import { Graph } from "../../learner/engine/graph/graph.ts";
import { tensor } from "../../learner/engine/graph/tensor.ts";
import { Runtime } from "../../learner/engine/runtime/runtime.ts";

const ENGINE = new URL("../../learner/engine/", import.meta.url).href;

/** Runs a script in a process of its own, because the environment is read when the library is loaded. */
function run(script: string, env: Record<string, string> = {}) {
  const imports = `
    import { createSession, probeDevice, Runtime, useDevice } from "${ENGINE}runtime/runtime.ts";
    const said = (act) => act.then(() => console.log("works"), (error) => console.log(error.code, error.message));`;
  return spawnSync(process.execPath, ["--input-type=module", "--eval", `${imports}\n${script}`], {
    encoding: "utf8",
    env: { ...process.env, ...env },
    timeout: 60_000,
  });
}

test("The library shows as many devices as the test asks for", () => {
  const script = "for (const id of [0, 1, 2]) await said(probeDevice({ kind: 'cuda', id }));";
  const { stdout, stderr } = run(script, { REHEARSAL_DEVICES: "2" });
  const lines = stdout.trim().split("\n");
  assert.deepEqual(lines.slice(0, 2), ["works", "works"], stderr);
  for (const line of lines.slice(2))
    assert.match(line, /^device cuda:2 cannot be used: there is no GPU of this number; nvidia-smi -L/);
  assert.equal(lines.length, 3);
});

test("The library can show no device", () => {
  const { stdout } = run("await said(probeDevice({ kind: 'cuda', id: 0 }));", { REHEARSAL_DEVICES: "0" });
  assert.match(stdout, /^device cuda:0 cannot be used: the driver finds no GPU; give the container one$/m);
});

test("Each device has its own memory, which can be full", () => {
  const script = `for (const id of [0, 1]) {
    const runtime = new Runtime({ kind: "cuda", id });
    await said((async () => runtime.allocate(16e6))());
  }`;
  const { stdout, stderr } = run(script, { REHEARSAL_DEVICES: "2", REHEARSAL_BYTES: "1e9,50e6" });
  const [first, second] = stdout.trim().split("\n");
  assert.equal(first, "works", stderr);
  assert.match(second!, /^device cuda:1 cannot be used: the GPU's memory is full; end what else uses it/);
});

test("auto takes the first GPU if it works, and otherwise the CPU, with the reason", () => {
  const script = `
    import { deviceName, resolveDevice } from "${ENGINE}runtime/device.ts";
    const { device, reason } = await resolveDevice("auto", probeDevice, true);
    console.log(deviceName(device), reason);`;
  const cases: [env: Record<string, string>, says: RegExp][] = [
    [{ REHEARSAL_DEVICES: "2" }, /^cuda:0 a GPU is there and works$/m],
    [{ REHEARSAL_DEVICES: "0" }, /^cpu cuda:0 cannot be used: the driver finds no GPU; give the container one$/m],
    [{ REHEARSAL_BYTES: "0" }, /^cpu cuda:0 cannot be used: the GPU's memory is full; end what else uses it/m],
  ];
  for (const [env, says] of cases) {
    const { stdout, stderr } = run(script, env);
    assert.match(stdout, says, stderr);
  }
});

test("An access of the host to device memory ends the process with a message", () => {
  const script = `const runtime = new Runtime({ kind: "cuda", id: 0 });
    const buffer = await runtime.allocate(4);
    const { address } = buffer.view(0, [4]);
    const data = runtime.api.created((out) => runtime.api.GetTensorMutableData(address, out));
    console.log("before", runtime.api.copyOf(data, 16).byteLength);`;
  const { status, stdout, stderr } = run(script);
  assert.equal(status, 70, stderr);
  assert.match(stderr, /^rehearsal: the host read or wrote memory of device 0 at 0x/m);
  assert.doesNotMatch(stdout, /before/);
});

test("The kernels for sizes give the CPU's int64 sums, differences, products and concatenations", async () => {
  const graph = new Graph("sizes");
  const [a, b, one] = [
    graph.input("a", "int64", [3]),
    graph.input("b", "int64", [3]),
    graph.input("one", "int64", [1]),
  ];
  for (const operator of ["Add", "Sub", "Mul", "Div"])
    for (const [i, pair] of [
      [a, b],
      [a, one],
      [one, a],
    ].entries())
      graph.output(`${operator}${i}`, graph.op(operator, pair, {}, [a])[0]!);
  graph.output("Concat", graph.op("Concat", [a, b], { axis: 0 }, [{ dtype: "int64", shape: [6] }])[0]!);
  const numbers = (...values: number[]) => tensor(BigInt64Array.from(values, BigInt));
  const feeds = { a: numbers(7, 60, 5), b: numbers(2, 3, 4), one: numbers(2) };
  const found = [];
  for (const device of [{ kind: "cpu" }, { kind: "cuda", id: 0 }] as const) {
    const runtime = new Runtime(device);
    const session = await runtime.createSession(graph, {});
    found.push(Object.entries(await session.run(feeds)).map(([name, { data }]) => `${name}: ${data}`));
    await session.release();
    await runtime.release();
  }
  assert.deepEqual(found[1], found[0]);
});

test("With emulated arithmetic, a kernel or product without emulation ends the process with its name", () => {
  const script = (operator: string, shape: number[]) => `
    import { Graph } from "${ENGINE}graph/graph.ts";
    import { tensor } from "${ENGINE}graph/tensor.ts";
    const graph = new Graph("unknown");
    const x = graph.input("x", "float32", ${JSON.stringify(shape)});
    graph.output("y", graph.op("${operator}", [x], {}, [x])[0]);
    useDevice({ kind: "cuda", id: 0 });
    const session = await createSession(graph);
    await session.run({ x: tensor(new Float32Array(16), ${JSON.stringify(shape)}) });
    console.log("ran");`;
  const cases: [operator: string, shape: number[], says: RegExp][] = [
    ["Erf", [16], /OP_Erf<float>.* is not emulated/],
    ["GlobalAveragePool", [1, 1, 4, 4], /cudnn\w+ is not emulated/],
  ];
  for (const [operator, shape, says] of cases) {
    const { status, stderr } = run(script(operator, shape), { REHEARSAL_ARITHMETIC: "1" });
    assert.match(stderr, new RegExp(`^rehearsal: the arithmetic of .*${says.source}`, "m"));
    assert.equal(status, 70);
  }
  assert.match(run(script("Erf", [16])).stdout, /ran/, "without arithmetic it is counted alone");
});
