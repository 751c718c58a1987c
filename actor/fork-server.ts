/**
 * A process on one machine that has imported packages, for all sandboxes of this actor that want the same packages. The sandboxes are forks
 * of it (sandbox/forkserver.py), so they share the memory of the imported modules. The process lives as long as one of its sandboxes.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, rmSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeTemporaryFolder, SANDBOX_FOLDERS } from "../proto/temporary-folder.ts";
import { ActorError } from "./errors.ts";

const ZYGOTE = fileURLToPath(new URL("./sandbox/zygote.py", import.meta.url));
// A fixed hash seed: a program's sets have the same order in every zygote.
const ENVIRONMENT = {
  LANG: "C.UTF-8",
  PATH: "/usr/bin:/bin",
  PYTHONHASHSEED: "0",
  PYTHONSAFEPATH: "1",
  PYTHONUTF8: "1",
};
const PID_BYTES = 4;

export interface ForkServerOptions {
  /** The interpreter of the Python environment. */
  python: string;
  /** Modules to import. Absent: the most common ones (`WARM` of sandbox/warm.py). */
  warm?: readonly string[];
  /** Whether programs can have several processes; some packages check that when they are imported. */
  severalProcesses: boolean;
  /** Called with unexpected lines that the process or one of its sandboxes prints. */
  onLog?: (line: string) => void;
}

/** A fork of the server, which serves one sandbox. */
interface ForkedZygote {
  pid: number;
  /** The other side closes it when the fork has ended. Closing it here kills the fork. */
  control: Socket;
}

/** Servers that the next sandbox can use. */
const running = new Map<string, ForkServer>();
/** Servers whose processes may still run. */
const started = new Set<ForkServer>();

export class ForkServer {
  readonly #key: string;
  /** Readable by this user alone: the socket, and files that packages write at import. */
  readonly #directory = makeTemporaryFolder(SANDBOX_FOLDERS);
  readonly #process: ChildProcess;
  readonly #ready: Promise<void>;
  #users = 0;
  lastLine = "no message";

  /** Returns the server with these packages, and starts it if necessary. Each call needs one call of `leave`. */
  static use(options: ForkServerOptions): ForkServer {
    const { python, warm, severalProcesses } = options;
    const key = JSON.stringify([python, severalProcesses, warm && [...new Set(warm)].sort()]);
    const server = running.get(key) ?? new ForkServer(key, options);
    running.set(key, server);
    server.#users++;
    return server;
  }

  private constructor(key: string, { python, warm, severalProcesses, onLog }: ForkServerOptions) {
    this.#key = key;
    const temporary = join(this.#directory, "tmp");
    mkdirSync(temporary);
    const args = ["-s", "-B", ZYGOTE, "--fork-server", this.#socket, "--scratch", temporary];
    if (warm) args.push(`--warm=${warm.join(",")}`);
    if (severalProcesses) args.push("--several-processes");
    const child = spawn(python, args, { cwd: "/", env: ENVIRONMENT, stdio: ["ignore", "pipe", "pipe"] });
    this.#process = child;
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n").filter(Boolean)) {
        this.lastLine = line.slice(0, 500);
        onLog?.(this.lastLine);
      }
    });
    started.add(this);
    child.once("exit", () => this.#retire());
    const ended = once(child, "close").catch((error: Error) => {
      this.lastLine = error.message;
    });
    const failed = ended.then(() => {
      this.#retire();
      started.delete(this);
      this.#removeDirectory();
      throw new ActorError("sandbox", `sandbox: the zygote did not start: its process ended: ${this.lastLine}`);
    });
    this.#ready = Promise.race([once(child.stdout!, "data").then(() => {}), failed]);
    this.#ready.catch(() => {});
  }

  get #socket(): string {
    return join(this.#directory, "socket");
  }

  /** Returns a fork whose packages are imported. Throws ActorError `sandbox` if none is ready within `seconds`. */
  async fork(seconds: number): Promise<ForkedZygote> {
    const timeout = AbortSignal.timeout(Math.max(1, Math.ceil(seconds * 1000)));
    const late = once(timeout, "abort").then(() => {
      throw new ActorError("sandbox", `sandbox: the zygote was not ready within ${seconds} s`);
    });
    late.catch(() => {});
    const starting = this.#ready.then(() => connectFork(this.#socket));
    starting.catch(() => {});
    try {
      return await Promise.race([starting, late]);
    } catch (error) {
      starting.then(({ control }) => control.destroy()).catch(() => {});
      throw error;
    }
  }

  /** Ends the server if no other sandbox uses it. */
  leave(): void {
    if (--this.#users > 0) return;
    this.#retire();
    this.#process.kill("SIGKILL");
  }

  /** New sandboxes no longer use this server. */
  #retire(): void {
    if (running.get(this.#key) === this) running.delete(this.#key);
  }

  #removeDirectory(): void {
    rmSync(this.#directory, { recursive: true, force: true, maxRetries: 3 });
  }

  /** Removes the directories if this process ends early; the servers then end by themselves. */
  static removeDirectories(): void {
    for (const server of started) server.#removeDirectory();
  }
}

process.on("exit", () => ForkServer.removeDirectories());

async function connectFork(socket: string): Promise<ForkedZygote> {
  const control = connect(socket);
  try {
    await once(control, "connect");
    for (;;) {
      const pid: Buffer | null = control.read(PID_BYTES);
      if (pid) return { control, pid: pid.readUInt32BE() };
      if (control.destroyed || control.readableEnded) throw new Error("it closed the connection");
      await once(control, "readable");
    }
  } catch (cause) {
    control.destroy();
    throw new ActorError("sandbox", `sandbox: the zygote did not start: ${(cause as Error).message}`, cause);
  }
}
