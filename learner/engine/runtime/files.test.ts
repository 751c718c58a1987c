/** Tests on the CPU, whose device memory is this process's memory. */
import assert from "node:assert/strict";
import fs from "node:fs";
import os from "node:os";
import path from "node:path";
import { after, test } from "node:test";
import { Graph } from "../graph/graph.ts";
import { add, cast } from "../graph/primitives.ts";
import { matmul } from "../graph/products.ts";
import { tensor } from "../graph/tensor.ts";
import { readPart } from "../model/safetensors.ts";
import { BLOCK_NUMBERS } from "./buffer.ts";
import { DeviceFiles } from "./files.ts";
import { Runtime } from "./runtime.ts";

const runtime = new Runtime({ kind: "cpu" });
const directory = fs.mkdtempSync(path.join(os.tmpdir(), "device-files-"));
after(async () => {
  await runtime.release();
  fs.rmSync(directory, { recursive: true });
});

test("a part of a file is on the device once for all sessions, as a whole and in bfloat16 pieces", async () => {
  const file = path.join(directory, "weights.bin");
  const bits = Uint16Array.of(0x4049, 1, 2, 0x3f80, 0x4000, 0x4040, 0x4080, 0x40a0, 0x40c0, 7); // bfloat16 1 to 6 inside
  fs.writeFileSync(file, new Uint8Array(bits.buffer));
  const files = new DeviceFiles(runtime, [{ file, offset: 6, length: 12 }], readPart);
  const part = (graph: Graph, name: string, rows: number, offset: number) =>
    graph.externalInitializer(name, "bfloat16", [rows, 2], { location: "weights.bin", offset, length: 4 * rows });
  const whole = new Graph("whole");
  whole.output("y", add(cast(part(whole, "all", 3, 6), "float32"), whole.input("x", "float32", [1])));
  const piece = new Graph("piece");
  const last = cast(part(piece, "last row", 1, 14), "float32");
  piece.output("y", matmul(piece.input("x", "float32", [1, 2]), last, { transB: true }));

  const session = async (graph: Graph) =>
    runtime.createSession(
      graph,
      { externalDirectory: directory, prepacking: false, disabledOptimizers: ["ConstantFolding"] },
      await files.initializers(graph, directory),
    );
  const [first, second] = [await session(whole), await session(piece)];
  assert.equal(files.bytes, 12);
  fs.writeFileSync(file, new Uint8Array(20)); // the device keeps the bytes that were read
  assert.deepEqual([...(await first.run({ x: tensor(Float32Array.of(10)) })).y!.data], [11, 12, 13, 14, 15, 16]);
  assert.deepEqual([...(await second.run({ x: tensor(Float32Array.of(1, 10), [1, 2]) })).y!.data], [65]);

  const beyond = new Graph("beyond");
  beyond.output("y", cast(part(beyond, "more", 2, 14), "float32"));
  await assert.rejects(session(beyond), { code: "session", message: /^'more' is not in the files/ });
  await first.release();
  await second.release();
  files.release();
});

test("a part of any length arrives whole", async () => {
  const file = path.join(directory, "odd.bin");
  const numbers = Uint16Array.from({ length: 2 * BLOCK_NUMBERS + 3 }, (_, i) => 0x3f80 + (i % 64));
  fs.writeFileSync(file, new Uint8Array(numbers.buffer));
  const length = numbers.byteLength;
  const files = new DeviceFiles(runtime, [{ file, offset: 0, length }], readPart);
  const graph = new Graph("odd");
  const external = { location: "odd.bin", offset: 0, length };
  const all = graph.externalInitializer("all", "bfloat16", [numbers.length], external);
  graph.output("y", add(cast(all, "float32"), graph.input("x", "float32", [1])));
  const shared = await files.initializers(graph, directory);
  const session = await runtime.createSession(
    graph,
    { externalDirectory: directory, disabledOptimizers: ["ConstantFolding"] },
    shared,
  );
  const { data } = (await session.run({ x: tensor(Float32Array.of(0)) })).y!;
  const wide = new Uint32Array(data.buffer, data.byteOffset, data.length);
  assert.ok(wide.every((word, i) => word === numbers[i]! << 16));
  await session.release();
  files.release();

  const cut = new DeviceFiles(runtime, [{ file, offset: 0, length: length + 2 }], readPart);
  await assert.rejects(cut.initializers(graph, directory), { code: "weights", message: /odd\.bin ended at byte/ });
});

test("joined parts lie one after the other on the device, each can be used alone, and there is room after them", async () => {
  const file = path.join(directory, "apart.bin");
  const [first, gap, second] = [Float32Array.of(1, 2), Float32Array.of(9), Float32Array.of(3, 4, 5, 6)];
  fs.writeFileSync(file, new Uint8Array(Float32Array.of(...first, ...gap, ...second).buffer));
  const parts = [
    { file, offset: 0, length: first.byteLength },
    { file, offset: first.byteLength + gap.byteLength, length: second.byteLength },
  ];
  const files = new DeviceFiles(runtime, parts, readPart, [{ parts, room: 12 }]);
  const read = async (offset: number, numbers: number) => {
    const graph = new Graph("read");
    const external = { location: "apart.bin", offset, length: 4 * numbers };
    const value = graph.externalInitializer("part", "float32", [numbers], external);
    graph.output("y", add(value, graph.input("x", "float32", [1])));
    const session = await runtime.createSession(
      graph,
      { externalDirectory: directory, disabledOptimizers: ["ConstantFolding"] },
      await files.initializers(graph, directory),
    );
    const { y } = await session.run({ x: tensor(Float32Array.of(0)) });
    await session.release();
    return [...y!.data];
  };
  assert.deepEqual(await read(0, 6), [1, 2, 3, 4, 5, 6]);
  assert.deepEqual(await read(0, 2), [1, 2]);
  assert.deepEqual(await read(16, 2), [4, 5]);
  assert.equal(files.bytes, 36);
  const sum = new Graph("sum");
  sum.output("y", add(sum.input("all", "float32", [9]), sum.input("x", "float32", [1])));
  const session = await runtime.createSession(sum, {});
  const [all, room] = [await files.view(parts[0]!, 0, "float32", [9]), await files.view(parts[0]!, 24, "float32", [3])];
  const x = tensor(Float32Array.of(0));
  assert.deepEqual([...(await session.run({ all, x })).y!.data], [1, 2, 3, 4, 5, 6, 0, 0, 0]);
  const fill = new Graph("fill");
  fill.output("y", add(fill.input("x", "float32", [3]), fill.constant(1)));
  const writes = await runtime.createSession(fill, {});
  await writes.run({ x: tensor(Float32Array.of(6, 7, 8)) }, { y: room });
  assert.deepEqual([...(await session.run({ all, x })).y!.data], [1, 2, 3, 4, 5, 6, 7, 8, 9]);
  await session.release();
  await writes.release();
  await assert.rejects(read(0, 3), { code: "session", message: /not in the files/ });
  files.release();
});
