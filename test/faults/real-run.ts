/** Starts `longrun run` on a small version of the quickstart's manifest, with real processes, and checks its results. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { auditFolder, auditStore } from "../chaos/accounts.ts";

const ROOT = new URL("../../", import.meta.url).pathname;
const MANIFEST = join(ROOT, "manifests/quickstart/trainingrun.yaml");
export const BATCH = 4;
/** A run with a few seconds per iteration, with critic and decay, so that all the learner's state is used. */
const SMALL = [
  `algorithm.batchSize=${BATCH}`,
  "algorithm.miniBatchSize=2",
  "algorithm.microBatchSize=2",
  "algorithm.baseline=Critic",
  "algorithm.learningRateSchedule={type: Cosine, warmupIterations: 1, minimumRatio: 0.1}",
  "evaluation.before=false",
  "evaluation.after=false",
  "learner.leaseSeconds=4",
  "learner.heartbeatSeconds=0.5",
  "restart.backoffSeconds=0.2",
];

export interface Ended {
  status: number | null;
  signal: NodeJS.Signals | null;
  output: string;
}

export class RealRun {
  readonly child: ChildProcess;
  readonly ended: Promise<Ended>;
  readonly directory: string;
  output = "";

  /** @param options.settings `path=value`, for a new or a continued run */
  constructor(
    directory: string,
    options: {
      iterations: number;
      resume?: boolean;
      replay?: string;
      settings?: readonly string[];
      metricsListen?: string;
      /** A command that executes the run's, so that the process stays the same. */
      through?: readonly string[];
      env?: NodeJS.ProcessEnv;
    },
  ) {
    this.directory = directory;
    const small = options.resume ? [] : [...SMALL, `stopping.iterations=${options.iterations}`];
    const settings = [...small, ...(options.settings ?? [])].flatMap((setting) => ["--set", setting]);
    const what = [...(options.resume ? ["--resume", directory] : [MANIFEST, "--out", directory]), ...settings];
    const replay = options.replay ? ["--replay", options.replay] : [];
    const metrics = options.metricsListen ? ["--metrics-listen", options.metricsListen] : [];
    const command = [process.execPath, join(ROOT, "controller/cli.ts"), "run", ...what, ...replay, ...metrics];
    const [file, ...args] = [...(options.through ?? []), ...command];
    this.child = spawn(file!, args, {
      cwd: tmpdir(),
      stdio: ["ignore", "pipe", "pipe"],
      env: options.env ?? process.env,
    });
    for (const stream of [this.child.stdout!, this.child.stderr!]) {
      stream.setEncoding("utf8").on("data", (text: string) => {
        this.output += text;
      });
    }
    this.ended = new Promise((resolve) => {
      this.child.once("close", (status, signal) => resolve({ status, signal, output: this.output }));
    });
  }

  /** Waits until `iteration` has a line in metrics.jsonl. */
  async reached(iteration: number): Promise<void> {
    await this.until(`iteration ${iteration}`, () => this.lines().length >= iteration);
  }

  /** Ends the run if a failed test left it running. */
  stop(): void {
    if (this.child.exitCode === null) this.child.kill("SIGKILL");
  }

  /** @throws Error if the run ends, or two minutes pass, before `condition` returns something */
  async until<Found>(what: string, condition: () => Found): Promise<NonNullable<Found>> {
    let over = false;
    void this.ended.then(() => {
      over = true;
    });
    for (const start = performance.now(); performance.now() - start < 120_000; ) {
      const found = condition();
      if (found) return found;
      if (over) throw new Error(`the run ended before ${what}:\n${this.output}`);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`no ${what} within two minutes:\n${this.output}`);
  }

  /** Returns the id of the run's process whose command line contains `part`. */
  find(part: string): number | undefined {
    return this.descendants().find(({ command }) => command.includes(part))?.pid;
  }

  /** Returns all processes that this run has started, including grandchildren. */
  descendants(): { pid: number; command: string }[] {
    return processes().filter(({ pid }) => pid !== this.child.pid && this.#owns(pid));
  }

  #owns(pid: number): boolean {
    for (let at = pid; at > 1; at = parentOf(at)) if (at === this.child.pid) return true;
    return false;
  }

  lines(): { iteration: number; samples: number }[] {
    const path = join(this.directory, "metrics.jsonl");
    if (!existsSync(path)) return [];
    const whole = readFileSync(path, "utf8").split("\n").slice(0, -1);
    return whole.map((line) => JSON.parse(line));
  }

  query(sql: string): Record<string, unknown>[] {
    const store = new DatabaseSync(join(this.directory, "store.sqlite"), { readOnly: true });
    try {
      return store.prepare(sql).all() as Record<string, unknown>[];
    } finally {
      store.close();
    }
  }

  /** Returns the digest of the newest checkpoint: every bit of policy, critic and both optimisers' state. */
  newestDigest(): string {
    const [row] = this.query(
      "SELECT digest FROM checkpoints WHERE superseded_by IS NULL ORDER BY iteration DESC LIMIT 1",
    );
    return String(row?.digest);
  }

  /** Returns the SHA-256 of the newest checkpoint's policy file. */
  newestPolicy(): string {
    const [row] = this.query(
      "SELECT path FROM checkpoints WHERE superseded_by IS NULL ORDER BY iteration DESC LIMIT 1",
    );
    const folder = join(this.directory, String(row?.path), "policy");
    const weights = ["model.safetensors", "adapter_model.safetensors"].map((name) => join(folder, name));
    return createHash("sha256")
      .update(readFileSync(weights.find((file) => existsSync(file))!))
      .digest("hex");
  }
}

/** Checks that each iteration trained on a whole batch, no sample is in two or lost, and nothing is left unexplained. */
export function assertAccounted(run: RealRun, iterations: number): void {
  const expected = { iterations, batch: BATCH };
  assert.deepEqual(auditFolder(run.directory, expected), []);
  assert.deepEqual(auditStore(join(run.directory, "store.sqlite"), expected).findings, []);
  assert.deepEqual(run.query("SELECT id, state FROM samples WHERE state = 'lost'"), []);
}

export function processes(): { pid: number; command: string }[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => {
      try {
        const command = readFileSync(`/proc/${name}/cmdline`, "utf8").replaceAll("\0", " ").trim();
        return [{ pid: Number(name), command }];
      } catch {
        return []; // the process has ended
      }
    });
}

export function parentOf(pid: number): number {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    return Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[1]);
  } catch {
    return 0;
  }
}

/** Makes a folder; `remove` deletes it. */
export function temporaryFolder(): { path: string; remove: () => void } {
  const path = mkdtempSync(join(tmpdir(), "longrun-faults-"));
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}
