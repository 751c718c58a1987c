import assert from "node:assert/strict";
import { test } from "node:test";
import { gradients } from "./gradients.ts";
import { Graph } from "./graph.ts";
import { boundDims, executionOrder, peakMemory } from "./memory.ts";
import { add, concat, exp, mul, reshape, sigmoid, sum, transpose } from "./primitives.ts";
import { matmul } from "./products.ts";
import { arenaBytes } from "./session-memory.ts";
import { tensor } from "./tensor.ts";

const KB = 1024;

/** Results of 1 KiB for each of `rows` rows. */
function square(g: Graph) {
  return g.input("x", "float32", ["rows", 256]);
}

test("a value lives until its last reader has run, which writes over it where the kernel can", () => {
  const g = new Graph("chain");
  const x = square(g);
  const a = matmul(x, g.input("w", "float32", [256, 256])); // inputs are not counted
  const b = transpose(a, [1, 0]); // a and b
  const c = exp(exp(b)); // the first in place; an output has memory of its own
  g.output("c", c);
  assert.equal(peakMemory(g, { rows: 2 }).bytes, 4 * KB);
  const h = new Graph("two are needed for a third");
  const y = transpose(exp(square(h)), [1, 0]);
  h.output("c", add(exp(y), y));
  assert.equal(peakMemory(h, { rows: 2 }).bytes, 6 * KB);
  const k = new Graph("two users");
  const z = transpose(exp(square(k)), [1, 0]);
  k.output("a", transpose(exp(exp(z)), [1, 0])); // z and one more: the second exp is in place
  k.output("b", transpose(add(z, 1), [1, 0]));
  assert.equal(peakMemory(k, { rows: 2 }).bytes, 6 * KB);
  assert.equal(peakMemory(k, { rows: 2 }, { outputsHeld: true }).bytes, 4 * KB);
});

test("views take no memory, outputs stay, and outputs in the caller's memory do not count", () => {
  const g = new Graph("views");
  const x = transpose(square(g), [1, 0]);
  g.output("a", reshape(x, [16, 16, "rows"]));
  g.output("b", transpose(x, [1, 0]));
  assert.equal(peakMemory(g, { rows: 3 }).bytes, 6 * KB);
  assert.equal(peakMemory(g, { rows: 3 }, { outputsHeld: true }).bytes, 0);
  assert.throws(() => peakMemory(g, {}), { code: "shape", message: /size of 'rows' in the shape of Transpose_/ });
});

test("a value in a GPU's arena writes over its input or takes the place of a dead value of the same shape", () => {
  const g = new Graph("chain");
  g.output("c", sigmoid(sigmoid(sigmoid(square(g)))));
  assert.equal(arenaBytes(g, { rows: 2 }), 2 * KB, "the last is in the caller's memory");
  const again = new Graph("recomputes");
  again.model.recomputes = true;
  again.output("c", exp(exp(square(again))));
  assert.equal(arenaBytes(again, { rows: 2 }), 4 * KB, "exp is not in place; an output is made there, and copied out");
  const h = new Graph("not in place");
  const x = square(h);
  const y = transpose(transpose(transpose(x, [1, 0]), [1, 0]), [1, 0]);
  h.output("c", y);
  assert.equal(arenaBytes(h, { rows: 2 }), 4 * KB, "the third has the first one's memory");
  const k = new Graph("other shapes");
  const z = matmul(
    transpose(k.input("x", "float32", ["rows", 256]), [1, 0]),
    k.input("w", "float32", ["rows", "more"]),
  );
  k.output("c", transpose(reshape(transpose(z, [1, 0]), [256, "more"]), [1, 0]));
  // z, and beside it the transposed input, whose place the transpose of z takes
  assert.equal(arenaBytes(k, { rows: 4, more: 4 }), 8 * KB);
  assert.throws(() => arenaBytes(g, {}), { code: "shape" });
});

test("in a GPU's arena a view of an input has no memory, and another value takes the place of one that nobody reads", () => {
  const g = new Graph("views");
  const x = square(g);
  const flat = reshape(x, ["rows*256"]);
  const [halves] = g.op("Split", [flat], { axis: 0, num_outputs: 2 }, [
    { dtype: "float32", shape: ["rows*128"] },
    { dtype: "float32", shape: ["rows*128"] },
  ]);
  g.output("c", transpose(reshape(exp(exp(exp(halves!))), ["rows", 128]), [1, 0]));
  // both halves, of which nobody reads the second
  assert.equal(arenaBytes(g, { rows: 2 }), 2 * KB);
});

test("feeds bind the dims, and shapes may have sums and products of dims", () => {
  const g = new Graph("dims");
  const x = g.input("x", "float32", ["rows", "2*half"]);
  const y = g.input("y", "float32", ["more", "2*half"]);
  g.input("h", "float32", ["half"]);
  g.output("z", concat([x, y], 0));
  const feed = (rows: number, columns: number) => tensor(new Float32Array(rows * columns), [rows, columns]);
  const dims = boundDims(g, { x: feed(3, 8), y: feed(2, 8), h: tensor(new Float32Array(4)) });
  assert.deepEqual(dims, { rows: 3, more: 2, half: 4 });
  assert.equal(peakMemory(g, dims).bytes, 5 * 8 * 4);
});

test("values that the backward pass needs are live at the peak of memory", () => {
  const g = new Graph("backward");
  const x = square(g);
  const w = g.input("w", "float32", [256, 256], { requiresGrad: true });
  const hidden = exp(matmul(x, w));
  const [dw] = gradients(sum(mul(hidden, hidden)), [w]);
  g.output("dw", dw!);
  const { bytes, live } = peakMemory(g, { rows: 1000 }, { outputsHeld: true });
  assert.ok(bytes >= 2 * 1000 * KB && bytes <= 3 * 1000 * KB + 64, `${bytes}`);
  assert.equal(
    live.reduce((total, part) => total + part.bytes, 0),
    bytes,
  );
});

test("nodes are ordered as ONNX Runtime orders them: the branch that was added last runs first", () => {
  const g = new Graph("order");
  const x = square(g);
  const first = transpose(x, [1, 0]);
  const second = exp(x);
  g.output("product", matmul(first, second));
  assert.deepEqual(
    executionOrder(g).map(({ type }) => type),
    ["Exp", "Transpose", "MatMul", "Identity"],
  );
});
