/** A real learner's server with a queue of programs, and the processes that work on it. */
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
import { type RunCertificates, writeRunCertificates } from "../../proto/certificates.ts";

const ACTOR = fileURLToPath(new URL("../../actor/main.ts", import.meta.url));
export const LIMITS = {
  timeoutSeconds: 60,
  memoryBytes: 2 ** 31,
  outputBytes: 2 ** 20,
  keptOutputBytes: 2 ** 14,
  scratchBytes: 2 ** 30,
  scratchFiles: 10_000,
  processes: 64,
  submissionBytes: 2 ** 24,
};

interface RealActors {
  slots: number;
  environment: string;
  taskDirectory: string;
  isolation?: string | undefined;
}

export class Backlog {
  readonly #directory: string;
  readonly #store: Store;
  readonly #server: LearnerServer;
  readonly #finishedAt = new Map<string, number>();
  readonly #failure = Promise.withResolvers<never>();
  readonly #lineage: number;
  #queued = 0;
  #whenDone: (() => void) | undefined;
  readonly #children: ChildProcess[] = [];
  /** Folder with a folder of TLS files for each requested actor. */
  readonly tlsDirectory: string;
  readonly #tls: RunCertificates;
  /** Settles like `add` for the programs given at the start. */
  done: Promise<void> = Promise.resolve();

  /** @param programs all queued before the first actor connects */
  static async start(programs: string[]): Promise<Backlog> {
    const directory = await mkdtemp(join(tmpdir(), "longrun-bench-"));
    const tls = await writeRunCertificates(join(directory, "tls"), { validSeconds: 86400 });
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
    const backlog = new Backlog(directory, store, server, tls, lineage);
    backlog.done = backlog.add(programs);
    backlog.done.catch(() => {});
    return backlog;
  }

  private constructor(directory: string, store: Store, server: LearnerServer, tls: RunCertificates, lineage: number) {
    this.#directory = directory;
    this.#store = store;
    this.#server = server;
    this.tlsDirectory = join(directory, "tls");
    this.#tls = tls;
    this.#lineage = lineage;
    this.#failure.promise.catch(() => {});
    store.events.on("finished", (id) => {
      this.#finishedAt.set(id, performance.now() / 1000);
      if (this.#finishedAt.size === this.#queued) this.#whenDone?.();
    });
  }

  /** Queues programs. Resolves when all have a result; rejects if a process that works on them ends. */
  add(programs: string[]): Promise<void> {
    const first = this.#queued;
    this.#queued += programs.length;
    this.#store.addSamples(
      programs.map((program, index) => ({
        id: `bench-${first + index}`,
        purpose: "training",
        iteration: 0,
        lineage: this.#lineage,
        task: "diamonds",
        ...{ promptTokens: Int32Array.of(1), responseTokens: Int32Array.of(2), behaviourLogProbs: Float32Array.of(-1) },
        ...{ solution: program, plan: "", program, instrumented: program, insertedMarkers: [], instrumenter: "None" },
        ...{ kind: "scratch" as const, executionSeed: 0, state: "queued" as const },
      })),
    );
    if (programs.length === 0) return Promise.resolve();
    const done = new Promise<void>((resolve) => {
      this.#whenDone = resolve;
    });
    return Promise.race([done, this.#failure.promise]);
  }

  get address(): string {
    return `127.0.0.1:${this.#server.port}`;
  }

  /** Resolves at the next result. */
  async nextResult(): Promise<void> {
    await Promise.race([once(this.#store.events, "finished"), this.done]);
  }

  /** Writes the certificate of an actor. @returns its folder */
  certify(name: string): Promise<string> {
    return this.#tls.actor(name);
  }

  /** Starts real actors. */
  startActors(count: number, o: RealActors): Promise<ChildProcess[]> {
    const starting = Array.from({ length: count }, async (_, index) => {
      const name = `actor-${index}`;
      const tls = await this.certify(name);
      const flags = {
        ...{ learner: this.address, tls, name, slots: String(o.slots), "task-dir": o.taskDirectory },
        ...{ python: o.environment, scratch: this.scratchOf(index), ...(o.isolation && { isolation: o.isolation }) },
      };
      return this.startProcess(
        ACTOR,
        Object.entries(flags).flatMap(([flag, value]) => [`--${flag}`, value]),
      );
    });
    return Promise.all(starting);
  }

  get storeFile(): string {
    return this.#store.path;
  }

  /** Returns the folder with the scratch directories of a real actor's slots. */
  scratchOf(index: number): string {
    return join(this.#directory, `actor-${index}`);
  }

  /** Starts a process that works on the queue, and ends it with the backlog. */
  startProcess(module: string, args: string[]): ChildProcess {
    const env = { ...process.env, LOG_LEVEL: "warn" };
    const child = fork(module, args, { stdio: ["ignore", "ignore", "inherit", "ipc"], env });
    child.on("exit", (code) =>
      this.#failure.reject(new Error(`${module} exited with ${code} before its work was done`)),
    );
    this.#children.push(child);
    return child;
  }

  /** Returns each result with its time, in seconds. @throws Error if a program did not complete */
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
