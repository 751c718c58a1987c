/** Tests the engine behind its worker: checkpoints, generation, the reference, and refusals. */
import assert from "node:assert/strict";
import fs from "node:fs";
import path from "node:path";
import { test } from "node:test";
import { folder, model, POLICY, PRETRAIN, samples, VALUE, withTrainer } from "./engine.fixture.ts";
import { type Engine, type LogProbs, startEngine } from "./engine.ts";
import type { Response, ResponsePart } from "./model/generate.ts";

fs.writeFileSync(path.join(model, "tokenizer.json"), '{"kept": true}');

test("a run continues from a checkpoint bit for bit, in the engine's worker too", async () => {
  const batch = samples(10);
  const train = async (engine: Engine) => {
    const policy = await engine.updatePolicy(batch, POLICY);
    const critic = await engine.updateCritic(batch, VALUE);
    return { policy, critic };
  };
  const directory = path.join(folder, "checkpoint");
  const engine = await startEngine({ model, threads: 1 });
  await train(engine);
  const { digest } = await engine.save(directory);
  const next = await train(engine);
  const end = await engine.digest();
  assert.notEqual(end, digest);
  await engine.load(directory);
  assert.equal(await engine.digest(), digest);
  await engine.close();
  assert.equal(fs.readFileSync(path.join(directory, "policy", "tokenizer.json"), "utf8"), '{"kept": true}');

  await withTrainer(async (resumed) => {
    await resumed.load(directory);
    assert.equal(await resumed.digest(), digest);
    assert.deepEqual(await train(resumed), next);
    assert.equal(await resumed.digest(), end);
  });
});

test("an engine without a critic ignores the critic of a checkpoint", async () => {
  const directory = path.join(folder, "with-critic");
  await withTrainer(async (trainer) => {
    await trainer.updateCritic(samples(3), VALUE);
    await trainer.save(directory);
  });
  await withTrainer(
    async (trainer) => {
      await trainer.load(directory);
      assert.equal(trainer.critic, undefined);
      await trainer.updatePolicy(samples(3), POLICY);
      await trainer.save(path.join(folder, "without-critic"));
      assert.equal(fs.existsSync(path.join(folder, "without-critic", "critic")), false);
    },
    { critic: false },
  );
});

test("an engine loads a checkpoint without moments and critic", async () => {
  const directory = path.join(folder, "fresh");
  await withTrainer(async (trainer) => {
    const { digest } = await trainer.save(directory);
    await trainer.pretrain(samples(2), PRETRAIN);
    await trainer.initializeCritic(1);
    await trainer.load(directory);
    assert.equal(await trainer.digest(), digest);
    assert.equal(trainer.critic, undefined);
  });
});

test("generation through the worker agrees with the training forward", async () => {
  const engine = await startEngine({ model, threads: 1 });
  const prompts = samples(5).map(({ prompt }) => prompt);
  const options = { seeds: [1, 2, 3, 4, 5], temperature: 0.8, topP: 1, maxNewTokens: 20 };
  const generated = await engine.generate(prompts, options);
  const evaluated = await engine.evaluate(
    generated.map(({ response }, i) => ({ prompt: prompts[i], response })),
    { temperature: 0.8, values: false },
  );
  for (const [i, { logProbs, response, finished }] of generated.entries()) {
    assert.equal(finished, response.at(-1) === 0);
    for (const [t, value] of logProbs.entries()) assert.ok(Math.abs(value - evaluated[i].logProbs[t]) < 1e-4);
  }
  await engine.close();
  await assert.rejects(engine.digest(), { code: "worker" });
});

test("every worker reports each response when it ends, and the number of slots changes no response", async () => {
  const prompts = samples(9).map(({ prompt }) => prompt);
  const options = { seeds: [...prompts.keys()], temperature: 1, topP: 1, maxNewTokens: 20 };
  const found = [];
  for (const slots of [undefined, 3]) {
    const engine = await startEngine({ model, threads: 2, slots });
    const told = new Map<number, ResponsePart>();
    found.push(await engine.generate(prompts, options, (index, part) => told.set(index, part)));
    assert.deepEqual(told, new Map(found[0]!.map((response, i) => [i, { ...response, ended: true }])));
    await engine.close();
  }
  assert.deepEqual(found[1], found[0]);
});

test("calls that generate overlap; a step waits for earlier calls, and later calls wait for the step", async () => {
  const engine = await startEngine({ model, threads: 2, slots: 12 });
  const prompts = samples(8).map(({ prompt }) => prompt);
  const options = { seeds: [...prompts.keys()], temperature: 1, topP: 1, eosIds: [] };
  const alone = await engine.generate(prompts, { ...options, maxNewTokens: 40 });
  const order: string[] = [];
  const named = async <T>(name: string, work: Promise<T>) => {
    const result = await work;
    order.push(name);
    return result;
  };
  const long = named("long", engine.generate(prompts, { ...options, maxNewTokens: 40 }));
  const short = named("short", engine.generate([prompts[0]!], { ...options, seeds: [0], maxNewTokens: 2 }));
  const trained = named("trained", engine.pretrain(samples(4, 7), PRETRAIN));
  const later = named("later", engine.generate(prompts, { ...options, maxNewTokens: 40 }));
  assert.deepEqual(await long, alone);
  assert.deepEqual((await short)[0]!.response, alone[0]!.response.slice(0, 2));
  assert.notDeepEqual(await later, alone, "the later call reads the trained weights");
  await trained;
  assert.deepEqual(order, ["short", "long", "trained", "later"]);
  await engine.close();
});

test("a call whose signal is aborted ends in all threads and frees its slots", async () => {
  const engine = await startEngine({ model, threads: 2, slots: 2 });
  const { prompt } = samples(1)[0]!;
  const options = { seeds: [1], temperature: 1, topP: 1, maxNewTokens: 50, eosIds: [] };
  const reason = new Error("nobody waits for it");
  const stop = new AbortController();
  const unwanted = engine.generate([prompt, prompt], { ...options, seeds: [1, 2], signal: stop.signal }, () =>
    assert.fail("a response ended"),
  );
  stop.abort(reason);
  await assert.rejects(unwanted, reason);
  await assert.rejects(engine.generate([prompt], { ...options, signal: AbortSignal.abort(reason) }), reason);
  const [{ response }] = (await engine.generate([prompt], options)) as [Response];
  assert.equal(response.length, 50);
  await engine.close();
});

test("the reference generates with the model folder's weights after training and after a load", async () => {
  await withTrainer(async (trainer) => {
    const prompts = samples(4).map(({ prompt }) => prompt);
    const options = { seeds: [0, 0, 0, 0], temperature: 0, topP: 1, maxNewTokens: 12 };
    const generate = async (weights?: "policy" | "reference") =>
      (await trainer.generate(prompts, { ...options, weights })).map(({ response }) => [...response]);
    const start = await generate();
    for (let step = 0; step < 8; step++) await trainer.pretrain(samples(4, 7), { ...PRETRAIN, learningRate: 0.05 });
    assert.notDeepEqual(await generate("policy"), start);
    assert.deepEqual(await generate("reference"), start);
    const trained = await generate();
    const directory = path.join(folder, "trained");
    await trainer.save(directory);
    await trainer.load(directory);
    assert.deepEqual(await generate("reference"), start);
    assert.deepEqual(await generate(), trained);
  });
});

test("an engine without a reference serves the policy and refuses calls that need the reference", async () => {
  await withTrainer(
    async (trainer) => {
      const options = { temperature: 1, values: false };
      const refused = { code: "reference", message: /the engine was started without a reference/ };
      await assert.rejects(trainer.evaluate(samples(1), options), refused);
      const how = { seeds: [0], temperature: 0, topP: 1, maxNewTokens: 4 };
      const prompts = samples(1).map(({ prompt }) => prompt);
      await assert.rejects(trainer.generate(prompts, { ...how, weights: "reference" }), refused);
      const [{ response }] = (await trainer.generate(prompts, how)) as [Response];
      const sequence = { prompt: prompts[0]!, response };
      const [{ logProbs }] = (await trainer.evaluate([sequence], { ...options, reference: false })) as [LogProbs];
      await withTrainer(async (whole) => {
        assert.deepEqual((await whole.evaluate([sequence], options))[0]!.logProbs, logProbs);
      });
    },
    { reference: false },
  );
});

test("an engine refuses a missing model folder and invalid sequences with the reason", async () => {
  await assert.rejects(startEngine({ model: path.join(folder, "nowhere"), threads: 1 }), {
    code: "config",
    message: /nowhere\/config\.json/,
  });
  const engine = await startEngine({ model, threads: 1 });
  const response = Int32Array.of(1);
  for (const [sequence, message] of [
    [{ prompt: Int32Array.of(), response }, /sequence 0: its prompt is empty/],
    [{ prompt: Int32Array.of(-1), response }, /token -1 is not in the vocabulary of 23/],
    [{ prompt: Int32Array.of(23), response }, /token 23 is not in the vocabulary of 23/],
    [{ prompt: new Int32Array(64), response }, /it has 65 tokens; the model has 64 positions/],
  ] as const) {
    await assert.rejects(engine.evaluate([sequence], { temperature: 1, values: false }), { code: "batch", message });
  }
  const full = { prompt: new Int32Array(63), response };
  const [evaluated] = await engine.evaluate([full], { temperature: 1, values: false });
  assert.ok(evaluated!.logProbs[0]! < 0, "a sequence of all 64 positions is evaluated");
  await engine.close();
});
