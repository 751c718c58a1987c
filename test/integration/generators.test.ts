/** The learner with generators: `longrun serve --tls` as real processes over mutual TLS. */
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { GeneratorClient } from "../../learner/generators/client.ts";
import { readTls } from "../../proto/tls-folder.ts";
import { until } from "../until.ts";
import { threadsDieWith } from "./dying-thread.fixture.ts";
import { alone, folder, learner, ofQuickstart, POLICY, tls, train, Writing, written } from "./generators.fixture.ts";

describe("longrun serve as generators", () => {
  for (const kind of ["adapter", "full"] as const)
    test(`Two generators write the same samples as the learner's engine, bit for bit, at each version (${kind})`, async () => {
      const servers = await Promise.all([ofQuickstart(), ofQuickstart()]);
      const { engine, generators, publish } = await learner(
        servers.map(({ url }) => url),
        kind,
      );
      const writing = new Writing(engine, generators);
      await publish(0);
      const first = written(await writing.samples(0));
      assert.deepEqual(
        generators.status.generators.map(({ ready, policyVersion }) => [ready, policyVersion]),
        [
          [true, 0],
          [true, 0],
        ],
      );
      await train(engine);
      await publish(1);
      const second = written(await writing.samples(1));
      assert.deepEqual([first, second], await alone(kind));
      assert.notDeepEqual(second[0]!.behaviourLogProbs, first[0]!.behaviourLogProbs);
      const { faults, movedRows, uncheckedRows } = generators.takeCounts();
      assert.deepEqual([faults, movedRows, uncheckedRows], [{ lost: 0, oldVersion: 0, logProbs: 0 }, 0, 0]);
    });

  test("With weightSync Full, generators of a LoRA run get full weights, with the adapter's log-probs", async () => {
    const servers = await Promise.all([ofQuickstart(), ofQuickstart()]);
    const { engine, generators, publish } = await learner(
      servers.map(({ url }) => url),
      "adapter",
      { merge: { model: POLICY, dtype: "F32" } },
    );
    const writing = new Writing(engine, generators);
    for (const version of [0, 1]) {
      await publish(version);
      const samples = await writing.samples(version);
      assert.equal(samples.length, 12);
      const rows = samples.map(({ promptTokens, responseTokens, behaviourLogProbs }) => {
        return { prompt: promptTokens, response: responseTokens, behaviourLogProbs };
      });
      const own = await engine.evaluate(rows, { temperature: 0.8, values: false, reference: false });
      for (const [i, { behaviourLogProbs }] of rows.entries())
        for (const [t, logProb] of own[i]!.logProbs.entries())
          assert.ok(Math.abs(logProb - behaviourLogProbs[t]!) < 1e-4, `${version}, ${i}, ${t}: ${logProb}`);
      await train(engine);
    }
    const { faults, uncheckedRows } = generators.takeCounts();
    assert.deepEqual([faults, uncheckedRows], [{ lost: 0, oldVersion: 0, logProbs: 0 }, 0]);
  });

  test("A version's weights are removed when there is a newer one", async () => {
    const directory = mkdtempSync(join(folder, "weights-"));
    const { generators } = await learner([], "adapter", { directory });
    await generators.publish(5);
    assert.deepEqual(readdirSync(directory), ["5"]);
    await generators.publish(6);
    assert.deepEqual(readdirSync(directory), ["6"]);
  });

  test("The rows of a killed generator move to the other one, and the samples stay the same", async () => {
    const servers = await Promise.all([ofQuickstart(), ofQuickstart()]);
    const { engine, generators, publish } = await learner(
      servers.map(({ url }) => url),
      "adapter",
    );
    await publish(0);
    const writing = new Writing(engine, generators).samples(0);
    const isRunning = () => generators.status.generators[0]!.running > 0;
    await until(isRunning, "rows run", { pauseMilliseconds: 0 });
    servers[0]!.child.kill("SIGKILL");
    const samples = written(await writing);
    assert.deepEqual(samples, (await alone("adapter"))[0]);
    const { faults, movedRows } = generators.takeCounts();
    assert.equal(faults.lost, 1);
    assert.ok(movedRows > 0, `${movedRows} rows moved`);
    const [dead, other] = generators.status.generators;
    assert.match(dead!.notUsedBecause, /^it does not answer: /);
    assert.equal(other!.ready, true);
  });

  test("After SIGTERM a generator ends its rows and exits 0; new rows go to the other one", async () => {
    const servers = await Promise.all([ofQuickstart(), ofQuickstart()]);
    const { engine, generators, publish } = await learner(
      servers.map(({ url }) => url),
      "adapter",
    );
    await publish(0);
    let stops = 0;
    const stop = () => void (stops++ === 0 && servers[0]!.child.kill("SIGTERM"));
    const samples = written(await new Writing(engine, generators).samples(0, 24, stop));
    assert.equal(samples.length, 24);
    assert.deepEqual(await servers[0]!.exited, [0, null], servers[0]!.said());
    assert.equal(generators.takeCounts().faults.lost, 0);
  });

  test("An engine that dies ends the generator with status 1 and the reason, though no row was asked for", async () => {
    const dead = join(folder, "dead");
    const { url, exited, said } = await ofQuickstart(threadsDieWith(dead));
    const { publish } = await learner([url], "adapter");
    await publish(0);
    writeFileSync(dead, "");
    assert.deepEqual(await Promise.race([exited, sleep(20_000)]), [1, null], said());
    assert.match(said(), /^(the engine's thread|worker 1 of the engine) .*ended \(3\)$/m);
  });

  test("A generator refuses every client but the run's learner; probes need no certificate", async () => {
    const { url, probes } = await ofQuickstart();
    const state = (name: string) =>
      new GeneratorClient({ url, servername: undefined }, () => readTls(tls(name))).state();
    await assert.rejects(state("actor"), /only the run's learner may call; this certificate's role is actor/);
    await assert.rejects(state("stranger"), { code: /ECONNRESET|ERR_SSL|SELF_SIGNED|UNABLE_TO_VERIFY|DEPTH_ZERO/ });
    assert.equal((await state("learner")).slots, 4);
    assert.equal((await fetch(`${probes}/ready`)).status, 200);
    assert.match(await (await fetch(`${probes}/metrics`)).text(), /longrun_generator_rows\{state="running"\} 0/);
  });
});
