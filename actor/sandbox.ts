/**
 * The supervisor's side of one zygote: starts it or connects to it, has it run one program at a time, and takes all that
 * comes from it as hostile bytes: framed, bounded, checked, never a path.
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
  parseHello,
  parseJson,
  parseMemoryBytes,
  type RunEnd,
  type SandboxInfo,
} from "./zygote-messages.ts";
import { type ProcessOptions, spawnZygote } from "./zygote-process.ts";
import { connectZygote, type SocketOptions } from "./zygote-socket.ts";

const SIGKILL = 9;
/** Read of one sandbox in a turn of the event loop: a program that prints without end must not keep other slots waiting. */
const MOST_BYTES_A_TURN = 128 << 10;
/** A zygote sends two progress frames a second. */
const MOST_PROGRESS_PER_SECOND = 10;

/** How long a zygote may take for each step; one that takes longer is given up, and its execution is lost. */
export interface Deadlines {
  /** From a request to the program's start. */
  programStartSeconds: number;
  /** From the kill to the end of the program. */
  killSeconds: number;
  /** From the end of the program to the end of its submission, with the cleaning up. */
  submissionSeconds: number;
}

export const DEFAULT_DEADLINES: Deadlines = { programStartSeconds: 30, killSeconds: 10, submissionSeconds: 60 };

/** A zygote of our own, or one in a container. */
export type SandboxOptions = (ProcessOptions | SocketOptions) & {
  /** Task name -> directory with its public data, as the zygote sees it. */
  inputs: Record<string, string>;
  /** Processors that the sandbox is bound to; absent: those of the actor. */
  cpus?: number[];
  /** Threads that numerical libraries use; a zygote that listens goes by its container's limit. */
  cpusPerSlot?: number;
  /** Hides newer Landlock versions of the kernel; for tests. */
  landlockAbi?: number;
  /** Numbers of the GPUs that programs may use; absent: none, or with a zygote that listens those of its container. */
  gpus?: number[];
  /** Where GPUs are looked for; for tests. */
  gpuPlaces?: { directory: string; driver: string };
  /** Longest wait for a zygote to be there with its packages imported. */
  startSeconds?: number;
  /** What is absent has its default. */
  deadlines?: Partial<Deadlines>;
};

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

interface Running {
  request: RunRequest;
  handlers: RunHandlers;
  resolve: (end: RunEnd) => void;
  reject: (error: ActorError) => void;
  /** Milliseconds of the monotonic clock, as `startedAt`, which is when we were told of the start. */
  requestedAt: number;
  startedAt?: number;
  progressFrames: number;
  killed: boolean;
  end?: RunEnd;
  /** Once it was announced; empty where there is none. Of it, `receivedBytes` have come. */
  submission?: Buffer;
  receivedBytes: number;
}

export class Sandbox {
  readonly info: SandboxInfo;
  readonly inputs: Record<string, string>;
  /** Settles when the zygote is gone. */
  readonly ended: Promise<void>;
  /** We ended it while it worked. */
  stopped = false;
  readonly #zygote: Zygote;
  readonly #control: Duplex;
  readonly #reader: FrameReader;
  readonly #deadlines: Deadlines;
  #running?: Running;
  #turnBytes = 0;
  /** Of the control group, before the program that runs. */
  #oomKills = 0;
  #watchdog?: NodeJS.Timeout;
  #dead?: ActorError;

  /** Waits until there is a zygote that has imported its packages. Throws ActorError `isolation` or `sandbox`. */
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

  /** Of the process that was started, if one was. */
  get pid(): number | undefined {
    return this.#zygote.pid;
  }

  /** False once the zygote is gone or was given up. */
  get alive(): boolean {
    return this.#dead === undefined;
  }

  /** Why it is not alive. */
  get fault(): ActorError | undefined {
    return this.#dead;
  }

  /** Runs one program; one at a time. Rejects with ActorError `sandbox` if the sandbox breaks: not the program's fault. */
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
      const { program, ...rest } = request;
      const { memoryBytes, scratchBytes, processes } = request.limits;
      // At `namespaces` scratch is memory, too.
      this.#zygote.group?.limit({ memoryBytes, filesBytes: scratchBytes, processes });
      this.#oomKills = this.#zygote.group?.oomKills() ?? 0;
      const header = { ...rest, programBytes: program.length };
      this.#control.write(Buffer.concat([encodeFrame("R", JSON.stringify(header)), program]));
      this.#expect("the start", this.#deadlines.programStartSeconds);
    });
  }

  /** Kills what runs, with SIGKILL. Returns false where the program has ended already. */
  kill(): boolean {
    if (!this.#running || this.#running.end) return false;
    // Once: whoever floods us with output must not put off its deadline, nor fill our side of the socket.
    if (!this.#running.killed) {
      this.#running.killed = true;
      this.#control.write(encodeFrame("K"));
      this.#expect("the end of a killed program", this.#deadlines.killSeconds);
    }
    return true;
  }

  /** It works and is not to be trusted to: ends it, as if it had broken. */
  giveUp(why: string): void {
    this.#fail(why);
  }

  /** Ends the zygote and everything in it, and removes its directory; one that listens does that itself. */
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

  /** The order: S, then O and P, then X, then O (what was left of it), then E, then D, then F. */
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
      const { bytes, refused, present } = parseJson(payload);
      const expectedBytes = present === true ? amount(bytes) : 0;
      if (expectedBytes > running.request.limits.submissionBytes) throw new Error("submission above its limit");
      if (typeof refused === "string") end.submissionRefused = refused.slice(0, 200);
      // In one piece: a piece for each frame would cost more than what is in the frames. Memory is taken as it is written to.
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
      zygote.control.pause(); // until there is somebody for the next
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
