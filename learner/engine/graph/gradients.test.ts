import assert from "node:assert/strict";
import { test } from "node:test";
import { createSession } from "../runtime/runtime.ts";
import { embedding, embeddingPlan } from "./composites.ts";
import { checkGradient, draw } from "./differences.fixture.ts";
import { CASES } from "./gradients.fixture.ts";
import { gradients } from "./gradients.ts";
import { Graph } from "./graph.ts";
import * as op from "./primitives.ts";
import { tensor } from "./tensor.ts";

for (const rule of CASES)
  test(`the gradient of ${rule.name} agrees with finite differences`, () => checkGradient(rule));

for (const shape of [[20000], [80, 250]])
  test(`the embedding's gradient is exact where thousands of tokens repeat, sums of ${shape.join(" x ")}`, async () => {
    const [vocabulary, size, count] = [7, 3, 20000];
    const ids = Int32Array.from({ length: count }, (_, i) => (i * i) % vocabulary);
    const g = new Graph("repeats");
    const w = g.input("w", "float32", [vocabulary, size], { requiresGrad: true });
    const d = g.input("d", "float32", [count, size]);
    const plan = embeddingPlan(ids, vocabulary);
    const order = g.initializer("order", tensor(plan.order, shape));
    const begins = g.initializer("begins", tensor(plan.begins));
    const ends = g.initializer("ends", tensor(plan.ends));
    const distinct = g.initializer("distinct", tensor(plan.distinct, [plan.distinct.length, 1]));
    const loss = op.sum(op.mul(embedding(w, g.initializer("ids", tensor(ids)), { order, distinct, begins, ends }), d));
    g.output("dw", gradients(loss, [w])[0]);
    const session = await createSession(g, { threads: 2 });
    const cotangents = draw(count * size, [-1, 1], 9);
    const wanted = new Float64Array(vocabulary * size);
    for (const [i, value] of cotangents.entries()) wanted[ids[Math.floor(i / size)] * size + (i % size)] += value;
    for (let repeat = 0; repeat < 5; repeat++) {
      const { dw } = await session.run({
        w: tensor(new Float32Array(vocabulary * size), [vocabulary, size]),
        d: tensor(cotangents, [count, size]),
      });
      for (const [i, want] of wanted.entries()) assert.equal(dw.data[i], Math.fround(want));
    }
    await session.release();
  });
