/** Tests calls and slots: generation gives a row the same response in any company. */
import assert from "node:assert/strict";
import { describe, it } from "node:test";
import { setImmediate } from "node:timers/promises";
import { type OnDevice, Runtime } from "../runtime/runtime.ts";
import { Session } from "../runtime/session.ts";
import { generation, NAMES, OPTIONS, seedsFor } from "./generate.fixture.ts";
import { type GenerateOptions, Generator, type Response, type ResponsePart } from "./generate.ts";
import { permutation, uniforms } from "./random.ts";

for (const name of NAMES) {
  describe(`generation of a ${name} model`, () => {
    const { config, weights, prompts, generator, generate, withSlots } = generation(name);

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

    it("reads a prompt once, for any number of rows and slots", async (t) => {
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

    it("reads a prompt again if its slot was computed while it was empty", async () => {
      const positions = OPTIONS.maxNewTokens + Math.max(...prompts.map(({ length }) => length));
      const few = withSlots(3, positions);
      const [expected] = await generate([prompts[3]]);
      // The short row's slot lies between those of two long rows, whose steps overwrite its first position.
      const first = generate([prompts[0]], {}, few);
      const short = generate([prompts[3]], { maxNewTokens: 1 }, few);
      const last = generate([prompts[1]], {}, few);
      await short;
      for (let turn = 0; turn < 5; turn++) await setImmediate();
      const again = await generate([prompts[3]], {}, few);
      await Promise.all([first, last]);
      assert.deepEqual(again, [expected]);
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
      const tight = withSlots(4, 80);
      const short = generate(prompts.slice(0, 2), { maxNewTokens: 5 }, tight);
      const long = await generate(prompts, {}, tight);
      assert.deepEqual(long, roomy);
      assert.deepEqual(await short, await generate(prompts.slice(0, 2), { maxNewTokens: 5 }));
    });
  });
}

describe("many more rows than slots", () => {
  it("get the same responses as alone", async () => {
    const { config, weights, generator } = generation("qwen2");
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
  });
});
