import assert from "node:assert/strict";
import { test } from "node:test";
import { createSession } from "../runtime/runtime.ts";
import { gradients } from "./gradients.ts";
import { Graph, type Value } from "./graph.ts";
import { add, maximum, minimum, reshape, square, sum } from "./primitives.ts";
import { linear } from "./products.ts";
import { tensor, tensorOf } from "./tensor.ts";

const f32 = (values: number[], shape?: number[]) => tensorOf("float32", values, shape);

test("a graph with a named dim gives loss and gradient", async () => {
  const g = new Graph("example");
  const x = g.input("x", "float32", ["rows", 3]);
  const w = g.input("w", "float32", [2, 3], { requiresGrad: true });
  const loss = sum(square(linear(x, w)));
  const [dw] = gradients(loss, [w]);
  g.output("loss", loss);
  g.output("dw", dw!);
  const session = await createSession(g, { threads: 1 });
  const target = tensor(new Float32Array(6), [2, 3]);
  const result = await session.run(
    { x: f32([1, 2, 3, 0, 1, 0], [2, 3]), w: f32([1, 0, 0, 0, 1, 1], [2, 3]) },
    { loss: null, dw: target },
  );
  assert.equal(result.loss!.data[0], 1 + 25 + 0 + 1);
  assert.deepEqual([...target.data], [2, 4, 6, 10, 22, 30]);
  await session.release();
});

test("the whole gradient goes to the first operand of maximum or minimum if both are equal", async () => {
  for (const choose of [maximum, minimum]) {
    const g = new Graph("tie");
    const [x, y] = ["x", "y"].map((name) => g.input(name, "float32", [2], { requiresGrad: true })) as [Value, Value];
    const [dx, dy] = gradients(sum(choose(x, y)), [x, y]);
    g.output("dx", dx!);
    g.output("dy", dy!);
    const session = await createSession(g, { threads: 1 });
    const result = await session.run({ x: f32([3, -1]), y: f32([3, -1]) });
    assert.deepEqual(
      [[...result.dx!.data], [...result.dy!.data]],
      [
        [1, 1],
        [0, 0],
      ],
      choose.name,
    );
    await session.release();
  }
});

test("a value with several named dims can be reshaped", async () => {
  const g = new Graph("named");
  const x = g.input("x", "float32", ["b", "t", 4]);
  g.output("y", reshape(reshape(x, ["b*t", 4]), ["b", "t", 2, 2]));
  const session = await createSession(g, { threads: 1 });
  assert.deepEqual((await session.run({ x: tensor(new Float32Array(24), [2, 3, 4]) })).y!.shape, [2, 3, 2, 2]);
  await session.release();
});

test("a graph that is built with a mistake names the mistake", () => {
  const g = new Graph("wrong");
  const x = g.input("x", "float32", [2, 3]);
  assert.throws(() => g.input("x", "float32", [1]), /name 'x' is taken/);
  assert.throws(() => add(x, g.input("y", "float32", [2])), /do not broadcast \(3 against 2\)/);
  assert.throws(() => add(x, g.input("i", "int32", [3])), /float32 and int32/);
  assert.throws(() => reshape(x, [4, 2]), /other elements/);
  assert.throws(() => gradients(sum(x), [x]), /without requiresGrad/);
  assert.throws(() => new Graph("other").op("Neg", [x], {}, [x]), /belongs to graph wrong, not to other/);
});
