import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { status as code, credentials, type StatusObject } from "@grpc/grpc-js";
import { clientCredentials } from "../../proto/channel.ts";
import { clientOptions, LearnerStatusClient, type StatusMessage, type StatusReceived } from "../../proto/service.ts";
import { newSample } from "../store/store.fixture.ts";
import { closeActors, startLearner, TestActor, tls, within } from "./server.fixture.ts";
import { Phase, StatusBoard } from "./status.ts";

const stops: (() => Promise<void>)[] = [];
after(async () => {
  closeActors();
  await Promise.all(stops.map((stop) => stop()));
});

async function newLearner() {
  const learner = await startLearner();
  stops.push(learner.stop);
  return learner;
}

function watch(address: string, channel = clientCredentials(tls.controller)) {
  const client = new LearnerStatusClient(address, channel, clientOptions(address));
  const stream = client.watch();
  const received: StatusReceived[] = [];
  stream.on("data", (status: StatusReceived) => received.push(status));
  stream.on("error", () => {});
  const ended = new Promise<StatusObject>((resolve) => stream.on("status", resolve)).finally(() => client.close());
  stops.push(async () => stream.cancel());
  const until = async (condition: (status: StatusReceived) => boolean) => {
    for (let waited = 0; waited < 15000; waited += 5) {
      const found = received.find(condition);
      if (found) return found;
      await sleep(5);
    }
    throw new Error(`waited 15 s for a status; the last one was ${JSON.stringify(received.at(-1))}`);
  };
  return { received, ended, until, stream };
}

test("a watcher gets the current status at once and then its changes, with executions and actors", async () => {
  const { address, status, store } = await newLearner();
  status.update({ phase: Phase.GENERATING, iteration: 1, iterations: 3, phaseTotal: 8, lineage: "1" });
  const { until, received } = watch(address);
  const first = await until(() => true);
  assert.deepEqual(
    [first.phase, first.iteration, first.iterations, first.phaseTotal, first.lineage],
    [Phase.GENERATING, 1, 3, 8, "1"],
  );
  store.addSamples([newSample("a"), newSample("b")]);
  const actor = new TestActor(address);
  await actor.hello({ slots: 3 });
  actor.ready(3);
  const { attempt } = await actor.nextLease();
  actor.heartbeat([attempt], { busySeconds: 3, aliveSeconds: 12 });
  const { actors, executions } = await until((it) => it.actors?.[0]?.busyShare === 0.25);
  assert.deepEqual({ ...executions }, { running: 2 });
  assert.deepEqual(
    { ...actors?.[0] },
    {
      name: "actor-0",
      isolationLevel: "namespaces",
      slots: 3,
      running: 2,
      connected: true,
      busyShare: 0.25,
    },
  );
  actor.handIn(attempt);
  await until((it) => it.executions?.completed === 1);
  actor.vanish();
  await until((it) => it.actors?.[0]?.connected === false);
  assert.ok(received.length < 30);
});

test("a final status reaches every watcher, also later ones, and ends the stream", async () => {
  const { address, status } = await newLearner();
  const watchers = [watch(address), watch(address)];
  await Promise.all(watchers.map(({ until }) => until(() => true)));
  status.update({ phase: Phase.TRAINING });
  status.update({ phase: Phase.SUCCEEDED, message: "3 iterations" });
  watchers.push(watch(address));
  for (const { ended, received } of watchers) {
    assert.equal((await within(ended, "the end of the watch")).code, code.OK);
    assert.deepEqual([received.at(-1)?.phase, received.at(-1)?.message], [Phase.SUCCEEDED, "3 iterations"]);
  }
});

const refused: [string, Parameters<typeof watch>[1], number][] = [
  ["an actor's certificate", clientCredentials(tls.actor), code.PERMISSION_DENIED],
  ["no certificate", credentials.createSsl(), code.UNAVAILABLE],
];
for (const [name, channel, expected] of refused) {
  test(`a watcher is refused: ${name}`, async () => {
    const { address } = await newLearner();
    const { ended, received } = watch(address, channel);
    assert.equal((await within(ended, "the refusal")).code, expected);
    assert.equal(received.length, 0);
  });
}

test("many changes become few messages, and the newest comes last", async () => {
  const board = new StatusBoard({ intervalSeconds: 0.05, countsSeconds: 0.05 });
  const seen: StatusMessage[] = [];
  const started = performance.now();
  const stop = board.watch((status) => seen.push(status));
  for (let done = 1; done <= 200; done++) {
    board.update({ phase: Phase.EXECUTING, phaseDone: done });
    await sleep(1);
  }
  await sleep(100);
  const most = (performance.now() - started) / 50 + 2;
  assert.ok(seen.length >= 3 && seen.length <= Math.min(most, 100), `${seen.length} messages, ${most} allowed`);
  assert.equal(seen.at(-1)?.phaseDone, 200);
  stop();
  const before = seen.length;
  board.update({ phaseDone: 201 });
  await sleep(100);
  assert.equal(seen.length, before);
});

test("watchers get counts seldom, a phase or a finished iteration soon, and more on request", async () => {
  const board = new StatusBoard({ intervalSeconds: 0.02, countsSeconds: 60 });
  const [seldom, often]: StatusMessage[][] = [[], []];
  const stops = [board.watch((status) => seldom!.push(status)), board.watch((status) => often!.push(status), 0.02)];
  const count = async (times: number) => {
    for (let n = 0; n < times; n++) {
      board.update({ phaseDone: n + 1 });
      await sleep(5);
    }
    await sleep(40);
  };
  await count(30);
  assert.equal(seldom!.length, 1, "the current one, at once");
  assert.ok(often!.length >= 4, `${often!.length} messages`);
  board.update({ phase: Phase.TRAINING });
  board.update({ iterationJson: "{}" });
  await count(30);
  assert.deepEqual(
    seldom!.slice(1).map(({ phase, iterationJson }) => [phase, iterationJson]),
    [[Phase.TRAINING, "{}"]],
  );
  assert.equal(often!.at(-1)?.phaseDone, 30);
  for (const stop of stops) stop();
});

test("a new phase has no progress, no message and 0 seconds", () => {
  let seconds = 10;
  const board = new StatusBoard({ now: () => seconds * 1000 });
  board.update({ phase: Phase.EXECUTING, phaseDone: 3, phaseTotal: 4, message: "no actor", iteration: 2 });
  seconds = 15;
  assert.equal(board.current.phaseSeconds, 5);
  board.update({ phase: Phase.TRAINING });
  assert.deepEqual(board.current, {
    phase: Phase.TRAINING,
    phaseDone: 0,
    phaseTotal: 0,
    message: "",
    blocked: "",
    blockedSinceUnixMs: 0,
    iteration: 2,
    phaseSeconds: 0,
  });
});

test("a final status is sent at once, even right after another status", () => {
  for (const phase of [Phase.SUCCEEDED, Phase.FAILED_RUN, Phase.STOPPED]) {
    const board = new StatusBoard({ intervalSeconds: 60, countsSeconds: 60 });
    const seen: StatusMessage[] = [];
    const stop = board.watch((status) => seen.push(status));
    board.update({ phase: Phase.TRAINING });
    assert.equal(seen.length, 1, "a phase waits for its turn");
    board.update({ phase });
    assert.equal(seen.at(-1)?.phase, phase);
    stop();
  }
});

test("a new phase, a finished part or a finished iteration is progress; a repeated status is not", () => {
  let seconds = 0;
  const board = new StatusBoard({ now: () => seconds * 1000 });
  const after = (change: StatusMessage) => {
    seconds += 10;
    board.update(change);
    return board.secondsSinceProgress;
  };
  assert.equal(after({ phase: Phase.EXECUTING }), 0);
  assert.equal(after({ phase: Phase.EXECUTING, phaseTotal: 4, message: "no actor" }), 10);
  assert.equal(after({ phaseDone: 1 }), 0);
  assert.equal(after({ phaseDone: 1 }), 10);
  assert.equal(after({ iterationJson: "{}" }), 0);
  assert.equal(after({ iteration: 2 }), 0);
});

test("a watcher that reads late gets the newest status and not all of them", async () => {
  const { address, status } = await newLearner();
  const { stream, received, until } = watch(address);
  await until(() => true);
  stream.pause();
  const big = "x".repeat(100_000);
  for (let n = 1; n <= 60; n++) {
    status.update({ iteration: n, iterationJson: big });
    await sleep(12);
  }
  stream.resume();
  await until(({ iteration }) => iteration === 60);
  assert.ok(received.length < 50, `${received.length} of 60`);
});
