import assert from "node:assert/strict";
import { test } from "node:test";
import { checkGradient, draw } from "../graph/differences.fixture.ts";
import { gradients } from "../graph/gradients.ts";
import { type Compute, Graph } from "../graph/graph.ts";
import { peakMemory } from "../graph/memory.ts";
import { add, mul, sum } from "../graph/primitives.ts";
import { rounded } from "../graph/rounded.fixture.ts";
import { tensor } from "../graph/tensor.ts";
import { createSession } from "../runtime/runtime.ts";
import { CASES } from "./gradients.fixture.ts";
import { tokenLogProbs } from "./token-log-probs.ts";

for (const rule of CASES)
  test(`the gradient of ${rule.name} agrees with finite differences`, () => checkGradient(rule));

const [ROWS, SIZE, VOCABULARY] = [7, 16, 1000];

/** Log-probs, entropies and the gradient of a sum of both. */
function graphOf(chunk: number, rows: number | string = ROWS, compute: Compute = "float32"): Graph {
  const g = new Graph("vocabulary", { compute });
  const [hidden, weight] = [
    g.input("hidden", "float32", [rows, SIZE], { requiresGrad: true }),
    g.input("weight", "float32", [VOCABULARY, SIZE], { requiresGrad: true }),
  ];
  const targets = g.input("targets", "int32", [rows]);
  const options = { chunk, largest: true };
  const { logProbs, entropies, largest } = tokenLogProbs(hidden, weight, targets, g.constant(0.7), options);
  g.output("largest", largest!);
  g.output("logProbs", logProbs);
  g.output("entropies", entropies);
  const loss = add(sum(mul(logProbs, g.input("d", "float32", [rows]))), sum(entropies));
  for (const [i, d] of gradients(loss, [hidden, weight]).entries()) g.output(`d${i}`, d);
  return g;
}

async function runWith(chunk: number, scale: number, compute: Compute = "float32") {
  const graph = graphOf(chunk, ROWS, compute);
  const session = await createSession(compute === "bfloat16" ? rounded(graph) : graph, { threads: 2 });
  const results = await session.run({
    hidden: tensor(draw(ROWS * SIZE, [-scale, scale], 1), [ROWS, SIZE]),
    weight: tensor(draw(VOCABULARY * SIZE, [-scale, scale], 2), [VOCABULARY, SIZE]),
    targets: tensor(Int32Array.of(0, 999, 127, 128, 500, 3, 640)),
    d: tensor(draw(ROWS, [-1, 1], 3)),
  });
  await session.release();
  return results;
}

test("log-probs and their gradients stay float32 in a graph that multiplies in bfloat16", async () => {
  for (const chunk of [VOCABULARY, 128]) // logits of up to 40
    assert.deepEqual(await runWith(chunk, 2, "bfloat16"), await runWith(chunk, 2), `${chunk}`);
});

test("chunks of the vocabulary of any size change no result, also with large logits", async () => {
  // logits of up to 4 and of up to 600, of which float32 knows 3e-5
  for (const [scale, error] of [
    [0.5, 1e-6],
    [8, 3e-5],
  ] as const) {
    const whole = await runWith(VOCABULARY, scale);
    for (const chunk of [999, 128, 250]) {
      const parts = await runWith(chunk, scale);
      for (const [name, { data }] of Object.entries(whole)) {
        const wanted = data as Float32Array;
        const largest = wanted.reduce((most, x) => Math.max(most, Math.abs(x)), 0);
        assert.ok(largest > 0, name);
        for (const [i, x] of wanted.entries()) {
          const got = parts[name].data[i] as number;
          assert.ok(Math.abs(got - x) <= 3e-6 * largest + error, `${scale}, ${chunk}: ${name}[${i}] ${got}, not ${x}`);
        }
      }
    }
  }
});

test("both passes over a vocabulary in chunks hold the logits of one chunk at a time", () => {
  const rows = 4000; // the gradient of the weight is small beside the logits
  const memory = (chunk: number) => peakMemory(graphOf(chunk, "rows"), { rows }, { outputsHeld: true }).bytes;
  const chunk = 100;
  const logits = 4 * rows * chunk;
  assert.ok(memory(chunk) < 4.5 * logits, `${memory(chunk) / logits} chunks`);
  assert.ok(memory(VOCABULARY) > 2 * 4 * rows * VOCABULARY);
});

test("the log-prob of the most probable token is the target's own where that is the target, bit for bit", async () => {
  const weight = draw(VOCABULARY * SIZE, [-1, 1], 2);
  const hidden = draw(ROWS * SIZE, [-1, 1], 1);
  const logits = Array.from({ length: ROWS }, (_, row) =>
    Array.from({ length: VOCABULARY }, (_, token) =>
      hidden.subarray(row * SIZE, (row + 1) * SIZE).reduce((sum, h, i) => sum + h * weight[token * SIZE + i]!, 0),
    ),
  );
  const greedy = logits.map((row) => row.indexOf(Math.max(...row)));
  const targets = greedy.map((token, row) => (row % 2 === 0 ? token : (token + 1) % VOCABULARY));
  for (const chunk of [VOCABULARY, 128]) {
    const session = await createSession(graphOf(chunk), { threads: 1 });
    const { logProbs, largest } = await session.run({
      hidden: tensor(hidden, [ROWS, SIZE]),
      weight: tensor(weight, [VOCABULARY, SIZE]),
      targets: tensor(Int32Array.from(targets)),
      d: tensor(draw(ROWS, [-1, 1], 3)),
    });
    await session.release();
    for (const row of targets.keys())
      assert.equal(logProbs.data[row] === largest.data[row], row % 2 === 0, `${chunk}: row ${row}`);
  }
});
