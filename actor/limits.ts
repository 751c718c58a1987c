import type { Limits } from "../proto/execution.ts";
import { ActorError } from "./errors.ts";

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

/** The most that a TrainingRun, and so a lease, may allow. The actor holds the submission and twice the kept output in memory. */
export const LARGEST_LIMITS: Limits = {
  timeoutSeconds: 7 * 24 * 3600,
  memoryBytes: 16 * 1024 ** 4,
  outputBytes: 1024 ** 3,
  keptOutputBytes: 1024 ** 2,
  scratchBytes: 16 * 1024 ** 4,
  scratchFiles: 10_000_000,
  processes: 65_536,
  submissionBytes: 16 * 1024 ** 3,
};

/** Parses limits from unknown JSON; absent ones have their defaults. Throws ActorError `arguments`. */
export function parseLimits(value: unknown): Limits {
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw new ActorError("arguments", 'limits: must be a JSON object such as {"timeoutSeconds": 60}');
  const limits = { ...DEFAULT_LIMITS };
  for (const [name, given] of Object.entries(value)) {
    if (!Object.hasOwn(limits, name))
      throw new ActorError("arguments", `limits.${name}: no such limit; there are ${Object.keys(limits).join(", ")}`);
    limits[name as keyof Limits] = parseLimit(name as keyof Limits, given);
  }
  return limits;
}

/** Returns the limits of a lease, in which 0 and absent mean the default. Throws ActorError `arguments`. */
export function limitsOf(given: Partial<Record<keyof Limits, unknown>>): Limits {
  const limits = { ...DEFAULT_LIMITS };
  for (const name of Object.keys(limits) as (keyof Limits)[]) {
    // Number(): 64-bit fields are objects where protobufjs finds the package `long`.
    const value = Number(given[name] ?? 0);
    if (value !== 0) limits[name] = parseLimit(name, value);
  }
  return limits;
}

function parseLimit(name: keyof Limits, given: unknown): number {
  const whole = name !== "timeoutSeconds";
  if (typeof given === "number" && given > 0 && given <= LARGEST_LIMITS[name] && (!whole || Number.isInteger(given)))
    return given;
  const value = typeof given === "number" ? given : JSON.stringify(given);
  const must = `a ${whole ? "whole " : ""}number above 0, at most ${LARGEST_LIMITS[name]}`;
  throw new ActorError("arguments", `limits.${name}: is ${value}, must be ${must}`);
}
