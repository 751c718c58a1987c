import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";
import type { FromActorMessage } from "../../proto/service.ts";
import { newSample } from "../store/store.fixture.ts";
import type { HeldAttempt } from "../store/types.ts";
import { actorTls, type Learner, LIMITS, startLearner, TestActor, within } from "./server.fixture.ts";

export const HONEST = "actor-0";
export const HOSTILE = ["actor-1", "actor-2"];
const UPLOAD_BYTES = 300_000;
const LONGEST_SECONDS = 60;
const PROCESSES = 4;

/** Whether a message must end its stream: certainly, certainly not, or depending on earlier messages. */
type Fate = "breaks" | "passes" | "depends";

/** A learner with its store, an honest actor at work, and the streams of hostile actors. */
export class World {
  learner!: Learner;
  honest!: TestActor;
  /** Every leased attempt by fence, with its actor. */
  leased = new Map<string, HeldAttempt>();
  finished: string[] = [];
  streams: Stream[] = [];
  faults: string[] = [];
  #samples = 0;
  #stopped = false;
  #startedAt = performance.now();
  #work!: Promise<void>;
  done = 0;

  async start(): Promise<void> {
    this.learner = await startLearner({
      ...{ streamUploadBytes: UPLOAD_BYTES / 2, uploadBytes: UPLOAD_BYTES },
      ...{ messagesPerSecond: 500, floodSeconds: 2, helloSeconds: 30 },
      store: { leaseSeconds: 30, longestSeconds: LONGEST_SECONDS, maxAttempts: 100 },
      limitsOf: () => ({ ...LIMITS, processes: PROCESSES, submissionBytes: UPLOAD_BYTES / 3 }),
    });
    const { store } = this.learner;
    const takeAll = store.leases.takeAll.bind(store.leases);
    store.leases.takeAll = (actors) => {
      const taken = takeAll(actors);
      for (const [index, { execution, number, fence }] of taken.entries())
        this.leased.set(fence, { execution, number, fence, actor: actors[index]! });
      return taken;
    };
    store.events.on("finished", (id) => this.finished.push(id));
    store.events.on(
      "attemptLost",
      ({ actor }, why) => actor === HONEST && this.faults.push(`honest lease lost: ${why}`),
    );
    store.events.on("revoked", (attempts, why) => {
      if (attempts.some(({ actor }) => actor === HONEST)) this.faults.push(`honest lease revoked: ${why}`);
    });
    this.add(4);
    this.honest = new TestActor(this.learner.address, HONEST);
    await this.honest.hello({ slots: 1 });
    void this.honest.status.then(
      ({ code, details }) => this.#stopped || this.faults.push(`honest stream: ${code} ${details}`),
    );
    this.#work = this.#workHonestly().catch((error: Error) => void this.faults.push(`honest actor: ${error.message}`));
  }

  add(count: number): void {
    const samples = Array.from({ length: count }, () => newSample(`s${this.#samples++}`));
    this.learner.store.addSamples(samples);
  }

  /** Runs one program after the other, every second one with a submission. */
  async #workHonestly(): Promise<void> {
    while (!this.#stopped) {
      this.honest.ready(1);
      const { attempt } = await this.honest.nextLease();
      this.honest.heartbeat([attempt]);
      await sleep(2);
      const submission = this.done % 2 === 0 ? Buffer.from("id,price\n1,2\n") : undefined;
      let reason: string | null | undefined = "busy";
      while (reason === "busy" && !this.#stopped) {
        this.honest.handIn(attempt, { submission });
        reason = (await this.honest.next("ack")).reason;
      }
      if (reason !== "accepted") this.faults.push(`honest result: ${reason}`);
      this.done++;
    }
  }

  checkUploads(): void {
    const { uploadBytes } = this.learner.server;
    assert.ok(uploadBytes >= 0 && uploadBytes <= UPLOAD_BYTES, `uploads hold ${uploadBytes} bytes`);
  }

  async check(): Promise<void> {
    const { server, store } = this.learner;
    for (const stream of this.streams) await stream.check();
    this.checkUploads();
    // Leases go to actors with room, so end the others: the honest actor must be served at all.
    for (const { actor } of this.streams) actor.vanish();
    const left = () => server.actors().filter(({ connected }) => connected).length;
    for (let waited = 0; left() > 1; waited += 5) {
      assert.ok(waited < 10_000, "streams that broke are over");
      await sleep(5);
    }
    const done = this.done;
    this.add(2);
    for (let waited = 0; this.done <= done && this.faults.length === 0; waited += 5) {
      assert.ok(waited < 10_000, "the server lives, and the honest actor goes on");
      this.checkUploads();
      await sleep(5);
    }
    assert.deepEqual(this.faults, []);
    const seconds = (performance.now() - this.#startedAt) / 1000;
    assert.equal(new Set(this.finished).size, this.finished.length, "one result for each execution");
    for (const { id, result } of store.samples(this.finished)) {
      assert.ok(result);
      const lease = [...this.leased.values()].find((it) => it.execution === id && it.number === result.attempt);
      assert.equal(result.actor, lease?.actor, "the result came from the actor that had the lease");
      const { durationSeconds, cpuSeconds, markers } = result;
      assert.ok(durationSeconds >= 0 && durationSeconds <= seconds, `a duration of ${durationSeconds}`);
      assert.ok(cpuSeconds >= 0 && cpuSeconds <= PROCESSES * durationSeconds, `CPU time of ${cpuSeconds}`);
      for (const { atSeconds, value } of markers) {
        assert.ok(atSeconds >= 0 && atSeconds <= durationSeconds);
        assert.ok(value.length <= 1000);
      }
      for (const value of Object.values(result))
        if (typeof value === "number") assert.ok(value >= 0 && value <= Number.MAX_SAFE_INTEGER, String(value));
      assert.ok(["namespaces", "landlock", "none"].includes(result.isolationLevel));
    }
    for (const actor of server.actors()) {
      assert.ok(["namespaces", "landlock", "none", ""].includes(actor.isolationLevel));
      assert.ok(Number.isFinite(actor.busySeconds) && Number.isFinite(actor.aliveSeconds));
    }
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    for (const { actor } of this.streams) actor.vanish();
    try {
      for (let waited = 0; this.learner.server.uploadBytes !== 0; waited += 5) {
        assert.ok(waited < 5000, `uploads hold ${this.learner.server.uploadBytes} bytes after their streams`);
        await sleep(5);
      }
      this.add(1); // for the honest actor's last wait
      await Promise.race([this.#work, sleep(200)]);
    } finally {
      this.honest.vanish();
      await this.learner.stop();
    }
  }
}

/** A hostile actor's stream and its expected fate. */
export class Stream {
  readonly actor: TestActor;
  /** The learner's status at the end; undefined while the stream is open. */
  ended: { code: number; details: string } | undefined;
  fate: Fate = "passes";
  greeted = false;
  /** Closed by the test, or replaced by a newer stream. */
  over = false;

  constructor(world: World, certificate: string) {
    this.actor = new TestActor(world.learner.address, certificate, actorTls(certificate));
    void this.actor.status.then((status) => {
      this.ended = status;
    });
  }

  send(message: FromActorMessage, fate: Fate): void {
    if (this.over) return;
    this.actor.send(message);
    if (this.fate !== "breaks" && fate !== "passes") this.fate = fate;
  }

  async check(): Promise<void> {
    if (this.fate === "breaks" && !this.over) {
      const { code, details } = await within(this.actor.status, "the end of a stream that broke the protocol", 5);
      assert.ok([3, 7, 8, 10].includes(code), `${code} ${details}`);
    }
    // A stream that was silent at first may have replaced this one with a Hello.
    const replaced = this.ended?.details.startsWith("a newer stream of");
    if (this.fate === "passes" && !this.over && this.ended !== undefined && !replaced)
      assert.fail(`a stream that kept the protocol was ended: ${this.ended.code} ${this.ended.details}`);
  }
}
