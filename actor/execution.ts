/** One execution, from start to result. */
import type { Outcome, Result } from "../proto/execution.ts";
import { MarkerParser } from "./markers.ts";
import { OutputCapture } from "./output.ts";
import type { RunRequest, Sandbox } from "./sandbox.ts";
import type { RunEnd } from "./zygote-messages.ts";

const SIGKILL = 9;

export interface ExecutionRequest extends RunRequest {
  /** 32 hexadecimal digits. If empty, no line counts as a marker. */
  nonce: string;
}

export interface ExecutionResult extends Result {
  /** The first and last part of the output, without the nonce. */
  terminalOutput: Buffer;
  submission?: Buffer;
  submissionRefused?: string;
  /** The actor's slot, from 0. Absent if the attempt never got a slot. */
  slot?: number;
  /** For `lost`: the sandbox ended by itself while this program ran. */
  sandboxBroke?: boolean;
  /** For `lost`: the actor was asked to stop and gives the attempt back. */
  disrupted?: boolean;
}

/** Returns the share of the duration in which the program used no processor, 0 to 1. */
export function idleShareOf({ cpuSeconds, durationSeconds }: ExecutionResult): number {
  return durationSeconds > 0 ? Math.max(0, 1 - cpuSeconds / durationSeconds) : 0;
}

export interface Progress {
  elapsedSeconds: number;
  cpuSeconds: number;
  memoryBytes: number;
  markers: string[];
}

interface ExecutionOptions {
  /** Kills the program; the result is `lost`. */
  signal?: AbortSignal;
  onProgress?: (progress: Progress) => void;
}

/**
 * Runs a program in a sandbox and returns its result. Every behaviour of the program is a value. A broken sandbox is a value too, `lost`,
 * because each execution must have a result.
 */
export async function execute(
  sandbox: Sandbox,
  request: ExecutionRequest,
  options: ExecutionOptions = {},
): Promise<ExecutionResult> {
  const { limits } = request;
  let startedAt = performance.now();
  const elapsedSeconds = () => (performance.now() - startedAt) / 1000;

  // Why the program was killed. Only the first reason counts, because later ones are consequences.
  let killReason: "timeout" | "output" | "revoked" | undefined;
  const kill = (reason: typeof killReason) => {
    killReason ??= reason;
    sandbox.kill();
  };

  // Output: limit, markers, the parts to keep.
  const capture = new OutputCapture(limits.keptOutputBytes);
  const markers = new MarkerParser(request.nonce, (cleaned) => capture.push(cleaned));
  let outputBytes = 0;
  const onOutput = (chunk: Buffer) => {
    const room = Math.max(0, limits.outputBytes - outputBytes);
    outputBytes += chunk.length;
    if (room > 0) markers.push(chunk.subarray(0, room), elapsedSeconds());
    if (outputBytes > limits.outputBytes) kill("output");
  };

  let timeout: NodeJS.Timeout | undefined;
  let started = false;
  const onStart = () => {
    started = true;
    startedAt = performance.now();
    const stop = () => {
      if (sandbox.kill()) killReason ??= "timeout"; // the time after its end is not the program's time
    };
    timeout = setTimeout(stop, limits.timeoutSeconds * 1000);
    if (options.signal?.aborted) kill("revoked");
  };
  const onAbort = () => kill("revoked");
  options.signal?.addEventListener("abort", onAbort);
  const onProgress = (used: { cpuSeconds: number; memoryBytes: number }) =>
    options.onProgress?.({
      elapsedSeconds: elapsedSeconds(),
      ...used,
      markers: markers.seen.map((marker) => marker.name),
    });

  let end: RunEnd | undefined;
  let broken = "";
  try {
    end = await sandbox.run(request, { onStart, onOutput, onProgress });
  } catch (error) {
    broken = (error as Error).message;
  } finally {
    clearTimeout(timeout);
    options.signal?.removeEventListener("abort", onAbort);
  }
  markers.end(elapsedSeconds());

  const { outcome, detail } = judge(end, killReason, limits.timeoutSeconds, broken);
  // The restart checks whether the disk has room again.
  if (outcome === "lost" && end?.diskFull) sandbox.giveUp(detail);
  const sandboxBroke = outcome === "lost" && started && !end && killReason === undefined && !sandbox.stopped;
  return {
    outcome,
    exitStatus: end?.status ?? 0,
    signal: end?.signal ?? 0,
    durationSeconds: end?.durationSeconds ?? elapsedSeconds(),
    cpuSeconds: end?.cpuSeconds ?? 0,
    peakMemoryBytes: end?.peakMemoryBytes ?? 0,
    markers: markers.seen,
    forgedMarkers: markers.forged,
    imitatedMarkers: markers.imitated,
    terminalOutput: capture.bytes(),
    outputBytes,
    submission: end?.submission,
    submissionRefused: end?.submissionRefused,
    detail,
    sandboxBroke,
  };
}

/** Returns the result of an execution that could not run and whose program is not to blame. */
export function lostResult(detail: string): ExecutionResult {
  return {
    outcome: "lost",
    exitStatus: 0,
    signal: 0,
    durationSeconds: 0,
    cpuSeconds: 0,
    peakMemoryBytes: 0,
    markers: [],
    forgedMarkers: 0,
    imitatedMarkers: 0,
    terminalOutput: Buffer.alloc(0),
    outputBytes: 0,
    detail,
  };
}

/**
 * Determines the outcome: first by who killed the program and why, otherwise by how the program ended.
 *
 * An uncaught MemoryError is `outOfMemory`: the address-space limit raised it, and the watch would have killed the program a moment later.
 * A program can raise it by hand but gains nothing, because both outcomes are failures.
 */
export function judge(
  end: RunEnd | undefined,
  killReason: "timeout" | "output" | "revoked" | undefined,
  timeoutSeconds: number,
  broken = "",
): { outcome: Outcome; detail: string } {
  if (killReason === "revoked") return { outcome: "lost", detail: "revoked" };
  // A program that ended by itself just before the signal came has not timed out.
  if (killReason === "timeout" && (!end || end.signal === SIGKILL))
    return { outcome: "timedOut", detail: `stopped after ${timeoutSeconds} s` };
  if (killReason === "output") return { outcome: "outputLimit", detail: "printed more than allowed" };
  if (!end) return { outcome: "lost", detail: broken };
  if (end.killedFor === "memory") return { outcome: "outOfMemory", detail: "used more memory than allowed" };
  if (end.killedFor === "processes") return { outcome: "failed", detail: "more processes and threads than allowed" };
  if (end.killedFor === "openFiles") return { outcome: "failed", detail: "more open files than allowed" };
  if (end.killedFor === "locks") return { outcome: "failed", detail: "more locks on files than allowed" };
  if (end.killedFor === "scratch") return { outcome: "failed", detail: "more files or bytes in scratch than allowed" };
  if (end.signal > 0) return { outcome: "failed", detail: `ended by signal ${end.signal}` };
  if (end.status === 0) return { outcome: "completed", detail: describeMissing(end) };
  if (end.diskFull) return { outcome: "lost", detail: "the disk below the sandbox's scratch directory is full" };
  if (end.exception?.memory) return { outcome: "outOfMemory", detail: describe(end.exception) };
  return { outcome: "failed", detail: end.exception ? describe(end.exception) : `exit status ${end.status}` };
}

/** Returns "", or which files there are instead of the submission. */
function describeMissing({ submission, submissionRefused, filesLeft }: RunEnd): string {
  if (submission || submissionRefused !== undefined || filesLeft === undefined) return "";
  const found = filesLeft.length === 0 ? "no file" : filesLeft.map((path) => JSON.stringify(path)).join(", ");
  return `no submission.csv in the program's directory; found ${found}`;
}

function describe({ type, line }: { type: string; line?: number }): string {
  return line === undefined ? type : `${type} in line ${line}`;
}
