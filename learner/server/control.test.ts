import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { status as code } from "@grpc/grpc-js";
import { clientCredentials } from "../../proto/channel.ts";
import { clientOptions, LearnerControlClient, messages, type TerminationMessage } from "../../proto/service.ts";
import { newSample } from "../store/store.fixture.ts";
import type { SuspendRequest } from "./control.ts";
import { closeActors, type Learner, startLearner, TestActor, tls, within } from "./server.fixture.ts";

const stops: (() => Promise<void> | void)[] = [];
after(async () => {
  closeActors();
  for (const stop of stops) await stop();
});

async function newLearner(options: Parameters<typeof startLearner>[0] = {}): Promise<Learner> {
  const learner = await startLearner(options);
  stops.push(learner.stop);
  return learner;
}

function control({ address }: Learner, certificate = tls.controller): LearnerControlClient {
  const client = new LearnerControlClient(address, clientCredentials(certificate), clientOptions(address));
  stops.push(() => client.close());
  return client;
}

/** Returns an actor with two slots that leased samples `a` and `b`. */
async function leased(options: Parameters<typeof startLearner>[0] = {}) {
  const learner = await newLearner(options);
  learner.store.addSamples([newSample("a"), newSample("b")]);
  const actor = new TestActor(learner.address, "actor-0");
  await actor.hello({ slots: 2 });
  actor.ready(2);
  const leases = [await actor.nextLease(), await actor.nextLease()];
  return { learner, actor, leases, client: control(learner) };
}

const lost = (slot: number | undefined) => ({
  header: { outcome: messages.Outcome.LOST, slot, durationSeconds: 3, detail: "the sandbox is gone" },
});
const killed = (slot: number, change: TerminationMessage = {}): { terminations: TerminationMessage[] } => ({
  terminations: [{ actor: "actor-0", slot, reason: "OOMKilled", exitCode: 137, finishedUnixMs: Date.now(), ...change }],
});

for (const role of ["actor", "learner"] as const) {
  test(`the role ${role} can make no call`, async () => {
    const learner = await newLearner();
    const client = control(learner, tls[role]);
    const refusal = { code: code.PERMISSION_DENIED };
    await assert.rejects(client.drainActors({ actors: ["a"] }, 5), refusal);
    await assert.rejects(client.suspend({}, 5), refusal);
    await assert.rejects(client.reportTerminations({ terminations: [] }, 5), refusal);
  });
}

test("a drained actor gets one Drain, at once or when it connects again, and other actors go on", async () => {
  const { learner, actor, leases, client } = await leased();
  const other = new TestActor(learner.address, "actor-1");
  await other.hello();
  assert.deepEqual((await client.drainActors({ actors: ["actor-0", "actor-9"], reason: "6 -> 5" }, 5)).notConnected, [
    "actor-9",
  ]);
  await client.drainActors({ actors: ["actor-0"], reason: "again" }, 5);
  assert.equal((await actor.next("drain")).reason, "6 -> 5");
  assert.ok(!other.has("drain"));
  const late = new TestActor(learner.address, "actor-9");
  await late.hello();
  assert.equal((await late.next("drain")).reason, "6 -> 5");
  const draining = learner.status.current.actors?.filter((it) => it.draining).map(({ name }) => name);
  assert.deepEqual(draining?.toSorted(), ["actor-0", "actor-9"]);

  learner.store.addSamples([newSample("c")]);
  other.ready(1);
  assert.equal((await other.nextLease()).attempt.execution, "c", "a draining actor gets no lease");
  actor.handIn(leases[0].attempt);
  assert.ok((await actor.next("ack")).accepted, "the result of a draining actor counts");
  assert.ok(!actor.has("drain"), "Drain is sent once");

  // The name's next owner is another process, which was not asked to leave.
  late.send({ drained: {} });
  await late.status;
  const successor = new TestActor(learner.address, "actor-9");
  await successor.hello();
  await sleep(50);
  assert.ok(!successor.has("drain"));
});

test("Suspend passes the reason and the seconds on, within limits", async () => {
  const asked: SuspendRequest[] = [];
  const learner = await newLearner({
    suspend: async (request) => {
      asked.push(request);
      return { checkpoint: { iteration: 3, digest: "d", path: "p" }, running: 2 };
    },
  });
  const client = control(learner);
  const answer = await client.suspend({ reason: "x".repeat(1000), drainSeconds: -1 }, 5);
  assert.deepEqual([answer.checkpoint?.iteration, answer.running], [3, 2]);
  await client.suspend({}, 5);
  assert.deepEqual(asked, [
    { reason: "x".repeat(200), drainSeconds: 0 },
    { reason: "the controller asked for it", drainSeconds: 0 },
  ]);
});

test("the attempt of a slot that was killed for memory has failed, and the other slot's attempt is repeated", async () => {
  const { learner, actor, leases, client } = await leased();
  for (const [slot, lease] of leases.entries()) actor.handIn(lease.attempt, lost(slot));
  await actor.next("ack");
  await actor.next("ack");
  assert.equal(learner.store.counts().queued, 2);
  assert.equal((await client.reportTerminations(killed(0), 5)).outOfMemory, 1);
  assert.equal((await client.reportTerminations(killed(1, { reason: "Error", exitCode: 1 }), 5)).outOfMemory, 0);
  const [a, b] = learner.store.samples(["a", "b"]);
  assert.deepEqual([a.state, a.result?.outcome], ["finished", "outOfMemory"]);
  // The actor reported 3 s, but the lease is younger.
  const { durationSeconds = 0 } = a.result ?? {};
  assert.ok(durationSeconds > 0 && durationSeconds < 3, String(durationSeconds));
  assert.equal(a.result?.detail, "the sandbox's container was killed for memory (OOMKilled, exit code 137)");
  assert.equal(b.state, "queued");
});

test("an attempt is not repeated if its slot's termination is reported before the loss", async () => {
  const { learner, actor, leases, client } = await leased();
  assert.equal((await client.reportTerminations(killed(0), 5)).outOfMemory, 0);
  const queued: unknown[] = [];
  learner.store.events.on("attemptLost", (attempt) => queued.push(attempt));
  actor.handIn(leases[0].attempt, lost(0));
  assert.ok((await actor.next("ack")).accepted);
  assert.equal(learner.store.samples(["a"])[0].result?.outcome, "outOfMemory");
  assert.deepEqual(queued, []);
});

test("a second attempt is revoked if the first slot's termination is reported while the second runs", async () => {
  const { learner, actor, leases, client } = await leased();
  actor.handIn(leases[0].attempt, lost(0));
  await actor.next("ack");
  actor.ready(1);
  const again = await actor.nextLease();
  assert.deepEqual([again.attempt.execution, again.attempt.number], ["a", 2]);
  assert.equal((await client.reportTerminations(killed(0), 5)).outOfMemory, 1);
  assert.equal((await actor.next("revoke")).attempt?.fence, again.attempt.fence);
  actor.handIn(again.attempt);
  const ack = await actor.next("ack");
  assert.deepEqual([ack.accepted, ack.reason], [false, "duplicate"]);
  assert.equal(learner.store.samples(["a"])[0].result?.outcome, "outOfMemory");
});

test("a lost execution becomes a failed one if its slot's termination is reported later", async () => {
  const { learner, actor, leases, client } = await leased({ store: { maxAttempts: 1 } });
  actor.handIn(leases[0].attempt, lost(0));
  await actor.next("ack");
  assert.equal(learner.store.counts().lost, 1);
  await client.reportTerminations(killed(0), 5);
  assert.deepEqual([learner.store.counts().lost, learner.store.samples(["a"])[0].state], [0, "finished"]);
});

test("a lost attempt without a slot is repeated", async () => {
  const { learner, actor, leases, client } = await leased();
  actor.handIn(leases[0].attempt, lost(undefined));
  await within(actor.next("ack"), "the acknowledgement");
  assert.equal((await client.reportTerminations(killed(0), 5)).outOfMemory, 0);
  assert.equal(learner.store.samples(["a"])[0].state, "queued");
});

test("an actor that was asked to stop gives back its attempts and gets no more leases", async () => {
  const { learner, actor, leases } = await leased({ store: { maxAttempts: 1 } });
  actor.send({ ready: { freeSlots: 0, draining: true } });
  const given = { outcome: messages.Outcome.LOST, slot: 0, disrupted: true, detail: "SIGTERM" };
  actor.handIn(leases[0].attempt, { header: given });
  await actor.next("ack");
  actor.handIn(leases[1].attempt, { header: { ...given, disrupted: false } });
  await actor.next("ack");
  assert.deepEqual(
    learner.store.samples(["a", "b"]).map(({ state }) => state),
    ["queued", "lost"],
    "the one that was given back does not count as an attempt",
  );
  actor.ready(2);
  await sleep(50);
  assert.equal(learner.store.counts().queued, 1, "not leased to an actor that leaves");
  const { executions, actors } = learner.status.current;
  assert.deepEqual([executions?.disrupted, executions?.lost, actors?.[0]?.draining], [1, 1, true]);
});

test("a disrupted actor costs no attempt, whether the report comes before or after the loss", async () => {
  const { learner, actor, client } = await leased({ store: { maxAttempts: 1 } });
  const states = () => learner.store.samples(["a", "b"]).map(({ state }) => state);
  actor.vanish();
  const successor = new TestActor(learner.address, "actor-0");
  await successor.hello({ slots: 2 });
  assert.deepEqual(states(), ["lost", "lost"], "the next actor of that name holds no attempts");
  await client.reportTerminations({ disrupted: ["actor-0"] }, 5);
  assert.deepEqual(states(), ["queued", "queued"]);
  successor.ready(2);
  await successor.nextLease();
  await successor.nextLease();
  successor.vanish();
  const third = new TestActor(learner.address, "actor-0");
  await third.hello({ slots: 2 });
  assert.deepEqual(states(), ["queued", "queued"]);
});
