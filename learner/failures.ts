/** Why the learner failed: what an error, or what is beneath it, says of who can mend it. */

import { ManifestError } from "../crds/trainingrun.ts";
import { EXIT_STATUS, type FailureKind } from "../proto/exit-status.ts";
import { ModelError } from "./engine/model/errors.ts";
import { RolloutError } from "./rollout/errors.ts";
import { TaskError } from "./tasks/errors.ts";

/** No chain of causes is longer; one that refers to itself ends here. */
const MOST_CAUSES = 16;

/** Of errors by their `code`: Node's, the system's, and our own. */
const CODES: Record<string, FailureKind> = {
  ...of("volumeFull", "ENOSPC", "EDQUOT", "diskFull"),
  ...of("resource", "ENOMEM", "EMFILE", "ENFILE", "ERR_WORKER_OUT_OF_MEMORY", "ERR_MEMORY_ALLOCATION_FAILED"),
  // Disks and mounts.
  ...of(
    "infrastructure",
    "EIO",
    "EROFS",
    "ESTALE",
    "EREMOTEIO",
    "ENODEV",
    "ENXIO",
    "EUCLEAN",
    "readOnly",
    "fenced",
    "busy",
  ),
  // Networks.
  ...of("infrastructure", "ECONNREFUSED", "ECONNRESET", "ECONNABORTED", "ETIMEDOUT", "EPIPE", "ENOTCONN"),
  ...of("infrastructure", "ENETUNREACH", "ENETDOWN", "EHOSTUNREACH", "EHOSTDOWN", "EAI_AGAIN"),
};

/** Of SQLite's result codes, https://www.sqlite.org/rescode.html; the last byte is the primary code. */
const SQLITE_CODES: Record<number, FailureKind> = {
  7: "resource", // NOMEM
  8: "infrastructure", // READONLY
  10: "infrastructure", // IOERR
  13: "volumeFull", // FULL
  14: "infrastructure", // CANTOPEN
  4874: "volumeFull", // IOERR_SHMSIZE: the index of the write-ahead log could not grow
};

/** What ONNX Runtime, CUDA and V8 say in words alone. The first match counts. */
const WORDS: readonly [pattern: RegExp, kind: FailureKind][] = [
  [/out of memory|failed to allocate memory|GPU's memory is full|CUDA failure 2\b|bad_alloc/i, "resource"],
  [/array buffer allocation failed|invalid array buffer length/i, "resource"],
  [
    /CUDA failure|CUDA error|CUDNN failure|CUBLAS failure|no CUDA-capable device|the driver finds no GPU/i,
    "infrastructure",
  ],
];
/** Whose words are read: in other errors a program or a file may speak. */
const SPEAKERS = ["GraphError", "EngineError", "RangeError"];

/** How far the learner is: a run's first start, a start where it has trained before, or the loop. */
export type Stage = "firstStart" | "restart" | "training";

/** What a start fails of that the spec asked for: the address, the memory. */
const INPUT_AT_START = ["listen", "memory"];

export function failureKind(error: unknown, stage: Stage): FailureKind {
  const chain = causesOf(error);
  for (const at of chain) {
    const { code, errcode } = at as { code?: unknown; errcode?: unknown };
    const known =
      (typeof code === "string" ? CODES[code] : undefined) ??
      (typeof errcode === "number" ? (SQLITE_CODES[errcode] ?? SQLITE_CODES[errcode & 0xff]) : undefined);
    if (known) return known;
  }
  // A device that was never there is bad input; one that was is lost.
  const lost = stage === "firstStart" ? "input" : "infrastructure";
  for (const at of chain)
    if (SPEAKERS.includes(at.name)) {
      const [, kind] = WORDS.find(([pattern]) => pattern.test(at.message)) ?? [];
      if (kind !== undefined) return kind === "infrastructure" ? lost : kind;
    }
  if (chain.some(isBadInput)) return "input";
  const code = codeOf(error);
  if (code === "device") return lost;
  return stage !== "training" && INPUT_AT_START.includes(code) ? "input" : "fault";
}

/** @param stay whether a kubelet restarts the process: `longrun run` knows 1, failed, and 2, bad input, alone */
export function exitStatusOf(error: unknown, stage: Stage, stay: boolean): number {
  const kind = failureKind(error, stage);
  if (stay) return EXIT_STATUS[kind];
  // Nothing can be written to a full disk, not even that the run failed; only a person can make room.
  const mendable = kind === "volumeFull" || (stage !== "training" && (kind === "input" || codeOf(error) === "device"));
  return mendable ? EXIT_STATUS.input : EXIT_STATUS.fault;
}

function codeOf(error: unknown): string {
  return (error as { code?: string } | undefined)?.code ?? "";
}

function isBadInput(error: Error): boolean {
  return [ManifestError, TaskError, ModelError, RolloutError].some((type) => error instanceof type);
}

function causesOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let at = error; at instanceof Error && chain.length < MOST_CAUSES; at = at.cause) chain.push(at);
  return chain;
}

function of(kind: FailureKind, ...codes: string[]): Record<string, FailureKind> {
  return Object.fromEntries(codes.map((code) => [code, kind]));
}
