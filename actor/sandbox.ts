/**
 * The supervisor's side of one zygote: starts it or connects to it, has it run one program at a time, and takes all that
 * comes from it as hostile bytes: framed, bounded, checked, never a path.
 */
import { availableParallelism, cpus, totalmem } from "node:os";
import type { Duplex } from "node:stream";
import type { ControlGroup } from "./control-group.ts";
import { ActorError } from "./errors.ts";
import { encodeFrame, type Frame, FrameReader } from "./frames.ts";
import type { Limits } from "./limits.ts";
import { type ProcessOptions, spawnZygote } from "./zygote-process.ts";
import { connectZygote, type SocketOptions } from "./zygote-socket.ts";

const SIGKILL = 9;
/** Read of one sandbox in a turn of the event loop: a program that prints without end must not keep other slots waiting. */
const MOST_BYTES_A_TURN = 128 << 10;
const LARGEST_STATUS = 255;
const LARGEST_SIGNAL = 64;
const MOST_MODULES = 64;
const MOST_GPUS = 64;
/** Of a frame that is JSON, but for the first one: the largest, X, has a report of at most 4 KiB in it. */
const LARGEST_JSON_BYTES = 64 * 1024;
/** A zygote sends two progress frames a second. */
const MOST_PROGRESS_PER_SECOND = 10;
const LONGEST_REASON = 600;
/** Of the machine: a container's zygote may use more of them than we may. */
const PROCESSORS = Math.max(cpus().length, availableParallelism());

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

export type IsolationLevel = "namespaces" | "landlock" | "none";

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

/** A zygote and the way to it. */
export interface Zygote {
  readonly control: Duplex;
  /** Settles when it is gone. */
  readonly ended: Promise<void>;
  /** Of our own one's process; with namespaces the zygote is its child. */
  readonly pid?: number;
  /** Where the kernel holds what programs use; absent: it does not, or in a container's group. */
  readonly group?: ControlGroup;
  /** For a person. */
  whyEnded(): string;
  /** Ends it with everything in it. */
  end(): void;
  /** Once it is gone, what it left on our disk. */
  cleanUp(): Promise<void>;
}

/** What the zygote found and applied. */
export interface SandboxInfo {
  level: IsolationLevel;
  /** 0: none. */
  landlockAbi: number;
  /** Programs run as another user than the supervisor. */
  ownUser: boolean;
  /** Programs have a /proc, with their own processes only. */
  procMounted: boolean;
  /** The kernel holds the number of processes. */
  processesCounted: boolean;
  /** Version of the control group that the slot has to itself; absent: none. */
  controlGroup?: 1 | 2;
  versions: Record<string, string>;
  /** Modules that are imported, of those that were to be. */
  warm: string[];
  /** GPUs that programs can use, by the names of their files, e.g. `nvidia0`. */
  gpus: string[];
  /** Versions of all that the environment has, by normalized name. */
  packages: Record<string, string>;
  residentBytes: number;
  /** The most memory that a program can use, because of the container's limit; absent: only its own limit counts. */
  memoryBytes?: number;
  /** Where a zygote that listens has its socket, as it sees it. */
  directory?: string;
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

const KILL_REASONS = ["memory", "processes", "scratch", "openFiles", "locks"] as const;
export type KillReason = (typeof KILL_REASONS)[number];

/** How a program ended, as the sandbox tells it. */
export interface RunEnd {
  status: number;
  signal: number;
  /** By our monotonic clock, from start to reaped. */
  durationSeconds: number;
  cpuSeconds: number;
  peakMemoryBytes: number;
  /** The limit for which the zygote killed it, if it did. */
  killedFor?: KillReason;
  /** The disk below scratch was full, and not by this program. */
  diskFull?: boolean;
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

function parseHello({ kind, payload }: Frame, level: IsolationLevel): SandboxInfo {
  if (kind !== "H") throw new ActorError("sandbox", `sandbox: unexpected first frame ${JSON.stringify(kind)}`);
  const hello = parseJson(payload, payload.length);
  if (typeof hello.error === "string") throw new ActorError("isolation", oneLine(hello.error).slice(0, 500));
  if (hello.level !== level) throw new ActorError("sandbox", `sandbox: it was to apply ${level} and did not`);
  return {
    level,
    landlockAbi: amount(hello.landlockAbi),
    ownUser: hello.ownUser === true,
    procMounted: hello.procMounted === true,
    processesCounted: hello.processesCounted === true,
    versions: parseTexts(hello.versions, 32),
    packages: parseTexts(hello.packages, 2048),
    warm: Object.values(parseTexts(hello.warm, MOST_MODULES)),
    gpus: Object.values(parseTexts(hello.gpus, MOST_GPUS)),
    residentBytes: parseMemoryBytes(hello.residentBytes),
    ...(hello.memoryBytes != null && { memoryBytes: amount(hello.memoryBytes) }),
    ...(typeof hello.directory === "string" && { directory: hello.directory.slice(0, 1000) }),
  };
}

/** Of an object or a list; what is no text in it is left empty. */
function parseTexts(texts: unknown, most: number): Record<string, string> {
  const entries = typeof texts === "object" ? Object.entries(texts ?? {}).slice(0, most) : [];
  return Object.fromEntries(
    entries.map(([name, text]) => [name.slice(0, 100), typeof text === "string" ? text.slice(0, 100) : ""]),
  );
}

/**
 * @param seen seconds since we read of the start: too few where we had to wait for a processor until then. So the zygote's count, if
 * there is one, goes before it
 * @param most seconds since the request: the zygote cannot add more than the time in which it makes a program ready
 */
function parseEnd(payload: Buffer, seen: number, most: number): RunEnd {
  const told = parseJson(payload);
  const durationSeconds = Math.min(Math.max(seen, amount(told.seconds ?? 0)), most);
  const end: RunEnd = {
    status: parseCode(told.status, LARGEST_STATUS),
    signal: parseCode(told.signal, LARGEST_SIGNAL),
    durationSeconds,
    cpuSeconds: parseCpuSeconds(told.cpuSeconds, most),
    peakMemoryBytes: parseMemoryBytes(told.peakMemoryBytes),
  };
  const killedFor = KILL_REASONS.find((reason) => reason === told.killedFor);
  if (killedFor) end.killedFor = killedFor;
  if (told.diskFull === true) end.diskFull = true;
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

function parseJson(payload: Buffer, mostBytes = LARGEST_JSON_BYTES): Record<string, unknown> {
  if (payload.length > mostBytes) throw new Error(`JSON of ${payload.length} bytes`);
  const value: unknown = JSON.parse(payload.toString());
  if (typeof value !== "object" || value === null) throw new Error("JSON that is no object");
  return value as Record<string, unknown>;
}

function amount(value: unknown): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return value;
  throw new Error(`not an amount: ${typeof value === "object" ? "an object" : String(value).slice(0, 50)}`);
}

/** No more than all processors can have worked. */
function parseCpuSeconds(value: unknown, seconds: number): number {
  return Math.min(amount(value), seconds * PROCESSORS);
}

/** No more than the machine has. */
function parseMemoryBytes(value: unknown): number {
  return Math.min(amount(value), totalmem());
}

function parseCode(value: unknown, largest: number): number {
  if (Number.isInteger(value) && amount(value) <= largest) return value as number;
  throw new Error(`not a number from 0 to ${largest}: ${typeof value === "number" ? value : typeof value}`);
}

/** Text of a zygote's, or the message of an error: one line, and not a long one. */
function oneLine(said: unknown): string {
  const text = said instanceof Error ? said.message : String(said);
  return text.slice(0, LONGEST_REASON).replace(/\p{Cc}+/gu, " ");
}
