/**
 * Parses a zygote's frames. A program may control the zygote, so every number, text and size is checked. An invalid value is an
 * error, and the sandbox is then given up.
 */
import { availableParallelism, cpus, totalmem } from "node:os";
import type { IsolationLevel } from "../proto/isolation.ts";
import { ActorError } from "./errors.ts";
import type { Frame } from "./frames.ts";

const LARGEST_STATUS = 255;
const LARGEST_SIGNAL = 64;
const MOST_MODULES = 64;
const MOST_GPUS = 64;
const MOST_FILES_LEFT = 8;
/** Largest JSON in a frame, except the first frame, which lists packages. The largest such frame is X, whose report has at most 4 KiB. */
const LARGEST_JSON_BYTES = 64 * 1024;
const LONGEST_REASON = 600;
/** Number of the machine's processors: a container's zygote may use more processors than the supervisor's container. */
const PROCESSORS = Math.max(cpus().length, availableParallelism());

/** Isolation that the zygote found and applied. */
export interface SandboxInfo {
  level: IsolationLevel;
  /** 0: none. */
  landlockAbi: number;
  /** Programs run as another user than the supervisor. */
  ownUser: boolean;
  /** Programs have a /proc, with their own processes only. */
  procMounted: boolean;
  /** The kernel limits the number of processes. */
  processesCounted: boolean;
  /** Version of the slot's own control group. Absent: it has none. */
  controlGroup?: 1 | 2;
  versions: Record<string, string>;
  /** Requested modules that are imported. */
  warm: string[];
  /** GPUs that programs can use, by the names of their files, e.g. `nvidia0`. */
  gpus: string[];
  /** Versions of all installed packages, by normalized name. */
  packages: Record<string, string>;
  residentBytes: number;
  /** Most memory that a program can use under the container's limit. Absent: only the program's own limit counts. */
  memoryBytes?: number;
  /** Directory of a listening zygote's socket, as the zygote sees it. */
  directory?: string;
}

const KILL_REASONS = ["memory", "processes", "scratch", "openFiles", "locks"] as const;
type KillReason = (typeof KILL_REASONS)[number];

/** How a program ended, according to the sandbox. */
export interface RunEnd {
  status: number;
  signal: number;
  /** Time between the start and the reaping of the program, by the supervisor's monotonic clock. */
  durationSeconds: number;
  cpuSeconds: number;
  peakMemoryBytes: number;
  /** The limit for which the zygote killed the program. Absent: the zygote did not kill it. */
  killedFor?: KillReason;
  /** The disk below scratch was full, but this program had not filled it. */
  diskFull?: boolean;
  /** The Python exception that ended the program, according to the program. */
  exception?: { type: string; line?: number; memory: boolean };
  submission?: Buffer;
  submissionRefused?: string;
  /** Paths of files that a program without a submission left. */
  filesLeft?: string[];
}

export function parseHello({ kind, payload }: Frame, level: IsolationLevel): SandboxInfo {
  if (kind !== "H") throw new ActorError("sandbox", `sandbox: unexpected first frame ${JSON.stringify(kind)}`);
  const hello = parseJson(payload, payload.length);
  if (typeof hello.error === "string") throw new ActorError("isolation", oneLine(hello.error).slice(0, 500));
  if (hello.level !== level) throw new ActorError("sandbox", `sandbox: the zygote did not apply ${level}`);
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

/** Returns the names of files that a program left, which the program chose. */
export function parseFilesLeft(names: unknown): string[] {
  return Object.values(parseTexts(names, MOST_FILES_LEFT)).map(oneLine);
}

/** Returns the texts of an object or a list; a value that is no text becomes empty. */
function parseTexts(texts: unknown, most: number): Record<string, string> {
  const entries = typeof texts === "object" ? Object.entries(texts ?? {}).slice(0, most) : [];
  return Object.fromEntries(
    entries.map(([name, text]) => [name.slice(0, 100), typeof text === "string" ? text.slice(0, 100) : ""]),
  );
}

/**
 * @param seen seconds since the supervisor read the start frame: too few if it had to wait for a processor. So the zygote's own count
 * is preferred, if there is one
 * @param most seconds since the request, an upper bound for the zygote's count
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
    // The report is missing or invalid: the program wrote to its descriptor.
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

/** Returns processor seconds, at most what all processors can use in `seconds`. */
export function parseCpuSeconds(value: unknown, seconds: number): number {
  return Math.min(amount(value), seconds * PROCESSORS);
}

/** Returns bytes, at most the machine's memory. */
export function parseMemoryBytes(value: unknown): number {
  return Math.min(amount(value), totalmem());
}

function parseCode(value: unknown, largest: number): number {
  if (Number.isInteger(value) && amount(value) <= largest) return value as number;
  throw new Error(`not a number from 0 to ${largest}: ${typeof value === "number" ? value : typeof value}`);
}

/** Returns a zygote's text, or an error's message, as one short line. */
export function oneLine(said: unknown): string {
  const text = said instanceof Error ? said.message : String(said);
  return text.slice(0, LONGEST_REASON).replace(/\p{Cc}+/gu, " ");
}
