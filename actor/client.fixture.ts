/** A client and the test's own learner, over real mutual TLS. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { writeRunCertificates } from "../proto/certificates.ts";
import { ActorClient, type ClientOptions } from "./client.ts";
import { type ExecutionResult, lostResult } from "./execution.ts";
import { Learner } from "./learner.fixture.ts";
import type { Lease } from "./lease.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-client-"));
const tls = await writeRunCertificates(join(folder, "tls"), { validSeconds: 600 });
export const strangersTls = await writeRunCertificates(join(folder, "other"), { validSeconds: 600 });
after(() => rmSync(folder, { recursive: true }));

const stops: (() => void)[] = [];
afterEach(() => {
  for (const stop of stops.splice(0)) stop();
});

/**
 * Returns a learner, a client that dials it, the executions that it began, and its log. An execution ends as `execute` says; absent: when
 * the test calls `end`, or when it is revoked.
 */
export async function setUp({
  learner: answers,
  execute,
  ...options
}: Partial<ClientOptions> & { learner?: Partial<Learner> } = {}) {
  const learner = Object.assign(new Learner(tls.learner), answers);
  await learner.start();
  const executed: string[] = [];
  const lines: object[] = [];
  const note = (fields: object, message: string) => lines.push({ ...fields, message });
  const executions = new Map<string, { lease: Lease; signal: AbortSignal; end: (result: ExecutionResult) => void }>();
  const client = new ActorClient({
    ...{ address: `127.0.0.1:${learner.port}`, tlsDirectory: await tls.actor("actor-0"), name: "actor-0", slots: 2 },
    ...{ isolationLevel: "namespaces", maxReconnectSeconds: 0.2, log: { info: note, warn: note } },
    ...options,
    execute: (lease, signal, onProgress) => {
      executed.push(lease.attempt.execution);
      if (execute) return execute(lease, signal, onProgress);
      return new Promise((end) => {
        executions.set(lease.attempt.execution, { lease, signal, end });
        onProgress({ elapsedSeconds: 1, cpuSeconds: 0.5, memoryBytes: 7, markers: ["loaded data"] });
        signal.addEventListener("abort", () => end(lostResult("revoked")));
      });
    },
  });
  const ended = client.run();
  ended.catch(() => {});
  stops.push(() => {
    client.stop();
    learner.kill();
  });
  const started = async (execution: string) => {
    for (let i = 0; !executions.has(execution); i++) {
      assert.ok(i < 500, `${execution} was not started`);
      await sleep(10);
    }
    return executions.get(execution)!;
  };
  return { learner, client, ended, started, executed, lines };
}

export const completed = (submission?: Buffer): ExecutionResult => ({
  ...lostResult(""),
  outcome: "completed",
  durationSeconds: 1.5,
  submission,
});
