import assert from "node:assert/strict";
import { test } from "node:test";
import { Graph } from "../graph/graph.ts";
import { Session } from "../graph/session.ts";
import { tensor } from "../graph/tensor.ts";
import { uniforms } from "../rng.ts";
import { sampleFromAll, sampleFromNucleus } from "./sample.ts";

/** One level, two, and two of a number that has no divisor near its root. */
for (const vocabulary of [500, 1500, 4096, 2 * 1009])
  test(`tokens of a vocabulary of ${vocabulary} are those of the cumulative probabilities, of all and of a nucleus`, async () => {
    const rows = 40;
    const g = new Graph("sample", { opset: 21 });
    const logits = g.input("logits", "float32", ["rows", vocabulary]);
    const uniform = g.input("uniform", "float32", ["rows"]);
    const topP = g.input("topP", "float32", []);
    const [all, nucleus] = [sampleFromAll(g, logits, uniform), sampleFromNucleus(g, logits, uniform, topP)];
    g.output("all", all.token);
    g.output("nucleus", nucleus.token);
    g.output("logProb", nucleus.logProb);
    const session = await Session.create(g, { threads: 1 });
    const next = uniforms(vocabulary, "logits");
    const scores = Float32Array.from({ length: rows * vocabulary }, () => 6 * next());
    const drawn = Float32Array.from({ length: rows }, (_, row) => (row === 0 ? 0 : row === 1 ? 1 - 2 ** -24 : next()));
    for (const p of [1e-6, 0.3, 0.9, 0.999]) {
      const found = await session.run({
        logits: tensor(scores, [rows, vocabulary]),
        uniform: tensor(drawn),
        topP: tensor(Float32Array.of(p), []),
      });
      for (let row = 0; row < rows; row++) {
        const exponents = [...scores.subarray(row * vocabulary, (row + 1) * vocabulary)].map(Math.exp);
        const total = exponents.reduce((sum, each) => sum + each);
        const probabilities = exponents.map((each) => each / total);
        const order = [...probabilities.keys()].sort((a, b) => probabilities[b]! - probabilities[a]!);
        const inside = order.slice(0, 1 + crossed(order, probabilities, p));
        const mass = inside.reduce((sum, token) => sum + probabilities[token]!, 0);
        const token = Number(found.nucleus!.data[row]);
        assertDrawn(token, order, probabilities, drawn[row]! * mass);
        assertDrawn(Number(found.all!.data[row]), [...probabilities.keys()], probabilities, drawn[row]!);
        assert.ok(Math.abs((found.logProb!.data[row] as number) - Math.log(probabilities[token]!)) < 1e-4);
      }
    }
    await session.release();
  });

/** The place in `order` at which the sum reaches a target. */
function crossed(order: readonly number[], probabilities: readonly number[], target: number): number {
  let sum = 0;
  for (const [place, token] of order.entries()) {
    sum += probabilities[token]!;
    if (sum >= target) return place;
  }
  return order.length - 1;
}

/** `token` is where the sum over `order` passes the target, but for the rounding of float32 sums. */
function assertDrawn(token: number, order: readonly number[], probabilities: readonly number[], target: number): void {
  const place = order.indexOf(token);
  const before = order.slice(0, place).reduce((sum, each) => sum + probabilities[each]!, 0);
  const rounding = 1e-5;
  assert.ok(before <= target + rounding, `token ${token} at ${place}: ${before}, wanted ${target}`);
  assert.ok(before + probabilities[token]! >= target - rounding, `token ${token} at ${place} ends before ${target}`);
}
