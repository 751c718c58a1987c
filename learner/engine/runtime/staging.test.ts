import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph } from "../graph/graph.ts";
import { add, cast, mul, reshape } from "../graph/primitives.ts";
import { type Tensor, tensor } from "../graph/tensor.ts";
import { ortApi } from "./api.ts";
import { Runtime } from "./runtime.ts";
import { stageable } from "./staging.ts";

function sums(): Graph {
  const g = new Graph("sums");
  const x = g.input("x", "float32", ["rows", 3]);
  const ids = g.input("ids", "int32", ["rows"]);
  const scale = g.input("scale", "float32", []);
  const count = g.input("count", "int64", []);
  g.input("unused", "float32", ["rows"]);
  const weighted = mul(mul(x, reshape(cast(ids, "float32"), ["rows", 1])), scale);
  g.output("rows", g.dim("rows"));
  g.output("sums", add(weighted, cast(count, "float32")));
  return g;
}

const feeds = (rows: number): Record<string, Tensor> => ({
  x: tensor(Float32Array.from({ length: 3 * rows + 1 }, (_, i) => Math.sin(i)).subarray(1), [rows, 3]),
  ids: tensor(Int32Array.from({ length: rows }, (_, i) => i * i)),
  scale: tensor(Float32Array.of(0.3), []),
  count: tensor(BigInt64Array.of(7n), []),
  unused: tensor(new Float32Array(rows)),
});

test("inputs that go to the device together give the same results as one by one, in every size of a run", async () => {
  const runtimes = [false, true].map((stages) => new Runtime({ kind: "cpu" }, ortApi, stages));
  const sessions = await Promise.all(runtimes.map((runtime) => runtime.createSession(sums(), {})));
  for (const rows of [4, 1, 4, 900, 0, 30]) {
    const [expected, found] = await Promise.all(sessions.map((session) => session.run(feeds(rows))));
    assert.deepEqual(found, expected, `${rows} rows`);
  }
  await assert.rejects(sessions[1]!.run({ x: feeds(1).x! }), /the input 'ids' is missing/);
  for (const session of sessions) await session.release();
  for (const runtime of runtimes) await runtime.release();
});

test("inputs that ONNX Runtime wants in host memory are not staged", () => {
  const g = sums();
  // the rows of x are asked for
  assert.deepEqual([...stageable(g)], ["ids", "scale"]);
});
