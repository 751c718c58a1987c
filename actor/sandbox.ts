/**
 * The supervisor's side of one zygote: starts it, has it run one program at a time, and takes all that comes from it
 * as hostile bytes: framed, bounded, checked, never a path.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, rm } from "node:fs/promises";
import type { Duplex } from "node:stream";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { ActorError } from "./errors.ts";
import { encodeFrame, type Frame, FrameReader } from "./frames.ts";
import type { Limits } from "./limits.ts";

const ZYGOTE = fileURLToPath(new URL("./sandbox/zygote.py", import.meta.url));

export type IsolationLevel = "namespaces" | "landlock" | "none";

export interface SandboxOptions {
  /** The interpreter of the Python environment. */
  python: string;
  level: IsolationLevel;
  /** Task name -> directory with its public data. */
  inputs: Record<string, string>;
  /** A directory of this sandbox alone; made, used for scratch where there are no namespaces, removed at the end. */
  space: string;
  /** Processors that the sandbox is bound to; absent: those of the actor. */
  cpus?: number[];
  /** Threads that numerical libraries use. */
  cpusPerSlot?: number;
  /** Hides newer Landlock versions of the kernel; for tests. */
  landlockAbi?: number;
  /** Modules that the zygote imports beforehand; absent: what programs use most. */
  warm?: string[];
  /** Lines that the zygote itself prints, which it should not. */
  onLog?: (line: string) => void;
  startSeconds?: number;
}

/** What the zygote found and applied. */
export interface SandboxInfo {
  level: IsolationLevel;
  /** 0: none. */
  landlockAbi: number;
  /** Programs run as another user than the supervisor. */
  ownUser: boolean;
  versions: Record<string, string>;
  residentBytes: number;
}

export interface RunRequest {
  task: string;
  program: Uint8Array;
  limits: Limits;
  seed: number;
}

export interface RunHandlers {
  onStart?: () => void;
  onOutput?: (chunk: Buffer) => void;
  onProgress?: (progress: { cpuSeconds: number; memoryBytes: number }) => void;
}

/** How a program ended, as the sandbox tells it. */
export interface RunEnd {
  status: number;
  signal: number;
  /** By our monotonic clock, from start to reaped. */
  durationSeconds: number;
  cpuSeconds: number;
  peakMemoryBytes: number;
  /** The limit for which the zygote killed it, if it did. */
  killedFor?: "memory" | "processes" | "scratch";
  /** The Python exception that ended it; the program's own word. */
  exception?: { type: string; line?: number; memory: boolean };
  submission?: Buffer;
  submissionRefused?: string;
}

interface Running {
  request: RunRequest;
  handlers: RunHandlers;
  resolve: (end: RunEnd) => void;
  reject: (error: ActorError) => void;
  startedAt?: number;
  end?: RunEnd;
  expectedBytes: number;
  parts: Buffer[];
  receivedBytes: number;
}

export class Sandbox {
  readonly info: SandboxInfo;
  readonly inputs: Record<string, string>;
  /** Settles when the zygote's process is gone. */
  readonly ended: Promise<void>;
  readonly #process: ChildProcess;
  readonly #control: Duplex;
  readonly #space: string;
  readonly #reader: FrameReader;
  #running?: Running;
  #watchdog?: NodeJS.Timeout;
  #dead?: ActorError;

  /** Starts a zygote and waits until it has imported its packages. Throws ActorError `isolation` or `sandbox`. */
  static async start(options: SandboxOptions): Promise<Sandbox> {
    await mkdir(options.space, { recursive: true, mode: 0o711 });
    // A hash seed that never changes: a program's sets iterate alike whichever zygote it meets.
    const env = { LANG: "C.UTF-8", PATH: "/usr/bin:/bin", PYTHONHASHSEED: "0", PYTHONSAFEPATH: "1", PYTHONUTF8: "1" };
    const child = spawn(options.python, ["-s", "-B", ZYGOTE], {
      cwd: "/",
      env,
      stdio: ["ignore", "ignore", "pipe", "pipe"],
    });
    const control = child.stdio[3] as unknown as Duplex;
    const lastLines: string[] = [];
    child.stderr!.setEncoding("utf8").on("data", (text: string) => {
      for (const line of text.split("\n").filter(Boolean)) {
        lastLines.push(line.slice(0, 500));
        if (lastLines.length > 5) lastLines.shift();
        options.onLog?.(line.slice(0, 500));
      }
    });
    control.on("error", () => {}); // its end is noticed by the process's
    const reader = new FrameReader();
    const ended = once(child, "close").then(
      () => {},
      () => {},
    );
    const config = {
      level: options.level,
      inputs: options.inputs,
      space: options.space,
      cpus: options.cpus ?? [],
      cpusPerSlot: options.cpusPerSlot ?? 1,
      ...(options.warm && { warm: options.warm }),
      ...(options.landlockAbi === undefined ? {} : { landlockAbi: options.landlockAbi }),
    };
    control.write(encodeFrame("C", JSON.stringify(config)));
    try {
      const hello = await firstFrame(control, reader, ended, options.startSeconds ?? 120, lastLines);
      return new Sandbox(child, control, reader, ended, options, parseHello(hello));
    } catch (error) {
      child.kill("SIGKILL");
      await ended;
      await rm(options.space, { recursive: true, force: true }).catch(() => {});
      throw error;
    }
  }

  private constructor(
    child: ChildProcess,
    control: Duplex,
    reader: FrameReader,
    ended: Promise<void>,
    options: SandboxOptions,
    info: SandboxInfo,
  ) {
    this.#process = child;
    this.#control = control;
    this.#reader = reader;
    this.#space = options.space;
    this.ended = ended;
    this.inputs = options.inputs;
    this.info = info;
    control.on("data", (chunk: Buffer) => {
      try {
        for (const frame of this.#reader.push(chunk)) this.#onFrame(frame);
      } catch (cause) {
        this.#fail(`it sent what cannot be read: ${(cause as Error).message}`, cause);
      }
    });
    void ended.then(() => this.#fail("its process ended"));
  }

  /** Of the process that was started; with namespaces the zygote is its child. */
  get pid(): number {
    return this.#process.pid!;
  }

  /** False once the zygote is gone or was given up. */
  get alive(): boolean {
    return this.#dead === undefined;
  }

  /** Runs one program; one at a time. Rejects with ActorError `sandbox` if the sandbox breaks: not the program's fault. */
  run(request: RunRequest, handlers: RunHandlers = {}): Promise<RunEnd> {
    if (this.#dead) return Promise.reject(this.#dead);
    if (this.#running) return Promise.reject(new ActorError("sandbox", "sandbox: it runs another program already"));
    return new Promise((resolve, reject) => {
      this.#running = { request, handlers, resolve, reject, expectedBytes: 0, parts: [], receivedBytes: 0 };
      const { program, ...rest } = request;
      const header = { ...rest, programBytes: program.length };
      this.#control.write(Buffer.concat([encodeFrame("R", JSON.stringify(header)), program]));
      this.#expect("the start", 30);
    });
  }

  /** Kills what runs, with SIGKILL. */
  kill(): void {
    if (!this.#running || this.#running.end || this.#dead) return;
    this.#control.write(encodeFrame("K"));
    this.#expect("the end of a killed program", 10);
  }

  /** Ends the zygote and everything in it, and removes its directory. */
  async stop(): Promise<void> {
    this.#fail("it was stopped");
    await this.ended;
    for (let attempt = 0; attempt < 5; attempt++) {
      try {
        return await rm(this.#space, { recursive: true, force: true });
      } catch {
        await sleep(50); // a program's last process may still be writing
      }
    }
  }

  #expect(what: string, seconds: number): void {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => this.#fail(`${what} did not come within ${seconds} s`), seconds * 1000);
  }

  #fail(why: string, cause?: unknown): void {
    if (this.#dead) return;
    this.#dead = new ActorError("sandbox", `sandbox: ${why}`, cause);
    clearTimeout(this.#watchdog);
    this.#process.kill("SIGKILL");
    this.#running?.reject(this.#dead);
    this.#running = undefined;
  }

  #onFrame({ kind, payload }: Frame): void {
    const running = this.#running;
    if (kind === "H") throw new Error(String(JSON.parse(payload.toString()).error).slice(0, 500));
    if (!running) throw new Error(`frame ${JSON.stringify(kind)} while nothing runs`);
    if (kind === "S" && running.startedAt === undefined) {
      running.startedAt = performance.now();
      clearTimeout(this.#watchdog);
      running.handlers.onStart?.();
    } else if (kind === "O") {
      running.handlers.onOutput?.(payload);
    } else if (kind === "P") {
      const { cpuSeconds, memoryBytes } = JSON.parse(payload.toString());
      running.handlers.onProgress?.({ cpuSeconds: amount(cpuSeconds), memoryBytes: amount(memoryBytes) });
    } else if (kind === "X" && running.startedAt !== undefined && !running.end) {
      running.end = parseEnd(payload, (performance.now() - running.startedAt) / 1000);
      this.#expect("the submission", 60);
    } else if (kind === "E" && running.end) {
      const { bytes, refused, present } = JSON.parse(payload.toString());
      if (typeof refused === "string") running.end.submissionRefused = refused.slice(0, 200);
      if (present === true) running.expectedBytes = amount(bytes);
      if (running.expectedBytes > running.request.limits.submissionBytes) throw new Error("submission above its limit");
      if (present === true && running.expectedBytes === 0) running.end.submission = Buffer.alloc(0);
    } else if (kind === "D" && running.end) {
      running.receivedBytes += payload.length;
      if (running.receivedBytes > running.expectedBytes) throw new Error("more submission than announced");
      running.parts.push(Buffer.from(payload));
    } else if (kind === "F" && running.end && running.receivedBytes === running.expectedBytes) {
      if (running.parts.length > 0) running.end.submission = Buffer.concat(running.parts);
      clearTimeout(this.#watchdog);
      this.#running = undefined;
      running.resolve(running.end);
    } else throw new Error(`unexpected frame ${JSON.stringify(kind)}`);
  }
}

async function firstFrame(
  control: Duplex,
  reader: FrameReader,
  ended: Promise<void>,
  seconds: number,
  lastLines: string[],
): Promise<Frame> {
  const timeout = AbortSignal.timeout(seconds * 1000);
  const gone = ended.then(() => {
    throw new ActorError("sandbox", `sandbox: the zygote did not start: ${lastLines.at(-1) ?? "no message"}`);
  });
  gone.catch(() => {});
  for (;;) {
    let chunk: Buffer;
    try {
      [chunk] = (await Promise.race([once(control, "data", { signal: timeout }), gone])) as [Buffer];
    } catch (cause) {
      if (cause instanceof ActorError) throw cause;
      throw new ActorError("sandbox", `sandbox: the zygote was not ready within ${seconds} s`, cause);
    }
    for (const frame of reader.push(chunk)) return frame;
  }
}

function parseHello({ kind, payload }: Frame): SandboxInfo {
  const hello = JSON.parse(payload.toString());
  if (kind !== "H") throw new ActorError("sandbox", `sandbox: unexpected first frame ${JSON.stringify(kind)}`);
  if (typeof hello.error === "string") throw new ActorError("isolation", hello.error.slice(0, 500));
  return {
    level: hello.level,
    landlockAbi: amount(hello.landlockAbi),
    ownUser: hello.ownUser === true,
    versions: Object.fromEntries(Object.entries(hello.versions ?? {}).map(([name, value]) => [name, String(value)])),
    residentBytes: amount(hello.residentBytes),
  };
}

function parseEnd(payload: Buffer, durationSeconds: number): RunEnd {
  const told = JSON.parse(payload.toString());
  const end: RunEnd = {
    status: amount(told.status),
    signal: amount(told.signal),
    durationSeconds,
    cpuSeconds: amount(told.cpuSeconds),
    peakMemoryBytes: amount(told.peakMemoryBytes),
  };
  if (["memory", "processes", "scratch"].includes(told.killedFor)) end.killedFor = told.killedFor;
  try {
    const { exception, line, memory } = JSON.parse(String(told.report));
    if (typeof exception === "string" && /^\w{1,100}$/.test(exception)) {
      end.exception = { type: exception, memory: memory === true };
      if (Number.isSafeInteger(line) && line > 0) end.exception.line = line;
    }
  } catch {
    // No report, or not one: the program wrote there itself.
  }
  return end;
}

function amount(value: unknown): number {
  if (typeof value !== "number" || !Number.isFinite(value) || value < 0) throw new Error(`not an amount: ${value}`);
  return value;
}
