import assert from "node:assert/strict";
import { describe, it, test } from "node:test";
import { Graph, type Value } from "../graph/graph.ts";
import { type Tensor, tensor } from "../graph/tensor.ts";
import { createSession } from "../runtime/runtime.ts";
import { uniforms } from "./random.ts";
import { nucleus, sampleFromAll, sampleGreedy, sampleMixed } from "./sample.ts";

/** One level, two, and two of a number that has no divisor near its root. */
for (const vocabulary of [500, 1500, 4096, 2 * 1009])
  test(`sampled tokens follow the cumulative probabilities in a vocabulary of ${vocabulary}`, async () => {
    const rows = 40;
    const g = new Graph("sample", { opset: 21 });
    const logits = g.input("logits", "float32", ["rows", vocabulary]);
    const uniform = g.input("uniform", "float32", ["rows"]);
    const topP = g.input("topP", "float32", ["rows"]);
    const [all, some] = [sampleFromAll(logits, uniform), sampleMixed(logits, uniform, topP)];
    g.output("all", all.token);
    g.output("some", some.token);
    g.output("probability", some.probability);
    const session = await createSession(g, { threads: 1 });
    const next = uniforms(vocabulary, "logits");
    const scores = Float32Array.from({ length: rows * vocabulary }, () => 6 * next());
    const drawn = Float32Array.from({ length: rows }, (_, row) => (row === 0 ? 0 : row === 1 ? 1 - 2 ** -24 : next()));
    for (const p of [1e-6, 0.3, 0.9, 0.999]) {
      const found = await session.run({
        logits: tensor(scores, [rows, vocabulary]),
        uniform: tensor(drawn),
        topP: tensor(new Float32Array(rows).fill(p)),
      });
      for (let row = 0; row < rows; row++) {
        const exponents = [...scores.subarray(row * vocabulary, (row + 1) * vocabulary)].map(Math.exp);
        const total = exponents.reduce((sum, each) => sum + each);
        const probabilities = exponents.map((each) => each / total);
        const inside = keptByTransformers(probabilities, p);
        const mass = inside.reduce((sum, token) => sum + probabilities[token]!, 0);
        const token = Number(found.some!.data[row]);
        assertDrawn(token, inside, probabilities, drawn[row]! * mass);
        assertDrawn(Number(found.all!.data[row]), [...probabilities.keys()], probabilities, drawn[row]!);
        assert.ok(Math.abs(Math.log((found.probability!.data[row] as number) / probabilities[token]!)) < 1e-4);
      }
    }
    await session.release();
  });

test("a token of probability 0 is never sampled", async () => {
  for (const vocabulary of [64, 2048]) {
    const possible = [9, vocabulary - 3]; // the first tokens have a probability of 0, and so has the last one
    const drawn = Float32Array.of(0, 0.25, 0.75, 1 - 2 ** -24, 1);
    const rows = drawn.length;
    const g = new Graph("impossible", { opset: 21 });
    const logits = g.input("logits", "float32", ["rows", vocabulary]);
    const uniform = g.input("uniform", "float32", ["rows"]);
    g.output("all", sampleFromAll(logits, uniform).token);
    g.output("nucleus", sampleMixed(logits, uniform, g.input("topP", "float32", ["rows"])).token);
    const session = await createSession(g, { threads: 1 });
    const scores = new Float32Array(rows * vocabulary).fill(-1000);
    for (let row = 0; row < rows; row++) for (const token of possible) scores[row * vocabulary + token] = 0;
    const topP = tensor(new Float32Array(rows).fill(0.999));
    const found = await session.run({ logits: tensor(scores, [rows, vocabulary]), uniform: tensor(drawn), topP });
    const [first, last] = possible;
    assert.deepEqual([...found.all!.data].map(Number), [first, first, last, last, last]);
    for (const token of found.nucleus!.data) assert.ok(possible.includes(Number(token)), `token ${token}`);
    await session.release();
  }
});

test("rows with different options get the same bits as beside rows of the same options", async () => {
  const [rows, vocabulary] = [60, 1500];
  const g = new Graph("sample", { opset: 21 });
  const logits = g.input("logits", "float32", ["rows", vocabulary]);
  const [uniform, topP] = ["uniform", "topP"].map((name) => g.input(name, "float32", ["rows"])) as [Value, Value];
  const functions = {
    greedy: sampleGreedy(logits),
    all: sampleFromAll(logits, uniform),
    mixed: sampleMixed(logits, uniform, topP),
  };
  for (const [name, { token, probability }] of Object.entries(functions)) {
    g.output(`${name} token`, token);
    g.output(`${name} probability`, probability);
  }
  const session = await createSession(g, { threads: 1 });
  const next = uniforms(1, "logits");
  const found = await session.run({
    logits: tensor(
      Float32Array.from({ length: rows * vocabulary }, () => 6 * next()),
      [rows, vocabulary],
    ),
    uniform: tensor(Float32Array.from({ length: rows }, (_, row) => (row % 3 === 0 ? -1 : next()))),
    topP: tensor(Float32Array.from({ length: rows }, (_, row) => (row % 3 === 2 ? 0.2 : 1))),
  });
  for (let row = 0; row < rows; row++)
    for (const what of ["token", "probability"]) {
      const of = (name: string) => found[`${name} ${what}`]!.data[row];
      if (row % 3 < 2) assert.equal(of("mixed"), of(row % 3 === 0 ? "greedy" : "all"));
    }
  await session.release();
});

/** The tokens that transformers' TopPLogitsWarper keeps (generation/logits_process.py), in their own order. */
function keptByTransformers(probabilities: readonly number[], topP: number): number[] {
  const ascending = [...probabilities.keys()].sort((a, b) => probabilities[a]! - probabilities[b]!);
  let cumulative = 0;
  const kept = ascending.filter((token, place) => {
    cumulative += probabilities[token]!;
    return cumulative > 1 - topP || place === ascending.length - 1;
  });
  return kept.sort((a, b) => a - b);
}

/** `token` is where the sum over `order` passes the target, but for the rounding of float32 sums. */
function assertDrawn(token: number, order: readonly number[], probabilities: readonly number[], target: number): void {
  const place = order.indexOf(token);
  const before = order.slice(0, place).reduce((sum, each) => sum + probabilities[each]!, 0);
  const rounding = 1e-5;
  assert.ok(before <= target + rounding, `token ${token} at ${place}: ${before}, wanted ${target}`);
  assert.ok(before + probabilities[token]! >= target - rounding, `token ${token} at ${place} ends before ${target}`);
}

describe("the nucleus", () => {
  /** float32 weights [rows, vocabulary] of rows of probabilities */
  async function weightsOf(rows: readonly (readonly number[])[], topP: readonly number[]): Promise<number[][]> {
    const vocabulary = rows[0]!.length;
    const g = new Graph("nucleus", { opset: 21 });
    const probabilities = g.input("probabilities", "float32", ["rows", vocabulary]);
    g.output("weights", nucleus(probabilities, g.input("topP", "float32", ["rows", 1])));
    const session = await createSession(g, { threads: 1 });
    const { weights } = await session.run({
      probabilities: tensor(Float32Array.from(rows.flat()), [rows.length, vocabulary]),
      topP: tensor(
        Float32Array.from(rows, (_, row) => topP[row] ?? topP[0]!),
        [rows.length, 1],
      ),
    });
    await session.release();
    return rows.map((_, row) => [...(weights!.data as Float32Array)].slice(row * vocabulary, (row + 1) * vocabulary));
  }

  async function insideOf(rows: readonly (readonly number[])[], ...topP: number[]): Promise<number[][]> {
    const tokens = (weights: number[]) => [...weights.keys()].filter((token) => weights[token]! > 0);
    return (await weightsOf(rows, topP)).map(tokens);
  }

  /** Probabilities of normally distributed logits. */
  function made(vocabulary: number, deviation: number, seed: number): number[] {
    const next = uniforms(seed, "logits");
    const normal = () => Math.sqrt(-2 * Math.log(1 - next())) * Math.cos(2 * Math.PI * next());
    const weights = Array.from({ length: vocabulary }, () => Math.exp(deviation * normal()));
    const total = weights.reduce((sum, each) => sum + each);
    return weights.map((each) => Math.fround(each / total));
  }

  it("has the tokens that transformers keeps, from one of them to nearly all", async () => {
    const sizes = new Set<number>();
    for (const vocabulary of [50, 4096, 20_000])
      for (const deviation of [0.01, 1, 5])
        for (const topP of [1e-6, 0.1, 0.5, 0.9, 0.99]) {
          const probabilities = made(vocabulary, deviation, vocabulary);
          const [inside] = await insideOf([probabilities], topP);
          const expected = new Set(keptByTransformers(probabilities, topP));
          // of tokens whose probabilities differ by less than 4e-6 of themselves, one nucleus may have more than the other
          const differing = [...inside!.filter((token) => !expected.delete(token)), ...expected];
          const logs = differing.map((token) => Math.log(probabilities[token]!));
          const apart = differing.length === 0 ? 0 : Math.max(...logs) - Math.min(...logs);
          assert.ok(
            apart < 4e-6,
            `top-p ${topP} of ${vocabulary} at ${deviation}: ${differing.length} differ, ${apart} apart`,
          );
          sizes.add(inside!.length);
        }
    assert.ok(sizes.has(1) && Math.max(...sizes) > 19_700, `${[...sizes]}`);
  });

  it("has the weights of its probabilities", async () => {
    const probabilities = made(500, 2, 1);
    const [weights] = await weightsOf([probabilities], [0.9]);
    const inside = [...weights!.keys()].filter((token) => weights![token]! > 0);
    const scale = weights![inside[0]!]! / probabilities[inside[0]!]!;
    for (const token of inside) assert.ok(Math.abs(weights![token]! / (scale * probabilities[token]!) - 1) < 1e-6);
  });

  for (const [what, rows, topP, expected] of [
    ["ends with the token that reaches top-p", [[0.125, 0.5, 0.25, 0.125]], [0.75], [[1, 2]]],
    ["needs one more where top-p is a little above", [[0.1, 0.5, 0.25, 0.15]], [0.751], [[1, 2, 3]]],
    ["is the most probable token, be top-p ever so small", [[0.3, 0.3001, 0.2, 0.1999]], [1e-30], [[1]]],
    ["is one token that dominates", [[1e-9, 0, 1, 1e-12]], [0.999], [[2]]],
    ["has all tokens as probable as its last", [[0.1, 0.4, 0.2, 0.2, 0.1]], [0.5], [[1, 2, 3]]],
    ["has all tokens where all are equal", [Array(8).fill(1 / 8)], [0.3], [[0, 1, 2, 3, 4, 5, 6, 7]]],
    ["tells logits apart that differ by 1e-5", [[0.25, 0.25, 0.25 * (1 + 1e-5)]], [0.2], [[2]]],
    ["can be another for each row", Array(3).fill([0.5, 0.3, 0.2]), [0.4, 0.7, 0.9], [[0], [0, 1], [0, 1, 2]]],
    ["ends where sums reach a top-p just below 1", [[0.5, 0.5 - 2e-13, 1e-13, 1e-13]], [1 - 2 ** -24], [[0, 1]]],
  ] as [string, number[][], number[], number[][]][])
    it(what, async () => assert.deepEqual(await insideOf(rows, ...topP), expected));
});

describe("a token of the nucleus", () => {
  const ROWS = 50_000;
  const LOGITS = [0, 1, 2, 1, -1, 3, 0.5, 2]; // two are equal where the nuclei of 0.6 and 0.85 end
  const all = LOGITS.map(Math.exp).map((each, _, every) => each / every.reduce((sum, other) => sum + other));

  async function draw(topP: number, logits = LOGITS): Promise<{ tokens: number[]; logProbs: number[] }> {
    const g = new Graph("sample", { opset: 21 });
    const shape = ["rows", logits.length];
    const inputs = [g.input("logits", "float32", shape), g.input("uniform", "float32", ["rows"])] as const;
    const { token, probability } = sampleMixed(...inputs, g.input("topP", "float32", ["rows"]));
    g.output("token", token);
    g.output("probability", probability);
    const session = await createSession(g, { threads: 1 });
    const next = uniforms(1, "tokens");
    const feeds: Record<string, Tensor> = {
      logits: tensor(Float32Array.from(Array(ROWS).fill(logits).flat()), [ROWS, logits.length]),
      uniform: tensor(Float32Array.from({ length: ROWS }, next)),
      topP: tensor(new Float32Array(ROWS).fill(topP)),
    };
    const results = await session.run(feeds);
    await session.release();
    return {
      tokens: [...(results.token!.data as BigInt64Array)].map(Number),
      logProbs: [...(results.probability!.data as Float32Array)].map(Math.log),
    };
  }

  for (const [topP, inside] of [
    [0.6, [2, 5, 7]],
    [0.85, [1, 2, 3, 5, 7]],
    [0.999, [0, 1, 2, 3, 4, 5, 6, 7]],
  ] as [number, number[]][])
    it(`is drawn in proportion to its probability, at top-p ${topP}`, async () => {
      const { tokens } = await draw(topP);
      const mass = inside.reduce((sum, token) => sum + all[token]!, 0);
      let statistic = 0;
      let seen = 0;
      for (const token of inside) {
        const expected = (ROWS * all[token]!) / mass;
        const count = tokens.filter((each) => each === token).length;
        statistic += (count - expected) ** 2 / expected;
        seen += count;
      }
      assert.equal(seen, ROWS, "no token of another set");
      const freedom = inside.length - 1;
      assert.ok(statistic < freedom + 3.5 * Math.sqrt(2 * freedom), `chi-square ${statistic} of ${freedom}`);
    });

  it("is the same for the same random number and has its log-prob among all tokens", async () => {
    const [first, second] = [await draw(0.8), await draw(0.8)];
    assert.deepEqual(first, second);
    for (const [row, token] of first.tokens.entries())
      assert.ok(Math.abs(first.logProbs[row]! - Math.log(all[token]!)) < 1e-5);
  });

  it("has a log-prob of NaN if the logits are NaN", async () => {
    const { logProbs } = await draw(0.8, [0, Number.NaN, 1]);
    assert.ok(logProbs.every(Number.isNaN));
  });
});
