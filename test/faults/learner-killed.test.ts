/**
 * Tests promises 1, 2 and 3 with real processes: a learner is killed repeatedly (SIGKILL) while actors work for it, the real client with
 * programs that only sleep.
 */
import assert from "node:assert/strict";
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ActorClient, type ClientOptions } from "../../actor/client.ts";
import { scratchFolder } from "../../learner/store/store.fixture.ts";
import { openStore } from "../../learner/store/store.ts";
import { writeRunCertificates } from "../../proto/certificates.ts";

const children = new Set<ChildProcess>();
const actors = new Set<ActorClient>();
const inbox = new Map<ChildProcess, Message[]>();
after(() => {
  for (const actor of actors) actor.stop();
  for (const child of children) child.kill("SIGKILL");
});

interface Message {
  type: "listening" | "iteration" | "done";
  port?: number;
  weights?: string[];
}

function startLearner(folder: string, address: string, tls: string, samples: number): ChildProcess {
  const args = [folder, address, tls, String(samples)];
  const child = fork(join(import.meta.dirname, "learner-process.ts"), args);
  children.add(child);
  child.on("message", (it: Message) => {
    inbox.set(child, [...(inbox.get(child) ?? []), it]);
    child.emit("inbox");
  });
  return child;
}

/** Returns the learner's next message of that type, and drops earlier ones. */
async function message(child: ChildProcess, type: Message["type"]): Promise<Message> {
  for (;;) {
    const messages = inbox.get(child) ?? [];
    const index = messages.findIndex((it) => it.type === type);
    if (index >= 0) return messages.splice(0, index + 1)[index];
    if (child.exitCode !== null) throw new Error(`the learner ended with ${child.exitCode} before it was ${type}`);
    await Promise.race([once(child, "inbox"), once(child, "exit")]);
  }
}

async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}

type Execute = ClientOptions["execute"];

function startActor(address: string, tlsDirectory: string, name: string, execute: Execute): ActorClient {
  const actor = new ActorClient({
    address,
    tlsDirectory,
    name,
    slots: 2,
    isolationLevel: "none",
    execute,
    maxReconnectSeconds: 0.2,
    channel: { maxReconnectSeconds: 0.2 },
  });
  actors.add(actor);
  void actor.run();
  return actor;
}

const completed = (detail: string): Awaited<ReturnType<Execute>> => ({
  outcome: "completed",
  exitStatus: 0,
  signal: 0,
  durationSeconds: 0.1,
  cpuSeconds: 0.1,
  peakMemoryBytes: 1e6,
  markers: [],
  forgedMarkers: 0,
  imitatedMarkers: 0,
  terminalOutput: Buffer.from("done\n"),
  outputBytes: 5,
  submission: Buffer.from(`id,price\n1,${detail}\n`),
  detail,
});

test("A killed learner loses no running execution, runs none twice, and trains on each sample once", {
  timeout: 240_000,
}, async () => {
  const folder = scratchFolder();
  const tls = await writeRunCertificates(join(folder, "tls"), { validSeconds: 3600 });
  const address = `127.0.0.1:${await freePort()}`;
  const SAMPLES = 40;
  const KILLS = 3;
  /** {execution: how often a program was started for it}, and how often it ran to its end. */
  const started = new Map<string, number>();
  const finished = new Map<string, number>();
  const add = (counts: Map<string, number>, key: string) => counts.set(key, (counts.get(key) ?? 0) + 1);
  const execute: Execute = async ({ attempt }, signal) => {
    add(started, attempt.execution!);
    await sleep(50 + 15 * (Number(attempt.fence) % 10));
    if (signal.aborted) return { ...completed(""), outcome: "lost" };
    add(finished, attempt.execution!);
    return completed(`${attempt.execution}/${attempt.number}`);
  };
  startActor(address, await tls.actor("actor-0"), "actor-0", execute);
  startActor(address, await tls.actor("actor-1"), "actor-1", execute);

  let learner = startLearner(folder, address, tls.learner, SAMPLES);
  for (let kills = 0; kills < KILLS; kills++) {
    await message(learner, "listening");
    // Every second iteration is saved; a restart takes back an odd one.
    for (let iterations = kills; iterations > 0; iterations--) await message(learner, "iteration");
    await sleep(20 * kills);
    learner.kill("SIGKILL");
    await once(learner, "exit");
    learner = startLearner(folder, address, tls.learner, SAMPLES);
  }
  const { weights } = await message(learner, "done");
  assert.equal(weights?.length, SAMPLES);
  assert.equal(new Set(weights).size, SAMPLES, "no sample counts twice");
  learner.kill("SIGKILL");
  await once(learner, "exit");

  const store = openStore(join(folder, "store.sqlite"), { readOnly: true });
  const { completed: there, consumed, lost, queued, running } = store.counts();
  assert.deepEqual(
    { there, consumed, lost, queued, running },
    { there: SAMPLES, consumed: SAMPLES, lost: 0, queued: 0, running: 0 },
  );
  const trained = store.iterationRows().flatMap(({ iteration }) => store.samplesOf(iteration).map(({ id }) => id));
  assert.deepEqual(trained, weights, "the store and the weights tell the same story");
  for (const sample of store.samples(trained)) {
    assert.equal(sample.result?.detail, `${sample.id}/${sample.result?.attempt}`);
    // Programs that ran when the learner was killed were kept and handed in, so none ran to its end twice. The only reason for a second
    // attempt is a lease that was written but did not reach the actor before the kill.
    assert.equal(finished.get(sample.id), 1, `${sample.id} ran ${finished.get(sample.id)} times`);
    assert.equal(started.get(sample.id), 1);
  }
  const lineages = new Set(store.iterationRows().map(({ lineage }) => lineage));
  assert.ok(lineages.size >= 2, "more than one learner trained");
  assert.ok(Math.max(...lineages) <= KILLS + 1);
  store.close();
});

test("A learner that was replaced while it lived notices at its next write, and ends", {
  timeout: 180_000,
}, async () => {
  const folder = scratchFolder();
  const tls = await writeRunCertificates(join(folder, "tls"), { validSeconds: 3600 });
  const old = startLearner(folder, "127.0.0.1:0", tls.learner, 8);
  // Listen from now on: it may end as soon as the young one has opened the store.
  const oldEnds = once(old, "exit");
  const { port } = await message(old, "listening");
  const young = startLearner(folder, "127.0.0.1:0", tls.learner, 8);
  const { port: youngPort } = await message(young, "listening");
  const lured = startActor(`127.0.0.1:${port}`, await tls.actor("actor-0"), "actor-0", async () =>
    completed("from the old one"),
  );
  startActor(`127.0.0.1:${youngPort}`, await tls.actor("actor-1"), "actor-1", async () =>
    completed("from the young one"),
  );
  assert.deepEqual((await oldEnds)[0], 3);
  lured.stop();
  const { weights } = await message(young, "done");
  assert.equal(new Set(weights).size, 8);
  const store = openStore(join(folder, "store.sqlite"), { readOnly: true });
  for (const sample of store.samplesFor("training")) assert.equal(sample.result?.detail, "from the young one");
  store.close();
});
