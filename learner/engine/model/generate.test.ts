import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { after, describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { type OnDevice, Runtime } from "../runtime/runtime.ts";
import { Session } from "../runtime/session.ts";
import { type ModelConfig, parseConfig } from "./config.ts";
import { selectWeights } from "./folder.fixture.ts";
import { type GenerateOptions, Generator, type Response, type ResponsePart } from "./generate.ts";
import { permutation, uniforms } from "./random.ts";
import { readSafetensors } from "./safetensors.ts";
import { initialWeights } from "./weights.ts";

const FIXTURES = fileURLToPath(new URL("../../../test/fixtures/generation", import.meta.url));

interface Reference {
  cases: { prompt: number[]; greedy: number[]; logProbs: Record<string, number[]>; logits: number[] }[];
}

function load(name: string) {
  const json = (file: string) => JSON.parse(fs.readFileSync(path.join(FIXTURES, name, file), "utf8"));
  const config = parseConfig(json("config.json"));
  const file = path.join(FIXTURES, name, "model.safetensors");
  const weights = selectWeights(config, readSafetensors(file), file);
  return { config, weights, reference: json("reference.json") as Reference };
}

function largestDifference(actual: ArrayLike<number>, expected: ArrayLike<number>): number {
  assert.equal(actual.length, expected.length);
  let largest = 0;
  for (let i = 0; i < actual.length; i++) largest = Math.max(largest, Math.abs(actual[i] - expected[i]));
  return largest;
}

const OPTIONS = { temperature: 1, topP: 1, maxNewTokens: 72, eosIds: [] } satisfies Partial<GenerateOptions>;
const seedsFor = (rows: ArrayLike<unknown>) => Array.from({ length: rows.length }, (_, i) => i + 1);

for (const name of ["qwen2", "llama"]) {
  describe(`generation of a ${name} model`, () => {
    const { config, weights, reference } = load(name);
    const generator = new Generator(config, { threads: 1 });
    after(() => generator.release());
    const prompts = reference.cases.map(({ prompt }) => Int32Array.from(prompt));
    const generate = (rows: Int32Array[], options: Partial<GenerateOptions> = {}, by = generator) =>
      by.generate(weights, rows, { ...OPTIONS, seeds: seedsFor(rows), ...options });
    const withSlots = (slots: number) => {
      const own = new Generator(config, { threads: 1, slots });
      after(() => own.release());
      return own;
    };

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

    it("makes a session that could not be made again at the next call", async () => {
      const runtime = new Runtime({ kind: "cpu" });
      let failures = 1;
      const createSession: OnDevice["createSession"] = async (...graph) => {
        if (failures-- > 0) throw new Error("there is no memory");
        return runtime.createSession(...graph);
      };
      const own = new Generator(config, { threads: 1, onDevice: { runtime, createSession } });
      await assert.rejects(generate(prompts, {}, own), /there is no memory/);
      assert.deepEqual(await generate(prompts, {}, own), await generate(prompts));
      await own.release();
      await runtime.release();
    });

    it("reads a prompt once, however many rows have it and however few slots there are", async (t) => {
      const run = t.mock.method(Session.prototype, "run");
      const eosIds = Array.from({ length: 16 }, (_, id) => id);
      const batch = Array.from({ length: 24 }, (_, row) => prompts[[3, 2, 4][row % 3]]);
      const read = () =>
        run.mock.calls.flatMap(({ arguments: [feeds] }) => ("tokens" in feeds ? [feeds.tokens.shape] : []));
      for (const slots of [24, 5, 2]) {
        run.mock.resetCalls();
        await generate(batch, { eosIds, temperature: 1.5 }, withSlots(slots));
        assert.deepEqual(
          read(),
          [3, 2, 4].map((index) => [prompts[index].length - 1]),
        );
      }
    });

    it("gives a row the same bits in any order, beside any other rows and in any number of slots", async () => {
      const options = { eosIds: [0, 1, 2, 3], temperature: 1.2 };
      const batch = Array.from({ length: 40 }, (_, row) => prompts[(row * 7) % prompts.length]);
      const expected = await generate(batch, options);
      assert.ok(new Set(expected.map(({ response }) => response.length)).size > 5, "rows must end at many times");
      const order = permutation(batch.length, uniforms(1, "order"));
      for (const slots of [1, 3, 16, 40]) {
        const seeds = order.map((row) => row + 1);
        const shuffled = await generate(
          order.map((row) => batch[row]),
          { ...options, seeds },
          withSlots(slots),
        );
        for (const [i, row] of order.entries()) assert.deepEqual(shuffled[i], expected[row]);
      }
      for (const row of [0, 17])
        assert.deepEqual(await generate([batch[row]], { ...options, seeds: [row + 1] }), [expected[row]]);
    });

    it("reports each response as soon as it has ended", async () => {
      const options = { ...OPTIONS, eosIds: [0, 1, 2, 3], temperature: 1.2, seeds: seedsFor(new Array(20)) };
      const batch = Array.from({ length: 20 }, (_, row) => prompts[row % prompts.length]);
      const told: [number, ResponsePart][] = [];
      const responses = await withSlots(3).generate(weights, batch, options, (...each) => told.push(each));
      assert.deepEqual(new Map(told), new Map(responses.map((response, i) => [i, { ...response, ended: true }])));
      assert.equal(told.length, batch.length);
      assert.notDeepEqual(
        told.map(([index]) => index),
        [...batch.keys()],
        "short responses come before long ones",
      );
    });

    it("reports tokens as they come, and the end of each response", async () => {
      const parts = prompts.map((): ResponsePart[] => []);
      const options = { ...OPTIONS, seeds: seedsFor(prompts), streams: true };
      const responses = await generator.generate(weights, prompts, options, (i, part) => parts[i].push(part));
      for (const [i, { response, logProbs }] of responses.entries()) {
        assert.deepEqual(
          parts[i].flatMap((part) => [...part.response]),
          [...response],
        );
        assert.deepEqual(
          parts[i].flatMap((part) => [...part.logProbs]),
          [...logProbs],
        );
        assert.deepEqual(
          parts[i].map(({ ended }) => ended),
          parts[i].map((_, at) => at === parts[i].length - 1),
        );
        assert.equal(parts[i][0].response.length, 1, "the first token comes at once");
      }
    });

    it("serves calls with different options at the same time and gives each the responses that it gets alone", async () => {
      const asked: Partial<GenerateOptions>[] = [
        { temperature: 1.3 },
        { temperature: 0, maxNewTokens: 9 },
        { temperature: 2, topP: 0.5, eosIds: [1, 2, 3, 4, 5] },
        { temperature: 0.5, maxNewTokens: 31 },
      ];
      const alone: Response[][] = [];
      for (const [i, options] of asked.entries()) alone.push(await generate([prompts[i], prompts[0]], options));
      const shared = withSlots(5);
      let ended = 0;
      const together = asked.map(async (options, i) => {
        for (let turn = 0; turn < 3 * i; turn++) await setImmediate();
        const [first, second] = await generate([prompts[i], prompts[0]], options, shared);
        return { responses: [first, second], place: ended++ };
      });
      const found = await Promise.all(together);
      assert.deepEqual(
        found.map(({ responses }) => responses),
        alone,
      );
      assert.ok(found[1].place < found[0].place, "a short call ends before a long one that began earlier");
    });

    it("ends the rows of an aborted call and no other rows", async () => {
      const few = withSlots(3);
      const stop = new AbortController();
      const expected = await generate([prompts[1], prompts[2]]);
      const reason = new Error("the client has gone");
      const aborted = generate([prompts[0], prompts[3], prompts[4]], { signal: stop.signal }, few);
      const others = generate([prompts[1], prompts[2]], {}, few);
      for (let turn = 0; turn < 5; turn++) await setImmediate();
      stop.abort(reason);
      await assert.rejects(aborted, reason);
      assert.deepEqual(await others, expected);
      await assert.rejects(generate([prompts[0]], { signal: stop.signal }, few), reason);
      assert.deepEqual(await generate([prompts[1], prompts[2]], {}, few), expected, "slots are free again");
    });

    it("uses the weights of a call that follows an aborted call", async () => {
      const few = withSlots(3);
      const other = new Map([...weights].map(([key, data]) => [key, data.map((value) => 1.25 * value)]));
      const options = { ...OPTIONS, seeds: [1] };
      const expected = await withSlots(2).generate(other, [prompts[0]], options);
      const stop = new AbortController();
      const aborted = generate([prompts[0]], { signal: stop.signal }, few);
      for (let turn = 0; turn < 5; turn++) await setImmediate();
      stop.abort(new Error("newer weights"));
      await assert.rejects(aborted, /newer weights/);
      const second = new AbortController();
      const late = generate([prompts[0]], { signal: second.signal }, few);
      second.abort(new Error("the second call ended, too"));
      await assert.rejects(late, /the second call ended, too/);
      assert.deepEqual(await few.generate(other, [prompts[0]], options), expected);
    });

    it("serves rows that are longer than a slot later, in fewer and longer slots", async () => {
      const roomy = await generate(prompts);
      const tight = new Generator(config, { threads: 1, slots: 4, positions: 80 });
      after(() => tight.release());
      const short = generate(prompts.slice(0, 2), { maxNewTokens: 5 }, tight);
      const long = await generate(prompts, {}, tight);
      assert.deepEqual(long, roomy);
      assert.deepEqual(await short, await generate(prompts.slice(0, 2), { maxNewTokens: 5 }));
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

describe("many more rows than slots", () => {
  it("get the same responses as alone", async () => {
    const { config, weights } = load("qwen2");
    const generator = new Generator(config, { threads: 1 });
    const prompts = Array.from({ length: 10_000 }, (_, row) =>
      Int32Array.from({ length: 1 + (row % 5) }, (_, i) => (row * 3 + i) % config.vocabSize),
    );
    const options = { ...OPTIONS, maxNewTokens: 6, eosIds: Array.from({ length: 40 }, (_, id) => id) };
    const all = await generator.generate(weights, prompts, { ...options, seeds: seedsFor(prompts) });
    assert.ok(all.every(({ response }) => response.length > 0));
    for (const row of [0, 63, 64, 4999, 9998, 9999]) {
      const [alone] = await generator.generate(weights, [prompts[row]], { ...options, seeds: [row + 1] });
      assert.deepEqual(all[row], alone);
    }
    await generator.release();
  });
});

describe("sampling", () => {
  const { config, weights, reference } = load("qwen2");
  const generator = new Generator(config, { threads: 1 });
  after(() => generator.release());
  const SAMPLES = 6000;
  const { prompt, logits } = reference.cases[2];

  /** How often each token came first, over many seeds. */
  async function countTokens(temperature: number, topP: number): Promise<number[]> {
    const rows = Array.from({ length: SAMPLES }, () => Int32Array.from(prompt));
    const seeds = rows.map((_, index) => index);
    const responses = await generator.generate(weights, rows, {
      seeds,
      temperature,
      topP,
      maxNewTokens: 1,
      eosIds: [],
    });
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
