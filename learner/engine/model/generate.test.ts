import assert from "node:assert/strict";
import { after, describe, it } from "node:test";
import type { ModelConfig } from "./config.ts";
import { generation, load, NAMES, OPTIONS, type Reference, seedsFor } from "./generate.fixture.ts";
import { type GenerateOptions, Generator } from "./generate.ts";
import { initialWeights } from "./weights.ts";

function largestDifference(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  assert.equal(actual.length, expected.length);
  let largest = 0;
  for (let i = 0; i < actual.length; i++) largest = Math.max(largest, Math.abs(actual[i] - expected[i]));
  return largest;
}

for (const name of NAMES) {
  describe(`generation of a ${name} model`, () => {
    const { weights, reference, prompts, generator, generate } = generation(name);

    it("writes the greedy tokens of transformers, with prompts of different lengths in one batch", async () => {
      const responses = await generate(prompts, { temperature: 0 });
      for (const [index, { greedy, logProbs }] of reference.cases.entries()) {
        assert.deepEqual([...responses[index].response], greedy);
        assert.ok(largestDifference(responses[index].logProbs, logProbs["1.0"]) < 1e-4);
        assert.equal(responses[index].finished, false);
      }
    });

    it("writes the same tokens for a prompt alone, twice, or padded by a longer one", async () => {
      const { prompt, greedy } = reference.cases[2];
      const row = Int32Array.from(prompt);
      for (const batch of [[row], [row, row, row], [row, prompts[4]], [prompts[0], row, prompts[4], row, prompts[1]]]) {
        const responses = await generate(batch, { temperature: 0 });
        for (const [index, tokens] of batch.entries()) {
          if (tokens === row) assert.deepEqual([...responses[index].response], greedy);
        }
      }
    });

    it("samples the same tokens for the same seed in any batch", async () => {
      const alone = await generate([prompts[3]], { seeds: [7], temperature: 0.7 });
      const again = await generate([prompts[3]], { seeds: [7], temperature: 0.7 });
      assert.deepEqual(alone, again);
      const batch = [prompts[4], prompts[3], prompts[3], prompts[0]];
      const among = await generate(batch, { seeds: [1, 8, 7, 7], temperature: 0.7 });
      assert.deepEqual(among[2], alone[0]);
      assert.notDeepEqual(among[1].response, alone[0].response);
    });

    it("gives log-probs at the sampling temperature, also for a nucleus", async () => {
      // a nucleus this small is the most probable token alone, whose log-prob transformers gave
      for (const temperature of [1, 0.7]) {
        const responses = await generate(prompts, { temperature, topP: 1e-6 });
        for (const [index, { greedy, logProbs }] of reference.cases.entries()) {
          assert.deepEqual([...responses[index].response], greedy);
          const expected = logProbs[temperature === 1 ? "1.0" : "0.7"];
          assert.ok(largestDifference(responses[index].logProbs, expected) < 1e-4);
        }
      }
    });

    it("ends a row with the first of several EOS tokens and lets the others go on", async () => {
      const eosIds = [tokenOfOne(reference, 40), tokenOfOne(reference, 3)];
      const responses = await generate(prompts, { temperature: 0, eosIds });
      for (const [index, { greedy }] of reference.cases.entries()) {
        const end = greedy.findIndex((token) => eosIds.includes(token));
        assert.deepEqual([...responses[index].response], end < 0 ? greedy : greedy.slice(0, end + 1));
        assert.equal(responses[index].logProbs.length, responses[index].response.length);
        assert.equal(responses[index].finished, end >= 0);
      }
      assert.ok(responses.some(({ finished }) => finished) && responses.some(({ finished }) => !finished));
    });

    it("stops at any maxNewTokens", async () => {
      for (const maxNewTokens of [1, 15, 16, 17, 33]) {
        const responses = await generate(prompts, { temperature: 0, maxNewTokens });
        for (const [index, { greedy }] of reference.cases.entries()) {
          assert.deepEqual([...responses[index].response], greedy.slice(0, maxNewTokens));
        }
      }
    });

    it("uses new weights in the same buffers", async () => {
      const changed = new Map([...weights].map(([key, data]) => [key, data.slice()]));
      const before = await generator.generate(changed, prompts, {
        ...OPTIONS,
        seeds: seedsFor(prompts),
        temperature: 0,
      });
      for (const data of changed.values()) for (let i = 0; i < data.length; i++) data[i] *= i % 2 === 0 ? 1.5 : 0.5;
      const afterwards = await generator.generate(changed, prompts, {
        ...OPTIONS,
        seeds: seedsFor(prompts),
        temperature: 0,
      });
      assert.notDeepEqual(afterwards[0].response, before[0].response);
    });
  });
}

describe("sampling", () => {
  const { config, reference, prompts, generate } = generation("qwen2");
  const SAMPLES = 6000;
  const { logits } = reference.cases[2];

  /** Returns how often each token is drawn first, over many seeds. */
  async function countTokens(temperature: number, topP: number): Promise<number[]> {
    const rows = Array.from({ length: SAMPLES }, () => prompts[2]);
    const seeds = [...rows.keys()];
    const responses = await generate(rows, { seeds, temperature, topP, maxNewTokens: 1 });
    const counts = new Array<number>(config.vocabSize).fill(0);
    const full = softmax(logits, temperature);
    for (const { response, logProbs } of responses) {
      counts[response[0]]++;
      assert.ok(Math.abs(logProbs[0] - Math.log(full[response[0]])) < 1e-4);
    }
    return counts;
  }

  /** Pearson's statistic in units of its standard deviation (its mean is n, its variance 2n); rare tokens are one cell. */
  function chiSquare(counts: number[], probabilities: number[]): number {
    const cells: [expected: number, seen: number][] = [[0, 0]];
    for (const [token, probability] of probabilities.entries()) {
      const expected = probability * SAMPLES;
      if (expected >= 8) cells.push([expected, counts[token]]);
      else cells[0] = [cells[0][0] + expected, cells[0][1] + counts[token]];
    }
    const used = cells.filter(([expected, seen]) => expected >= 1 || seen > 0);
    const statistic = used.reduce((sum, [expected, seen]) => sum + (seen - expected) ** 2 / (expected || 1e-9), 0);
    const freedom = used.length - 1;
    return (statistic - freedom) / Math.sqrt(2 * freedom);
  }

  for (const [temperature, topP] of [
    [1, 1],
    [0.7, 1],
    [2.5, 1],
    [2.5, 0.9],
    [2.5, 0.5],
    [1, 0.95],
  ]) {
    it(`draws from the distribution at temperature ${temperature} and topP ${topP}`, async () => {
      const counts = await countTokens(temperature, topP);
      const deviation = chiSquare(counts, nucleus(softmax(logits, temperature), topP));
      assert.ok(deviation < 3.5, `chi-square is ${deviation} standard deviations off`); // seeds are fixed: no flicker
      const wrong = chiSquare(counts, nucleus(softmax(logits, temperature * 0.7), topP));
      assert.ok(wrong > 5, `another temperature is only ${wrong} off`);
    });
  }
});

/** A token that exactly one greedy response has, first at about this position. */
function tokenOfOne({ cases }: Reference, position: number): number {
  for (let at = position; ; at++) {
    for (const { greedy } of cases) {
      if (cases.filter((other) => other.greedy.includes(greedy[at])).length === 1) return greedy[at];
    }
  }
}

function softmax(logits: number[], temperature: number): number[] {
  const highest = Math.max(...logits);
  const weights = logits.map((logit) => Math.exp((logit - highest) / temperature));
  const total = weights.reduce((sum, weight) => sum + weight, 0);
  return weights.map((weight) => weight / total);
}

function nucleus(probabilities: number[], topP: number): number[] {
  const order = probabilities.map((_, token) => token).sort((a, b) => probabilities[b] - probabilities[a]);
  const kept = new Set<number>();
  let total = 0;
  for (const token of order) {
    if (total >= topP) break;
    kept.add(token);
    total += probabilities[token];
  }
  return probabilities.map((probability, token) => (kept.has(token) ? probability / total : 0));
}

describe("requests that cannot be served", () => {
  const config: ModelConfig = { ...load("qwen2").config, maxPositions: 64 };
  const weights = initialWeights(config, 1);
  const generator = new Generator(config, { threads: 1 });
  after(() => generator.release());
  const request = { seeds: [1], temperature: 1, topP: 1, maxNewTokens: 8, eosIds: [] };
  const prompt = Int32Array.of(1, 2);

  for (const [change, prompts, message] of [
    [{ seeds: [] }, [prompt], /0 seeds for 1 prompts/],
    [{ temperature: -1 }, [prompt], /temperature is -1/],
    [{ temperature: Number.NaN }, [prompt], /temperature is NaN/],
    [{ topP: 0 }, [prompt], /topP is 0/],
    [{ topP: 1.1 }, [prompt], /topP is 1.1/],
    [{ maxNewTokens: 0 }, [prompt], /maxNewTokens is 0/],
    [{ maxNewTokens: 63 }, [prompt], /65 tokens; the model has 64 positions/],
    [{}, [Int32Array.of()], /prompt 0 is empty/],
    [{}, [Int32Array.of(160)], /token 160; the vocabulary is 160/],
    [{}, [Int32Array.of(-1)], /token -1/],
  ] as [Partial<GenerateOptions>, Int32Array[], RegExp][]) {
    it(`refuses ${message}`, async () => {
      await assert.rejects(generator.generate(weights, prompts, { ...request, ...change }), {
        code: "generation",
        message,
      });
    });
  }

  it("says that the weights are not finite", async () => {
    const broken = new Map(
      [...weights].map(([key, data]) => [key, key === "model.norm.weight" ? data.map(() => Number.NaN) : data]),
    );
    for (const topP of [1, 0.9])
      await assert.rejects(generator.generate(broken, [prompt], { ...request, topP }), /not finite/);
  });

  it("fails every call of a step whose logits are not finite, also if the call's last row ends in that step", {
    timeout: 5000,
  }, async () => {
    const embedding = "model.embed_tokens.weight";
    const poisoned = weights.get(embedding)!.slice();
    poisoned.fill(Number.NaN, 5 * config.hiddenSize, 6 * config.hiddenSize); // the row of token 5
    const untied = { ...config, tied: false };
    const broken = new Map([...initialWeights(untied, 1), [embedding, poisoned]]);
    const own = new Generator(untied, { threads: 1 });
    const calls = [prompt, Int32Array.of(1, 5)].map((each) =>
      own.generate(broken, [each], { ...request, maxNewTokens: 1 }),
    );
    for (const call of calls) await assert.rejects(call, /not finite/);
    await own.release();
  });

  it("says which parameter is missing", async () => {
    const missing = new Map(weights);
    missing.delete("model.layers.1.mlp.up_proj.weight");
    await assert.rejects(generator.generate(missing, [prompt], request), /layers.1.mlp.up_proj.weight is missing/);
  });

  it("returns nothing for no prompts, and generates the next call's", async () => {
    assert.deepEqual(await generator.generate(weights, [], { ...request, seeds: [] }), []);
    assert.equal((await generator.generate(weights, [prompt], request)).length, 1);
  });
});
