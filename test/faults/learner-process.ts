/**
 * A learner without a policy, to be killed: real store, real server, real checkpoints on disk. Its "weights" are the list of samples that
 * they were trained on, which shows a sample that counts twice or not at all.
 *
 *     node test/faults/learner-process.ts RUN_FOLDER ADDRESS TLS_FOLDER SAMPLES
 *
 * Over IPC it sends `listening`, then the iteration after each commit, then `done`. Exits 3 if it was fenced off.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { createLog } from "../../learner/log.ts";
import { startServer } from "../../learner/server/server.ts";
import { StatusBoard } from "../../learner/server/status.ts";
import { StoreError } from "../../learner/store/errors.ts";
import { newSample } from "../../learner/store/store.fixture.ts";
import { openStore } from "../../learner/store/store.ts";

const [folder, address, tlsDirectory, samples] = process.argv.slice(2);
const BATCH = 4;
const SAVE_EVERY = 2;

type Weights = string[];
const digestOf = (weights: Weights) => createHash("sha256").update(JSON.stringify(weights)).digest("hex");

function save(weights: Weights, name: string): { path: string; digest: string } {
  const path = join(folder, "checkpoints", `${name}.json`);
  writeFileSync(`${path}.partial`, JSON.stringify(weights));
  renameSync(`${path}.partial`, path);
  return { path, digest: digestOf(weights) };
}

async function main(): Promise<void> {
  mkdirSync(join(folder, "checkpoints"), { recursive: true });
  const store = openStore(join(folder, "store.sqlite"), { leaseSeconds: 5, leaseGraceSeconds: 5, maxAttempts: 20 });
  const { lineage, iteration, checkpoint } = await store.beginLineage(
    ({ path, digest }) => existsSync(path) && digestOf(JSON.parse(readFileSync(path, "utf8")) as Weights) === digest,
  );
  let weights: Weights = checkpoint ? (JSON.parse(readFileSync(checkpoint.path, "utf8")) as Weights) : [];
  if (store.totals().queued + store.totals().running + store.totals().completed === 0)
    store.addSamples(Array.from({ length: Number(samples) }, (_, n) => newSample(`s${n}`)));
  const server = await startServer({
    store,
    status: new StatusBoard(),
    address,
    tlsDirectory,
    limitsOf: () => ({
      timeoutSeconds: 9,
      memoryBytes: 1e9,
      outputBytes: 1e6,
      keptOutputBytes: 1e4,
      scratchBytes: 1e9,
      scratchFiles: 10_000,
      processes: 64,
      submissionBytes: 1e6,
    }),
    log: createLog("learner", process.env.LOG_LEVEL ?? "fatal"),
    suspend: () => Promise.reject(new Error("this learner is not suspended, it is killed")),
    heartbeatSeconds: 0.5,
  });
  process.send?.({ type: "listening", port: server.port });
  for (let next = iteration + 1; ; next++) {
    const there = await server.waitForFinished(BATCH, { idleSeconds: 60 });
    if (there === 0) break;
    const batch = store.nextBatch(BATCH).map(({ id }) => id);
    await sleep(20); // training
    weights = [...weights, ...batch];
    const last = there <= BATCH && store.unfinished() === 0;
    const saved = next % SAVE_EVERY === 0 || last ? save(weights, `${lineage}-${next}`) : undefined;
    store.commitIteration({ iteration: next, sampleIds: batch, metrics: {} });
    if (saved) store.commitCheckpoint({ iteration: next, ...saved });
    process.send?.({ type: "iteration", iteration: next, lineage });
  }
  process.send?.({ type: "done", weights });
  await sleep(60_000); // until killed: actors hand in their results
}

process.on("disconnect", () => process.exit());
main().catch((error: unknown) => {
  if (error instanceof StoreError && error.code === "fenced") process.exit(3);
  console.error(error);
  process.exit(1);
});
