/**
 * The supervisor's side of one zygote. Starts a zygote or connects to one, lets it run one program at a time, and treats everything from it
 * as hostile bytes: framed, bounded, checked, never used as a path.
 */
import type { Duplex } from "node:stream";
import type { Limits } from "../proto/execution.ts";
import type { IsolationLevel } from "../proto/isolation.ts";
import { ActorError } from "./errors.ts";
import { encodeFrame, type Frame, FrameReader } from "./frames.ts";
import type { Zygote } from "./zygote.ts";
import {
  amount,
  oneLine,
  parseCpuSeconds,
  parseEnd,
  parseFilesLeft,
  parseHello,
  parseJson,
  parseMemoryBytes,
  type RunEnd,
  type SandboxInfo,
} from "./zygote-messages.ts";
import { type ProcessOptions, spawnZygote } from "./zygote-process.ts";
import { connectZygote, type SocketOptions } from "./zygote-socket.ts";

const SIGKILL = 9;
/** Most bytes to read from one sandbox in one turn of the event loop, so that endless output cannot delay other slots. */
const MOST_BYTES_A_TURN = 128 << 10;
/** A zygote sends two progress frames a second. */
const MOST_PROGRESS_PER_SECOND = 10;

/** How long a zygote may take for each step. A zygote that takes longer is given up, and its execution is lost. */
export interface Deadlines {
  /** Limit between a request and the program's start. */
  programStartSeconds: number;
  /** Limit between the kill and the program's end. */
  killSeconds: number;
  /** Limit between the program's end and the end of its submission, clean-up included. */
  submissionSeconds: number;
}

const DEFAULT_DEADLINES: Deadlines = { programStartSeconds: 30, killSeconds: 10, submissionSeconds: 60 };

/** A zygote that this process starts, or one in a container. */
export type SandboxOptions = (ProcessOptions | SocketOptions) & {
  /** Task name -> directory with its public data, as the zygote sees it. */
  inputs: Record<string, string>;
  /** Processors to bind the sandbox to. Absent: the actor's processors. */
  cpus?: number[];
  /** Threads of numerical libraries. A listening zygote uses its container's limit instead. */
  cpusPerSlot?: number;
  /** For tests: hides newer Landlock versions of the kernel. */
  landlockAbi?: number;
  /** Numbers of the GPUs that programs may use. Absent: none, or, for a listening zygote, all GPUs of its container. */
  gpus?: number[];
  /** For tests: where to look for GPUs. */
  gpuPlaces?: { directory: string; driver: string };
  /** Longest wait for a zygote with its packages imported. */
  startSeconds?: number;
  /** Absent deadlines have their defaults. */
  deadlines?: Partial<Deadlines>;
};

export interface RunRequest {
  task: string;
  program: Uint8Array;
  /** The sandbox takes out the program's lines that print a marker with this nonce, and prints the markers itself. Absent or empty: none. */
  nonce?: string;
  limits: Limits;
  seed: number;
}

export interface RunHandlers {
  onStart?: () => void;
  onOutput?: (chunk: Buffer) => void;
  onProgress?: (progress: { cpuSeconds: number; memoryBytes: number }) => void;
}

interface Running {
  request: RunRequest;
  handlers: RunHandlers;
  resolve: (end: RunEnd) => void;
  reject: (error: ActorError) => void;
  /** Milliseconds of the monotonic clock, like `startedAt`, which is when the zygote's start frame arrived. */
  requestedAt: number;
  startedAt?: number;
  progressFrames: number;
  killed: boolean;
  end?: RunEnd;
  /** Set once the size was announced; empty if there is none. `receivedBytes` of it have arrived. */
  submission?: Buffer;
  receivedBytes: number;
}

export class Sandbox {
  readonly info: SandboxInfo;
  readonly inputs: Record<string, string>;
  /** Settles when the zygote has ended. */
  readonly ended: Promise<void>;
  /** The supervisor ended the zygote while it worked. */
  stopped = false;
  readonly #zygote: Zygote;
  readonly #control: Duplex;
  readonly #reader: FrameReader;
  readonly #deadlines: Deadlines;
  #running?: Running;
  #turnBytes = 0;
  /** OOM kills in the control group before the current program. */
  #oomKills = 0;
  #watchdog?: NodeJS.Timeout;
  #dead?: ActorError;

  /** Returns a sandbox whose zygote has imported its packages. Throws ActorError `isolation` or `sandbox`. */
  static async start(options: SandboxOptions & { level: IsolationLevel }): Promise<Sandbox> {
    const { level, inputs, cpus = [], cpusPerSlot = 1, landlockAbi, startSeconds = 120 } = options;
    const deadline = performance.now() + startSeconds * 1000;
    const space = "space" in options ? options.space : undefined;
    const { gpus, gpuPlaces } = options;
    const config = { level, inputs, space, cpus, cpusPerSlot, gpus, gpuPlaces, landlockAbi };
    const zygote =
      "socket" in options
        ? await connectZygote(options, startSeconds)
        : await spawnZygote({ ...options, severalProcesses: level !== "landlock" }, startSeconds);
    zygote.control.write(encodeFrame("C", JSON.stringify(config)));
    const reader = new FrameReader();
    try {
      const hello = parseHello(await firstFrame(zygote, reader, startSeconds, deadline), level);
      return new Sandbox(zygote, reader, inputs, hello, { ...DEFAULT_DEADLINES, ...options.deadlines });
    } catch (error) {
      zygote.end();
      await zygote.ended;
      await zygote.cleanUp();
      if (error instanceof ActorError) throw error;
      throw new ActorError("sandbox", `sandbox: its first frame cannot be read: ${oneLine(error)}`, error);
    }
  }

  private constructor(
    zygote: Zygote,
    reader: FrameReader,
    inputs: Record<string, string>,
    info: SandboxInfo,
    deadlines: Deadlines,
  ) {
    this.#zygote = zygote;
    this.#control = zygote.control;
    this.#reader = reader;
    this.#deadlines = deadlines;
    this.ended = zygote.ended;
    this.inputs = inputs;
    zygote.group?.start();
    this.info = { ...info, ...(zygote.group && { controlGroup: zygote.group.version }) };
    this.#control.on("data", (chunk: Buffer) => this.#onData(chunk));
    this.#control.resume();
    void this.ended.then(() => this.#fail(zygote.whyEnded()));
  }

  /** Process id of the zygote that this process started, if any. */
  get pid(): number | undefined {
    return this.#zygote.pid;
  }

  /** False once the zygote has ended or was given up. */
  get alive(): boolean {
    return this.#dead === undefined;
  }

  /** Why the zygote is not alive. */
  get fault(): ActorError | undefined {
    return this.#dead;
  }

  /** Runs one program; only one at a time. Rejects with ActorError `sandbox` if the sandbox breaks, which is not the program's fault. */
  run(request: RunRequest, handlers: RunHandlers = {}): Promise<RunEnd> {
    if (this.#dead) return Promise.reject(this.#dead);
    if (this.#running) return Promise.reject(new ActorError("sandbox", "sandbox: it runs another program already"));
    return new Promise((resolve, reject) => {
      const requestedAt = performance.now();
      this.#running = {
        request,
        handlers,
        resolve,
        reject,
        requestedAt,
        progressFrames: 0,
        killed: false,
        receivedBytes: 0,
      };
      const { program, nonce = "", ...rest } = request;
      const { memoryBytes, scratchBytes, processes } = request.limits;
      // At `namespaces` scratch is memory too.
      this.#zygote.group?.limit({ memoryBytes, filesBytes: scratchBytes, processes });
      this.#oomKills = this.#zygote.group?.oomKills() ?? 0;
      const header = { ...rest, nonceBytes: nonce.length, programBytes: program.length };
      this.#control.write(Buffer.concat([encodeFrame("R", JSON.stringify(header)), Buffer.from(nonce), program]));
      this.#expect("the start", this.#deadlines.programStartSeconds);
    });
  }

  /** Kills the program with SIGKILL. Returns false if it has already ended. */
  kill(): boolean {
    if (!this.#running || this.#running.end) return false;
    // Only once: a program that floods the supervisor with output must not extend its deadline or fill the socket.
    if (!this.#running.killed) {
      this.#running.killed = true;
      this.#control.write(encodeFrame("K"));
      this.#expect("the end of a killed program", this.#deadlines.killSeconds);
    }
    return true;
  }

  /** Ends a working sandbox that cannot be trusted, as if it had broken. */
  giveUp(why: string): void {
    this.#fail(why);
  }

  /** Ends the zygote and all its processes, and removes its directory. A listening zygote cleans up itself. */
  async stop(): Promise<void> {
    this.stopped ||= this.alive;
    this.#fail("it was stopped");
    await this.ended;
    await this.#zygote.cleanUp();
  }

  #expect(what: string, seconds: number): void {
    clearTimeout(this.#watchdog);
    this.#watchdog = setTimeout(() => this.#fail(`${what} did not come within ${seconds} s`), seconds * 1000);
  }

  #fail(why: string, cause?: unknown): void {
    if (this.#dead) return;
    this.#dead = new ActorError("sandbox", `sandbox: ${why}`, cause);
    clearTimeout(this.#watchdog);
    this.#zygote.end();
    this.#running?.reject(this.#dead);
    this.#running = undefined;
  }

  #onData(chunk: Buffer): void {
    if (this.#turnBytes === 0)
      setImmediate(() => {
        this.#turnBytes = 0;
        this.#control.resume();
      });
    this.#turnBytes += chunk.length;
    if (this.#turnBytes >= MOST_BYTES_A_TURN) this.#control.pause();
    try {
      for (const frame of this.#reader.push(chunk)) this.#onFrame(frame);
    } catch (cause) {
      this.#fail(`it sent what cannot be read: ${oneLine(cause)}`, cause);
    }
  }

  /** Order of frames: S, then O and P, X, O (the remaining output), E, D, F. */
  #onFrame({ kind, payload }: Frame): void {
    const running = this.#running;
    if (kind === "H") throw new Error(String(parseJson(payload).error).slice(0, 500));
    if (!running) throw new Error(`frame ${JSON.stringify(kind)} while nothing runs`);
    const { startedAt, end, submission } = running;
    const secondsSince = (milliseconds: number) => (performance.now() - milliseconds) / 1000;
    if (kind === "S" && startedAt === undefined) {
      running.startedAt = performance.now();
      if (!running.killed) clearTimeout(this.#watchdog);
      running.handlers.onStart?.();
    } else if (kind === "O" && startedAt !== undefined && !submission && payload.length > 0) {
      running.handlers.onOutput?.(payload);
    } else if (kind === "P" && startedAt !== undefined && !end) {
      const seconds = secondsSince(running.requestedAt);
      if (++running.progressFrames > MOST_PROGRESS_PER_SECOND * (1 + seconds)) throw new Error("a flood of progress");
      const told = parseJson(payload);
      running.handlers.onProgress?.({
        cpuSeconds: parseCpuSeconds(told.cpuSeconds, seconds),
        memoryBytes: parseMemoryBytes(told.memoryBytes),
      });
    } else if (kind === "X" && startedAt !== undefined && !end) {
      running.end = parseEnd(payload, secondsSince(startedAt), secondsSince(running.requestedAt));
      const { group } = this.#zygote;
      if (running.end.signal === SIGKILL && group && group.oomKills() > this.#oomKills)
        running.end.killedFor ??= "memory";
      this.#expect("the submission", this.#deadlines.submissionSeconds);
    } else if (kind === "E" && end && !submission) {
      const { bytes, refused, present, left } = parseJson(payload);
      const expectedBytes = present === true ? amount(bytes) : 0;
      if (expectedBytes > running.request.limits.submissionBytes) throw new Error("submission above its limit");
      if (typeof refused === "string") end.submissionRefused = refused.slice(0, 200);
      else if (present !== true) end.filesLeft = parseFilesLeft(left);
      // One allocation, because one buffer for each frame would cost more than its content. Memory is used only as it is written.
      running.submission = Buffer.allocUnsafe(expectedBytes);
      if (present === true) end.submission = running.submission;
    } else if (kind === "D" && submission && payload.length > 0) {
      if (payload.length > submission.length - running.receivedBytes) throw new Error("more submission than announced");
      running.receivedBytes += payload.copy(submission, running.receivedBytes);
    } else if (kind === "F" && end && submission && running.receivedBytes === submission.length) {
      if (this.#control.writableLength > 0) throw new Error("it ends a program that it has not read");
      clearTimeout(this.#watchdog);
      this.#running = undefined;
      running.resolve(end);
    } else throw new Error(`unexpected frame ${JSON.stringify(kind)}`);
  }
}

function firstFrame(zygote: Zygote, reader: FrameReader, seconds: number, deadline: number): Promise<Frame> {
  const { promise, resolve, reject } = Promise.withResolvers<Frame>();
  const refuse = (why: string) => reject(new ActorError("sandbox", `sandbox: the zygote ${why}`));
  const late = () => refuse(`was not ready within ${seconds} s`);
  const timeout = setTimeout(late, Math.max(1, deadline - performance.now()));
  const onData = (chunk: Buffer) => {
    try {
      const [frame, another] = reader.push(chunk);
      if (!frame) return;
      zygote.control.pause(); // resumed for the next program
      if (another) throw new Error(`frame ${JSON.stringify(another.kind)} while nothing runs`);
      resolve(frame);
    } catch (error) {
      reject(error);
    }
  };
  zygote.control.on("data", onData);
  void zygote.ended.then(() => refuse(`did not start: ${zygote.whyEnded()}`));
  return promise.finally(() => {
    clearTimeout(timeout);
    zygote.control.off("data", onData);
  });
}
