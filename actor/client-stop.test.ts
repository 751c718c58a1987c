/** Tests a client whose actor is asked to stop. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { messages } from "../proto/service.ts";
import { completed, setUp } from "./client.fixture.ts";

test("An actor that no learner has welcomed gives up if the learner's name does not resolve, and dials for ever without nameSeconds", async () => {
  const { ended } = await setUp({ address: "nobody.invalid:1", nameSeconds: 0.5 });
  await assert.rejects(ended, {
    code: "names",
    message: /^the learner's name has not resolved for 0\.5 s \(Name resolution failed/,
  });
  const patient = await setUp({ address: "nobody.invalid:1" });
  const refusing = await setUp({ address: "127.0.0.1:1", nameSeconds: 0.5 });
  const longer = sleep(1500, "dials");
  assert.equal(await Promise.race([patient.ended, longer]), "dials");
  assert.equal(await Promise.race([refusing.ended, longer]), "dials");
});

test("the actor tells the learner, lets its programs finish and hands them in", async () => {
  const { learner, client, ended, started } = await setUp({ finishSeconds: 60 });
  await learner.next("ready");
  const attempt = learner.lease("e1");
  const running = await started("e1");
  client.terminate("SIGTERM");
  const { freeSlots, draining } = await learner.next("ready", 2);
  assert.deepEqual({ freeSlots, draining }, { freeSlots: 0, draining: true });
  await sleep(50);
  assert.equal(running.signal.aborted, false);
  running.end(completed());
  assert.equal((await learner.next("result")).outcome, messages.Outcome.COMPLETED);
  learner.send({ ack: { attempt, accepted: true, reason: "accepted" } });
  assert.equal(await ended, "drained");
});

test("unfinished programs are given back after finishSeconds, finished programs are handed in", async () => {
  const { learner, client, ended, started } = await setUp({ finishSeconds: 0.2 });
  await learner.next("ready");
  const attempts = [learner.lease("e1"), learner.lease("e2", { attempt: { execution: "e2", number: 1, fence: "8" } })];
  await started("e1");
  (await started("e2")).end(completed());
  await learner.next("result");
  client.terminate("SIGTERM");
  const given = await learner.next("result", 1, ({ result }) => result?.attempt?.execution === "e1");
  assert.deepEqual([given.outcome, given.disrupted], [messages.Outcome.LOST, true]);
  assert.match(given.detail, /SIGTERM: its program was not finished 0.2 s later/);
  assert.equal(client.held, 2, "until the learner has it");
  for (const [index, execution] of ["e1", "e2"].entries())
    learner.send({
      ack: { attempt: { ...attempts[index], execution, fence: index === 0 ? "7" : "8" }, reason: "accepted" },
    });
  assert.equal(await ended, "drained");
});

test("a lease that arrives after the stop signal is given back", async () => {
  const { learner, client, started } = await setUp({ finishSeconds: 60 });
  await learner.next("ready");
  learner.lease("e1");
  await started("e1");
  client.terminate("SIGTERM");
  learner.lease("e2", { attempt: { execution: "e2", number: 1, fence: "8" } });
  const { attempt, outcome, disrupted } = await learner.next("result");
  assert.deepEqual([attempt.execution, outcome, disrupted], ["e2", messages.Outcome.LOST, true]);
});

test("an actor that stops tells the next learner of it as well", async () => {
  const { learner, client, started } = await setUp({ finishSeconds: 60 });
  await learner.next("ready");
  learner.lease("e1");
  await started("e1");
  client.terminate("SIGTERM");
  await learner.next("ready", 2);
  learner.kill();
  await sleep(30);
  await learner.start(learner.port);
  assert.equal((await learner.next("ready", 3)).draining, true);
});

test("a second signal gives programs back at once and does not wait for a learner that is gone", async () => {
  const { learner, client, ended, started } = await setUp();
  await learner.next("ready");
  learner.lease("e1");
  await started("e1");
  client.terminate("SIGTERM");
  client.giveBack("SIGINT");
  assert.equal((await learner.next("result")).disrupted, true);
  assert.equal(await ended, "stopped", "the acknowledgement did not come");

  const other = await setUp();
  await other.learner.next("ready");
  other.learner.lease("e1");
  await other.started("e1");
  other.learner.kill();
  await sleep(100);
  other.client.giveBack("SIGINT");
  assert.equal(await other.ended, "stopped");
});

test("an actor without a learner for handInSeconds stops its programs", async () => {
  const { learner, client, ended, started } = await setUp({ finishSeconds: 60, handInSeconds: 0.2 });
  await learner.next("ready");
  learner.lease("e1");
  const running = await started("e1");
  learner.kill();
  await sleep(50);
  assert.equal(running.signal.aborted, false);
  client.terminate("SIGTERM");
  assert.equal(await ended, "drained");
  assert.equal(running.signal.aborted, true);
});
