import { ActorError } from "./errors.ts";

/** What one execution may use. */
export interface Limits {
  timeoutSeconds: number;
  memoryBytes: number;
  /** A program that prints more is stopped. */
  outputBytes: number;
  /** Of the output, this many first and as many last bytes are kept. */
  keptOutputBytes: number;
  /** Of scratch, /tmp and /dev/shm together. */
  scratchBytes: number;
  scratchFiles: number;
  /** Threads count as well. */
  processes: number;
  submissionBytes: number;
}

/** The defaults of a TrainingRun's tasks. */
export const DEFAULT_LIMITS: Limits = {
  timeoutSeconds: 600,
  memoryBytes: 4 * 1024 ** 3,
  outputBytes: 4 * 1024 ** 2,
  keptOutputBytes: 16 * 1024,
  scratchBytes: 1024 ** 3,
  scratchFiles: 10_000,
  processes: 64,
  submissionBytes: 256 * 1024 ** 2,
};

/** Limits from unknown JSON; what is absent has its default. Throws ActorError `arguments`. */
export function parseLimits(value: unknown): Limits {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ActorError("arguments", 'limits: must be a JSON object such as {"timeoutSeconds": 60}');
  const limits = { ...DEFAULT_LIMITS };
  for (const [name, given] of Object.entries(value)) {
    if (!Object.hasOwn(limits, name))
      throw new ActorError("arguments", `limits.${name}: no such limit; there are ${Object.keys(limits).join(", ")}`);
    const whole = name !== "timeoutSeconds";
    if (typeof given !== "number" || !(given > 0) || !Number.isFinite(given) || (whole && !Number.isSafeInteger(given)))
      throw new ActorError(
        "arguments",
        `limits.${name}: is ${JSON.stringify(given)}, must be a ${whole ? "whole " : ""}number above 0`,
      );
    limits[name as keyof Limits] = given;
  }
  return limits;
}

/** Limits from a lease, where 0 and absent mean the default. */
export function limitsOf(given: Partial<Record<keyof Limits, unknown>>): Limits {
  const limits = { ...DEFAULT_LIMITS };
  // Number(): 64-bit fields are objects where protobufjs finds the package `long`.
  for (const name of Object.keys(limits) as (keyof Limits)[]) limits[name] = Number(given[name] ?? 0) || limits[name];
  return limits;
}
