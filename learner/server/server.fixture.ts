/** A learner's server on loopback with real certificates, and an actor that tests control. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { deflateSync } from "node:zlib";
import { credentials, type StatusObject } from "@grpc/grpc-js";
import { pino } from "pino";
import { writeRunCertificates } from "../../proto/certificates.ts";
import { clientCredentials } from "../../proto/channel.ts";
import type { Limits } from "../../proto/execution.ts";
import {
  ActorProtocolClient,
  CHUNK_BYTES,
  clientOptions,
  type FromActorMessage,
  type FromLearnerReceived,
  type longrun,
  messages,
  PROTOCOL_VERSION,
} from "../../proto/service.ts";
import { scratchFolder } from "../store/store.fixture.ts";
import { openStore, type StoreOptions } from "../store/store.ts";
import type { ServerOptions } from "./options.ts";
import { startServer } from "./server.ts";
import { StatusBoard } from "./status.ts";

export type Attempt = longrun.v1alpha1.Attempt.$Properties;
export type Lease = longrun.v1alpha1.Lease.$Properties & { attempt: Attempt };

const folder = scratchFolder();
const certificates = await writeRunCertificates(join(folder, "tls"), { validSeconds: 3600 });
/** Names of tests' actors, each with a certificate of its own. */
const NAMES = [...Array.from({ length: 10 }, (_, index) => `actor-${index}`), "a", "early", "late", "old", "again"];
const actorFolders = new Map<string, string>();
for (const name of NAMES) actorFolders.set(name, await certificates.actor(name));
/** Returns the folder with the certificate of the actor `name`. */
export function actorTls(name: string): string {
  const path = actorFolders.get(name);
  if (path === undefined) throw new Error(`no test actor is called ${name}: add it to NAMES`);
  return path;
}
export const tls = { ...certificates, actor: actorTls("actor-0") };
/** Certificates of another run. */
const others = await writeRunCertificates(join(folder, "other"), { validSeconds: 3600 });
export const strangersTls = await others.actor("a");

export const LIMITS: Limits = {
  timeoutSeconds: 10,
  memoryBytes: 2 ** 30,
  outputBytes: 2 ** 20,
  keptOutputBytes: 1024,
  scratchBytes: 2 ** 30,
  scratchFiles: 10_000,
  processes: 64,
  submissionBytes: 2 ** 21,
};

let files = 0;

export type Learner = Awaited<ReturnType<typeof startLearner>>;

/** Opens the store (a new one unless `path` is given), begins a lineage and serves. */
export async function startLearner({
  path = join(folder, `${files++}.sqlite`),
  store: storeOptions = {},
  ...options
}: Partial<Omit<ServerOptions, "store">> & { path?: string; store?: StoreOptions } = {}) {
  const store = openStore(path, { leaseSeconds: 60, leaseGraceSeconds: 60, maxAttempts: 3, ...storeOptions });
  await store.beginLineage(() => true);
  const status = new StatusBoard({ intervalSeconds: 0.01 });
  const server = await startServer({
    store,
    status,
    address: "127.0.0.1:0",
    tlsDirectory: tls.learner,
    limitsOf: () => LIMITS,
    log: pino({ level: "silent" }),
    suspend: async () => ({}),
    heartbeatSeconds: 0.1,
    closeSeconds: 0.2,
    ...options,
  });
  const stop = async () => {
    await server.close();
    store.close();
  };
  return { store, status, server, path, address: `127.0.0.1:${server.port}`, stop };
}

/** Fails if a promise takes longer; the error names the expected event. */
export async function within<T>(promise: Promise<T>, what: string, seconds = 15): Promise<T> {
  const late = Promise.withResolvers<never>();
  const timer = setTimeout(() => late.reject(new Error(`waited ${seconds} s for ${what}`)), seconds * 1000);
  try {
    return await Promise.race([promise, late.promise]);
  } finally {
    clearTimeout(timer);
  }
}

const actors = new Set<TestActor>();

/** Closes every open connection, because it would keep the process alive. */
export function closeActors(): void {
  for (const actor of actors) actor.vanish();
}

export class TestActor {
  readonly name: string;
  #client: ActorProtocolClient;
  #stream: ReturnType<ActorProtocolClient["work"]>;
  #received: FromLearnerReceived[] = [];
  #waiting: (() => void)[] = [];
  /** The status with which the stream ended. */
  readonly status: Promise<StatusObject>;

  /** @param certificate folder of TLS files; null connects without a certificate */
  constructor(address: string, name = "actor-0", certificate: string | null = actorTls(name), authority = tls.actor) {
    this.name = name;
    actors.add(this);
    const channel =
      certificate === null
        ? credentials.createSsl(readFileSync(join(authority, "ca.crt")))
        : clientCredentials(certificate);
    this.#client = new ActorProtocolClient(address, channel, clientOptions(address, { maxReconnectSeconds: 0.1 }));
    this.#stream = this.#client.work();
    this.#stream.on("data", (message: FromLearnerReceived) => {
      this.#received.push(message);
      for (const wake of this.#waiting.splice(0)) wake();
    });
    this.#stream.on("error", () => {});
    this.status = new Promise((resolve) => this.#stream.on("status", resolve));
  }

  send(message: FromActorMessage): void {
    this.#stream.write(message);
  }

  /** Sends Hello. @returns the welcome */
  async hello(change: longrun.v1alpha1.Hello.$Properties = {}) {
    const hello = {
      protocolVersion: PROTOCOL_VERSION,
      actor: this.name,
      isolationLevel: "namespaces",
      slots: 1,
      ...change,
    };
    this.send({ hello });
    return this.next("welcome");
  }

  ready(freeSlots: number): void {
    this.send({ ready: { freeSlots } });
  }

  /** Returns the first unread message of that kind. */
  async next<K extends "welcome" | "lease" | "ack" | "revoke" | "drain">(
    kind: K,
  ): Promise<NonNullable<FromLearnerReceived[K]>> {
    for (;;) {
      const index = this.#received.findIndex(({ message }) => message === kind);
      if (index >= 0) return this.#received.splice(index, 1)[0][kind]!;
      await within(new Promise<void>((resolve) => this.#waiting.push(resolve)), `${kind} to ${this.name}`);
    }
  }

  async nextLease(): Promise<Lease> {
    return (await this.next("lease")) as Lease;
  }

  /** Returns whether there is an unread message of that kind. */
  has(kind: FromLearnerReceived["message"]): boolean {
    return this.#received.some(({ message }) => message === kind);
  }

  /** Sends a result, with a submission if a text is given; `corrupt` may change the sent data. */
  handIn(
    attempt: Attempt,
    { submission, header = {}, corrupt }: { submission?: Buffer; header?: object; corrupt?: Corruption } = {},
  ): void {
    const compressed = submission && deflateSync(submission);
    const chunks: Uint8Array[] = [];
    for (let at = 0; compressed && at < compressed.length; at += CHUNK_BYTES)
      chunks.push(compressed.subarray(at, at + CHUNK_BYTES));
    const wire: Wire = {
      info: submission && {
        bytes: submission.length,
        sha256: createHash("sha256").update(submission).digest("hex"),
        compressedBytes: compressed?.length ?? 0,
        chunks: chunks.length,
      },
      chunks,
      firstIndex: 0,
    };
    if (wire.info) corrupt?.(wire as Parameters<Corruption>[0]);
    this.send({
      result: {
        attempt,
        outcome: messages.Outcome.COMPLETED,
        durationSeconds: 0.25,
        cpuSeconds: 0.2,
        peakMemoryBytes: 1e6,
        terminalOutput: Buffer.from("done\n"),
        isolationLevel: "namespaces",
        submission: wire.info,
        ...header,
      },
    });
    wire.chunks.forEach((data, index) => {
      this.send({ chunk: { attempt, index: wire.firstIndex + index, data } });
    });
  }

  heartbeat(running: Attempt[], change: object = {}): void {
    this.send({ heartbeat: { running: running.map((attempt) => ({ attempt, elapsedSeconds: 0.5 })), ...change } });
  }

  /** Sends heartbeats from now on, with the attempts of `running`, so that neither the actor nor its leases are given up. */
  beat(running: () => Attempt[] = () => []): this {
    const timer = setInterval(() => this.heartbeat(running()), 100);
    void this.status.then(() => clearInterval(timer));
    return this;
  }

  /** Breaks the stream and the connection, like a crash. */
  vanish(): void {
    this.#stream.cancel();
    this.#client.close();
  }

  end(): void {
    this.#stream.end();
    this.#client.close();
  }
}

interface Wire {
  info: longrun.v1alpha1.SubmissionInfo.$Properties | undefined;
  chunks: Uint8Array[];
  /** Index of the first chunk. */
  firstIndex: number;
}
export type Corruption = (wire: Wire & { info: NonNullable<Wire["info"]> }) => void;
