/** A real learner's server with a queue of programs, and what works through it. */
import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createLog } from "../../learner/log.ts";
import { type LearnerServer, startServer } from "../../learner/server/server.ts";
import { StatusBoard } from "../../learner/server/status.ts";
import { openStore, type Store } from "../../learner/store/store.ts";
import type { AcceptedResult } from "../../learner/store/types.ts";
import { writeRunCertificates } from "../../proto/certificates.ts";

const ACTOR = fileURLToPath(new URL("../../actor/main.ts", import.meta.url));
const LIMITS = {
  timeoutSeconds: 60,
  memoryBytes: 2 ** 31,
  outputBytes: 2 ** 20,
  keptOutputBytes: 2 ** 14,
  submissionBytes: 2 ** 24,
};

export class Backlog {
  readonly #directory: string;
  readonly #store: Store;
  readonly #server: LearnerServer;
  readonly #finishedAt = new Map<string, number>();
  readonly #done = Promise.withResolvers<void>();
  readonly #children: ChildProcess[] = [];
  /** Folder of TLS files for actors. */
  readonly actorTls: string;

  /** @param programs all queued before the first actor is there */
  static async start(programs: string[]): Promise<Backlog> {
    const directory = await mkdtemp(join(tmpdir(), "longrun-bench-"));
    const tls = await writeRunCertificates(join(directory, "tls"), { validSeconds: 3600 });
    const leases = { leaseSeconds: 60, leaseGraceSeconds: 60, maxAttempts: 3 };
    const store = openStore(join(directory, "store.sqlite"), leases);
    const { lineage } = await store.beginLineage(() => true);
    const server = await startServer({
      store,
      status: new StatusBoard(),
      address: "127.0.0.1:0",
      tlsDirectory: tls.learner,
      limitsOf: () => LIMITS,
      suspend: async () => ({}),
      log: createLog("learner", "warn"),
    });
    store.addSamples(
      programs.map((program, index) => ({
        ...{
          id: `bench-${index}`,
          purpose: "training",
          iteration: 0,
          lineage,
          task: "diamonds",
          kind: "scratch" as const,
        },
        ...{ promptTokens: Int32Array.of(1), responseTokens: Int32Array.of(2), behaviourLogProbs: Float32Array.of(-1) },
        ...{ solution: program, plan: "", program, instrumented: program, insertedMarkers: [], instrumenter: "None" },
        ...{ executionSeed: 0, state: "queued" as const },
      })),
    );
    return new Backlog(directory, store, server, tls.actor, programs.length);
  }

  private constructor(directory: string, store: Store, server: LearnerServer, actorTls: string, count: number) {
    this.#directory = directory;
    this.#store = store;
    this.#server = server;
    this.actorTls = actorTls;
    store.events.on("finished", (id) => {
      this.#finishedAt.set(id, performance.now() / 1000);
      if (this.#finishedAt.size === count) this.#done.resolve();
    });
  }

  get address(): string {
    return `127.0.0.1:${this.#server.port}`;
  }

  /** Resolves when every program has a result; rejects when a process that works on them ends. */
  get done(): Promise<void> {
    return this.#done.promise;
  }

  /** Resolves at the next one. */
  async nextResult(): Promise<void> {
    await Promise.race([once(this.#store.events, "finished"), this.#done.promise]);
  }

  /** Starts real actors. */
  async startActors(count: number, o: { slots: number; environment: string; taskDirectory: string }): Promise<void> {
    for (let index = 0; index < count; index++) {
      const name = `actor-${index}`;
      const flags = {
        ...{ learner: this.address, tls: this.actorTls, name, slots: String(o.slots), "task-dir": o.taskDirectory },
        ...{ python: o.environment, scratch: join(this.#directory, name) },
      };
      this.startProcess(
        ACTOR,
        Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]),
      );
    }
  }

  /** Starts a process that works on the queue, and ends with the backlog. */
  startProcess(module: string, args: string[]): ChildProcess {
    const env = { ...process.env, LOG_LEVEL: "warn" };
    const child = fork(module, args, { stdio: ["ignore", "ignore", "inherit", "ipc"], env });
    child.on("exit", (code) => this.#done.reject(new Error(`${module} exited with ${code} before its work was done`)));
    this.#children.push(child);
    return child;
  }

  /** When each result came, seconds, and what it was. @throws if a program did not complete */
  results(): { at: number; result: AcceptedResult }[] {
    return this.#store.samples([...this.#finishedAt.keys()]).map(({ id, result }) => {
      if (result?.outcome !== "completed") throw new Error(`${id} came to ${result?.outcome}: ${result?.detail}`);
      return { at: this.#finishedAt.get(id)!, result };
    });
  }

  async close(): Promise<void> {
    for (const child of this.#children) {
      child.removeAllListeners("exit");
      child.kill("SIGTERM");
      if (child.exitCode === null) await new Promise((resolve) => child.once("exit", resolve));
    }
    await this.#server.close();
    this.#store.close();
    await rm(this.#directory, { recursive: true, force: true });
  }
}
