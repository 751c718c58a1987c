/**
 * From a zygote's frames to values. A zygote may have been taken over by a program: every number, text and size is checked,
 * and what makes no sense is an error, upon which the sandbox is given up.
 */
import { availableParallelism, cpus, totalmem } from "node:os";
import type { IsolationLevel } from "../proto/isolation.ts";
import { ActorError } from "./errors.ts";
import type { Frame } from "./frames.ts";

const LARGEST_STATUS = 255;
const LARGEST_SIGNAL = 64;
const MOST_MODULES = 64;
const MOST_GPUS = 64;
/** JSON of any frame but the first, which lists packages. The largest frame is X, whose report has at most 4 KiB. */
const LARGEST_JSON_BYTES = 64 * 1024;
const LONGEST_REASON = 600;
/** The machine's processors: a container's zygote may use more of them than the supervisor's container allows us. */
const PROCESSORS = Math.max(cpus().length, availableParallelism());

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

export function parseHello({ kind, payload }: Frame, level: IsolationLevel): SandboxInfo {
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
export function parseEnd(payload: Buffer, seen: number, most: number): RunEnd {
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

export function parseJson(payload: Buffer, mostBytes = LARGEST_JSON_BYTES): Record<string, unknown> {
  if (payload.length > mostBytes) throw new Error(`JSON of ${payload.length} bytes`);
  const value: unknown = JSON.parse(payload.toString());
  if (typeof value !== "object" || value === null) throw new Error("JSON that is no object");
  return value as Record<string, unknown>;
}

export function amount(value: unknown): number {
  if (typeof value === "number" && Number.isFinite(value) && value >= 0) return value;
  throw new Error(`not an amount: ${typeof value === "object" ? "an object" : String(value).slice(0, 50)}`);
}

/** No more than all processors can have worked. */
export function parseCpuSeconds(value: unknown, seconds: number): number {
  return Math.min(amount(value), seconds * PROCESSORS);
}

/** No more than the machine has. */
export function parseMemoryBytes(value: unknown): number {
  return Math.min(amount(value), totalmem());
}

function parseCode(value: unknown, largest: number): number {
  if (Number.isInteger(value) && amount(value) <= largest) return value as number;
  throw new Error(`not a number from 0 to ${largest}: ${typeof value === "number" ? value : typeof value}`);
}

/** Text of a zygote's, or the message of an error: one line, and not a long one. */
export function oneLine(said: unknown): string {
  const text = said instanceof Error ? said.message : String(said);
  return text.slice(0, LONGEST_REASON).replace(/\p{Cc}+/gu, " ");
}
