/** Tests when a checkpoint is written and when the store records it. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Checkpoints } from "./checkpoints.ts";
import type { RunContext } from "./context.ts";
import type { Engine } from "./engine/index.ts";
import { scratchFolder } from "./store/store.fixture.ts";
import { openStore } from "./store/store.ts";

/** A run whose engine writes when the test says so. */
async function heldRun() {
  const directory = scratchFolder();
  mkdirSync(join(directory, "checkpoints"));
  const store = openStore(join(directory, "store.sqlite"), { leaseSeconds: 60, leaseGraceSeconds: 60, maxAttempts: 3 });
  await store.beginLineage(async () => true);
  const writes: PromiseWithResolvers<{ digest: string }>[] = [];
  const engine: Pick<Engine, "save"> = {
    async save(folder, taken) {
      writeFileSync(join(folder, "weights"), String(writes.length));
      const write = Promise.withResolvers<{ digest: string }>();
      writes.push(write);
      taken?.();
      return write.promise;
    },
  };
  const progress = { state: { iteration: 0, elapsedSeconds: 0 }, lines: [] };
  const told: unknown[] = [];
  const run = {
    ...{ directory, store, progress, spec: { learner: { checkpoint: { keepLast: 2 } } } },
    ...{ status: { update: () => {} }, log: { error: (fields: unknown) => told.push(fields) } },
  } as unknown as RunContext;
  const checkpoints = new Checkpoints(run, engine as Engine);
  const iterate = async (iteration: number) => {
    await checkpoints.settled();
    const { written } = await checkpoints.begin({ iteration, elapsedSeconds: 1 });
    store.commitIteration({ iteration, sampleIds: [], metrics: {} });
    progress.state = { iteration, elapsedSeconds: 1 };
    checkpoints.keep(iteration, written);
  };
  const stored = () => store.checkpoints().map(({ iteration }) => iteration);
  return { directory, checkpoints, writes, iterate, stored, told };
}

test("a run goes on while a checkpoint is written, and the store has the checkpoint once it is complete", async () => {
  const { directory, checkpoints, writes, iterate, stored } = await heldRun();
  await iterate(1);
  assert.deepEqual(stored(), [], "it is still being written");
  assert.equal(checkpoints.takeWritten(), undefined);
  const second = iterate(2);
  await setImmediate();
  assert.equal(writes.length, 1);
  writes[0]!.resolve({ digest: "one" });
  await second;
  assert.deepEqual(stored(), [1]);
  assert.equal(checkpoints.takeWritten()!.bytes > 0, true);
  writes[1]!.resolve({ digest: "two" });
  await iterate(3);
  writes[2]!.resolve({ digest: "three" });
  await checkpoints.bringToDisk();
  assert.deepEqual(stored(), [3, 2], "the oldest is removed");
  assert.equal(writes.length, 3, "the newest is on disk already");
  assert.deepEqual(
    [1, 2, 3].map((iteration) => existsSync(join(directory, "checkpoints", `1-00000${iteration}`))),
    [false, true, true],
  );
});

test("a checkpoint that cannot be written ends the run, and the store keeps the iteration before it", async () => {
  const { checkpoints, writes, iterate, stored, told } = await heldRun();
  await iterate(1);
  writes[0]!.resolve({ digest: "one" });
  await iterate(2);
  writes[1]!.reject(Object.assign(new Error("no space left"), { code: "ENOSPC" }));
  await assert.rejects(iterate(3), { code: "ENOSPC" });
  await assert.rejects(checkpoints.bringToDisk(), { code: "ENOSPC" });
  assert.deepEqual(stored(), [1]);
  assert.equal(told.length, 1);
});
