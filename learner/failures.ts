/** Classifies a learner's failure, from an error and its causes, by who can resolve it. */
import { ManifestError } from "../crds/trainingrun.ts";
import { EXIT_STATUS, type FailureKind } from "../proto/exit-status.ts";
import { ModelError } from "./engine/index.ts";
import { RolloutError } from "./rollout/errors.ts";
import { TaskError } from "./tasks/errors.ts";

/** Longest chain of causes; also bounds a circular chain. */
const MOST_CAUSES = 16;

/** Kinds by an error's `code`: of Node, of the system, and of longrun. */
const CODES: Record<string, FailureKind> = {
  ...kindOf("volumeFull", "ENOSPC EDQUOT diskFull"),
  ...kindOf("resource", "ENOMEM EMFILE ENFILE ERR_WORKER_OUT_OF_MEMORY ERR_MEMORY_ALLOCATION_FAILED"),
  // Disks and mounts.
  ...kindOf("infrastructure", "EIO EROFS ESTALE EREMOTEIO ENODEV ENXIO EUCLEAN readOnly fenced busy"),
  // The mounted manifest is empty; the controller writes it again.
  ...kindOf("infrastructure", "emptied"),
  // Networks.
  ...kindOf("infrastructure", "ECONNREFUSED ECONNRESET ECONNABORTED ETIMEDOUT EPIPE ENOTCONN"),
  ...kindOf("infrastructure", "ENETUNREACH ENETDOWN EHOSTUNREACH EHOSTDOWN EAI_AGAIN"),
};

/** Kinds by SQLite's result code, https://www.sqlite.org/rescode.html; the last byte is the primary code. */
const SQLITE_CODES: Record<number, FailureKind> = {
  7: "resource", // NOMEM
  8: "infrastructure", // READONLY
  10: "infrastructure", // IOERR
  13: "volumeFull", // FULL
  14: "infrastructure", // CANTOPEN
  4874: "volumeFull", // IOERR_SHMSIZE: the index of the write-ahead log could not grow
};

/** Kinds by words in the message, because ONNX Runtime, CUDA and V8 give no code. The first match counts. */
const WORDS: readonly [pattern: RegExp, kind: FailureKind][] = [
  [/out of memory|failed to allocate memory|GPU's memory is full|CUDA failure 2\b|bad_alloc/i, "resource"],
  [/array buffer allocation failed|invalid array buffer length/i, "resource"],
  [
    /CUDA failure|CUDA error|CUDNN failure|CUBLAS failure|no CUDA-capable device|the driver finds no GPU/i,
    "infrastructure",
  ],
];
/** Only messages of these errors are searched for words: messages of other errors may quote a program or a file. */
const SPEAKERS = ["GraphError", "EngineError", "RangeError"];

/** The learner's progress: the run's first start, a later start, or training. */
export type RunStage = "firstStart" | "restart" | "training";

/** Codes that are bad input at a start, because the spec requires too much: the address, the memory. */
const INPUT_AT_START = ["listen", "memory"];

export function failureKind(error: unknown, stage: RunStage): FailureKind {
  const chain = causesOf(error);
  for (const at of chain) {
    const { code, errcode } = at as { code?: unknown; errcode?: unknown };
    const known =
      (typeof code === "string" ? CODES[code] : undefined) ??
      (typeof errcode === "number" ? (SQLITE_CODES[errcode] ?? SQLITE_CODES[errcode & 0xff]) : undefined);
    if (known) return known;
  }
  // A device that never existed is bad input; one that existed is lost.
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

/** @param stay whether a kubelet restarts the process. `longrun run` only knows 1 (failed), 2 (bad input) and 73 (a full disk) */
export function exitStatusOf(error: unknown, stage: RunStage, stay: boolean): number {
  const kind = failureKind(error, stage);
  if (stay) return EXIT_STATUS[kind];
  // Nothing can be written to a full disk, not even the failure, so only the status reports it.
  if (kind === "volumeFull") return EXIT_STATUS.volumeFull;
  const mendable = stage !== "training" && (kind === "input" || codeOf(error) === "device");
  return mendable ? EXIT_STATUS.input : EXIT_STATUS.fault;
}

function codeOf(error: unknown): string {
  return (error as { code?: string } | undefined)?.code ?? "";
}

const isBadInput = (error: Error): boolean =>
  [ManifestError, TaskError, ModelError, RolloutError].some((type) => error instanceof type);

function causesOf(error: unknown): Error[] {
  const chain: Error[] = [];
  for (let at = error; at instanceof Error && chain.length < MOST_CAUSES; at = at.cause) chain.push(at);
  return chain;
}

function kindOf(kind: FailureKind, codes: string): Record<string, FailureKind> {
  return Object.fromEntries(codes.split(" ").map((code) => [code, kind]));
}
