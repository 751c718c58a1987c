import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ActorError } from "./errors.ts";
import type { Sandbox } from "./sandbox.ts";
import { Slots, type SlotsOptions, shareCpus } from "./slots.ts";

/** The part of a sandbox that slots use. */
class Fake {
  inputs: Record<string, string>;
  fault: ActorError | undefined;
  readonly #end = Promise.withResolvers<void>();
  readonly ended = this.#end.promise;

  constructor(inputs: Record<string, string>) {
    this.inputs = inputs;
  }
  get alive(): boolean {
    return this.fault === undefined;
  }
  break(): void {
    this.fault ??= new ActorError("sandbox", "it broke");
    this.#end.resolve();
  }
  async stop(): Promise<void> {
    this.break();
  }
}

/** Makes slots over fakes. `refuse`: number of starts that fail after all slots have been started. */
async function setUp(count: number, { refuse = 0, ...options }: Partial<SlotsOptions> & { refuse?: number } = {}) {
  const started: Fake[][] = Array.from({ length: count }, () => []);
  const changes: string[] = [];
  const inputs: Record<string, string> = { t: "/t" };
  const slots = new Slots({
    count,
    start: async (slot) => {
      if (started[slot]!.length > 0 && refuse-- > 0) throw new ActorError("sandbox", "not yet");
      const fake = new Fake({ ...inputs });
      started[slot]!.push(fake);
      return fake as unknown as Sandbox;
    },
    onChange: (slot, fault) => changes.push(`${slot} ${fault?.message ?? "back"}`),
    ...options,
  });
  await slots.start();
  return { slots, started, changes, inputs };
}

describe("slots", () => {
  for (const name of ["../../etc", "__proto__", "constructor", "toString", ""])
    test(`a task ${JSON.stringify(name)} has no data and is refused`, async () => {
      const { slots } = await setUp(1);
      await assert.rejects(
        slots.use(name, async () => assert.fail("it ran")),
        { code: "task" },
      );
      assert.equal(await slots.use("t", async () => "next"), "next");
    });

  test("each execution has a sandbox of its own, and one more waits for the first free sandbox", async () => {
    const { slots } = await setUp(2);
    const ends = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
    const order: number[] = [];
    const uses = [ends[0]!.promise, ends[1]!.promise, undefined].map((until) =>
      slots.use("t", async (_, slot) => {
        order.push(slot);
        await until;
      }),
    );
    await sleep(1);
    assert.deepEqual(order, [0, 1]);
    ends[1]!.resolve();
    await uses[2];
    assert.deepEqual(order, [0, 1, 1]);
    ends[0]!.resolve();
    await Promise.all(uses);
  });

  test("a sandbox that breaks in use is replaced, and the waiting execution gets the new one", async () => {
    const { slots, started, changes } = await setUp(1, { refuse: 1 });
    const work = slots.use("t", async () => started[0]![0]!.break());
    const waiting = slots.use("t", async (sandbox) => sandbox as unknown as Fake);
    await work;
    assert.equal(slots.usable, 0);
    assert.deepEqual(changes, ["0 it broke"]);
    assert.equal(await waiting, started[0]![1]);
    assert.deepEqual([slots.usable, changes], [1, ["0 it broke", "0 back"]]);
  });

  test("a free sandbox that breaks is noticed and replaced", async () => {
    const { slots, started, changes } = await setUp(2);
    started[1]![0]!.break();
    await sleep(1);
    assert.deepEqual([slots.usable, changes], [2, ["1 it broke", "1 back"]]);
    const used = await Promise.all([0, 1].map(() => slots.use("t", async (sandbox) => sandbox.alive)));
    assert.deepEqual(used, [true, true]);
  });

  test("a slot that stays away is a failure after restartSeconds, and the other slots keep working", async () => {
    const { slots, started } = await setUp(2, { refuse: 100, restartSeconds: 0.3 });
    started[0]![0]!.break();
    await assert.rejects(slots.failure, /not yet/);
    assert.equal(slots.usable, 1);
    assert.equal(await slots.use("t", async (_, slot) => slot), 1);
  });

  test("nobody waits for a free slot longer than leaseWaitSeconds", async () => {
    const { slots } = await setUp(1, { leaseWaitSeconds: 0.02 });
    const end = Promise.withResolvers<void>();
    const busy = slots.use("t", () => end.promise);
    await assert.rejects(
      slots.use("t", async () => {}),
      /no slot was free within 0.02 s/,
    );
    end.resolve();
    await busy;
    await slots.use("t", async () => {}); // and a lease that gave up takes no slot
  });

  test("a slot that starts again finds a newer task and refuses an unknown one", async () => {
    const { slots, started, inputs } = await setUp(1);
    inputs.later = "/later";
    assert.equal(await slots.use("later", async (_, slot) => slot), 0);
    assert.equal(started[0]!.length, 2);
    await assert.rejects(
      slots.use("never", async () => {}),
      /task never: this actor lacks its public data/,
    );
    assert.equal(await slots.use("t", async (_, slot) => slot), 0);
  });
});

test("each slot gets its own processors if there are enough", () => {
  assert.deepEqual(shareCpus([0, 1, 2, 3, 4], 1, 2), { cpus: [2, 3], cpusPerSlot: 2 });
  assert.deepEqual(shareCpus([0], 1, 2), { cpus: [0], cpusPerSlot: 1 });
  assert.deepEqual(shareCpus(undefined, 0, 2), { cpus: undefined, cpusPerSlot: 1 });
});
