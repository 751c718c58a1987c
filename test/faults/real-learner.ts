/**
 * A learner process like a pod's (`--manifest`, `--stay`, `--termination-log`), on a task of a dozen rows, and the real client of an actor
 * whose "programs" sleep and submit. No Python is needed.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { on, once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { ActorClient, type ClientOptions } from "../../actor/client.ts";
import { LearnerLinks } from "../../controller/operator/parts/learner/learner-link.ts";
import type { RunSummary } from "../../learner/metrics/summary.ts";
import { createAuthority, createCertificate, type TlsFiles, writeTlsFiles } from "../../proto/certificates.ts";

const ROOT = join(import.meta.dirname, "../..");
export const KEY = "default/test";
export const SERVER_NAME = "test-learner.default.svc";

const ROWS = Array.from({ length: 12 }, (_, id) => `${id},0.${id + 3},Ideal,E,SI2,60.7,56,5.3,5.25,3.2`);
const FEATURES = "id,carat,cut,color,clarity,depth,table,x,y,z";
const TASK: Record<string, string> = {
  "public/train.csv": `${FEATURES},price\n${ROWS.map((row, id) => `${row},${1000 + id}`).join("\n")}\n`,
  "public/test.csv": `${FEATURES}\n${ROWS.join("\n")}\n`,
  "public/sample_submission.csv": `id,price\n${ROWS.map((_, id) => `${id},0`).join("\n")}\n`,
  "public/description.md": "# Price of a diamond\n\nPredict the price of diamonds from train.csv.\n",
  "private/answers.csv": `id,price\n${ROWS.map((_, id) => `${id},${1500 + id}`).join("\n")}\n`,
};

/** Returns the manifest as in the controller's ConfigMap. */
export const manifest = ({ iterations = 50, seed = 0, batchSize = 4 } = {}): string => `
apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: { name: test }
spec:
  seed: ${seed}
  tasks:
    - name: diamonds
      publicData: { persistentVolumeClaim: { claimName: public } }
      privateData: { persistentVolumeClaim: { claimName: private } }
      executionTimeoutSeconds: 20
      grader: { metric: MAE, direction: Lower, idColumn: id, targetColumns: [price] }
  model: { policy: quickstart, maxPromptTokens: 256, maxResponseTokens: 160, generationBatchSize: 4 }
  prompts: { style: Short }
  algorithm: { batchSize: ${batchSize}, miniBatchSize: 2, microBatchSize: 2, baseline: BatchMean }
  evaluation: { before: false, after: false }
  learner: { threads: 1, heartbeatSeconds: 0.5, leaseSeconds: 10, checkpoint: { everyIterations: 1000 } }
  stopping: { iterations: ${iterations} }
`;

type Execute = ClientOptions["execute"];

/** Returns a program that takes `seconds` and submits a mediocre result. */
export const sleeps =
  (seconds: number): Execute =>
  async (_lease, signal) => {
    await sleep(seconds * 1000, undefined, { signal }).catch(() => {});
    return {
      outcome: signal.aborted ? "lost" : "completed",
      ...{ exitStatus: 0, signal: 0, durationSeconds: seconds, cpuSeconds: seconds, peakMemoryBytes: 1e6 },
      ...{ markers: [], forgedMarkers: 0, imitatedMarkers: 0, outputBytes: 0, detail: "" },
      terminalOutput: Buffer.alloc(0),
      submission: Buffer.from(
        `id,price\n${ROWS.map((_, id) => `${id},${Math.round(1400 + 50 * seconds)}`).join("\n")}\n`,
      ),
    };
  };

/** Names that actors may have. */
const ACTORS = ["test-actor-0", "test-actor-1", "test-actor-2"];

/** One run's volume, secrets and ConfigMap, and the processes that use them. */
export class World {
  readonly folder = mkdtempSync(join(tmpdir(), "longrun-learner-"));
  readonly run = join(this.folder, "data/run");
  readonly #learners: RealLearner[] = [];
  readonly #actors: ActorClient[] = [];
  readonly #links: LearnerLinks[] = [];
  #controllerTls: TlsFiles | undefined;

  async prepare(): Promise<this> {
    for (const [file, text] of Object.entries(TASK)) {
      mkdirSync(join(this.folder, "task/prepared", file, ".."), { recursive: true });
      writeFileSync(join(this.folder, "task/prepared", file), text);
    }
    const authority = await createAuthority({ validSeconds: 3600 });
    const issue = (role: "learner" | "actor" | "controller", name: string = role) =>
      createCertificate(authority, { role, name, validSeconds: 3600, hosts: [SERVER_NAME, "localhost"] });
    await writeTlsFiles(join(this.folder, "tls/learner"), await issue("learner"));
    for (const name of ACTORS) await writeTlsFiles(join(this.folder, "tls", name), await issue("actor", name));
    this.#controllerTls = await issue("controller");
    return this;
  }

  /** Starts a learner on the run's volume. */
  learner(text: string, { listen = "127.0.0.1:0" } = {}): RealLearner {
    const index = this.#learners.length;
    const config = join(this.folder, `config-${index}.yaml`);
    writeFileSync(config, text);
    const log = join(this.folder, `termination-${index}`);
    const learner = new RealLearner(
      [
        ...["--run", this.run, "--manifest", config, "--task-dir", join(this.folder, "task")],
        ...["--tls", join(this.folder, "tls/learner"), "--termination-log", log, "--listen", listen, "--stay"],
      ],
      log,
    );
    this.#learners.push(learner);
    return learner;
  }

  actor(port: number, name: string, slots: number, execute: Execute): ActorClient {
    const actor = new ActorClient({
      address: `127.0.0.1:${port}`,
      tlsDirectory: join(this.folder, "tls", name),
      ...{ name, slots, isolationLevel: "none", execute, maxReconnectSeconds: 0.2 },
    });
    this.#actors.push(actor);
    void actor.run().catch(() => {});
    return actor;
  }

  /** Returns the controller's link to the learner that listens at `port()`. */
  link(port: () => number): LearnerLinks {
    const links = new LearnerLinks({
      dial: async () => ({ address: `127.0.0.1:${port()}`, close: () => {} }),
      certificates: async () => this.#controllerTls!,
      onChange: () => {},
      reconnectSeconds: 0.1,
    });
    links.ensure(KEY, { uid: "1", serverName: SERVER_NAME });
    this.#links.push(links);
    return links;
  }

  summary(): RunSummary {
    return JSON.parse(readFileSync(join(this.run, "summary.json"), "utf8")) as RunSummary;
  }

  remove(): void {
    for (const links of this.#links) links.close();
    for (const actor of this.#actors) actor.stop();
    for (const { child } of this.#learners) child.kill("SIGKILL");
    rmSync(this.folder, { recursive: true, force: true });
  }
}

class RealLearner {
  readonly child: ChildProcess;
  readonly listening: Promise<{ port: number; metricsPort: number }>;
  readonly exit: Promise<number | null>;
  output = "";
  readonly #terminationLog: string;

  constructor(args: string[], terminationLog: string) {
    this.#terminationLog = terminationLog;
    this.child = spawn(process.execPath, [join(ROOT, "learner/main.ts"), ...args], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: { ...process.env, LOG_LEVEL: process.env.LOG_LEVEL ?? "warn" },
    });
    this.child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      this.output += text;
    });
    this.exit = once(this.child, "exit").then(([code]) => code as number | null);
    this.listening = Promise.race([
      this.#told("listening"),
      this.exit.then((code) => {
        throw new Error(`the learner ended with ${code} before it listened: ${this.output}`);
      }),
    ]);
    this.listening.catch(() => {});
  }

  async #told(type: string): Promise<{ port: number; metricsPort: number }> {
    for await (const [message] of on(this.child, "message")) if (message.type === type) return message;
    throw new Error("unreachable: events of a process do not end");
  }

  /** Returns why it ended, as Kubernetes shows it. */
  get termination(): string | undefined {
    return existsSync(this.#terminationLog) ? readFileSync(this.#terminationLog, "utf8") : undefined;
  }

  async probe(path: "/healthz" | "/readyz"): Promise<[status: number, text: string]> {
    const { metricsPort } = await this.listening;
    const answer = await fetch(`http://127.0.0.1:${metricsPort}${path}`);
    return [answer.status, (await answer.text()).trim()];
  }
}

export async function until<T>(condition: () => T, what: string, seconds = 60): Promise<NonNullable<T>> {
  for (const start = performance.now(); performance.now() - start < seconds * 1000; await sleep(20)) {
    const found = condition();
    if (found) return found;
  }
  throw new Error(`waited ${seconds} s for ${what}`);
}

export async function freePort(): Promise<number> {
  const server = createServer().listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as { port: number };
  server.close();
  return port;
}
