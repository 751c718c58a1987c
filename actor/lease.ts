/** Turns a lease into a request. The learner is trusted but may have faults: an invalid lease is refused, with field name and value. */
import type { longrun } from "../proto/service.ts";
import { ActorError } from "./errors.ts";
import type { ExecutionRequest } from "./execution.ts";
import { limitsOf } from "./limits.ts";

export type Attempt = { execution: string; number: number; fence: string };
export type Lease = longrun.v1alpha1.Lease.$Properties & { attempt: Attempt };

const LONGEST_TASK = 253;
const LARGEST_SEED = 2 ** 32 - 1;

/** Returns undefined if the lease names no attempt: the learner could not take a result for it. */
export function parseAttempt(attempt: longrun.v1alpha1.Attempt.$Properties | null | undefined): Attempt | undefined {
  const { execution, number, fence } = attempt ?? {};
  if (!execution || execution.length > 200 || !number || !/^\d{1,15}$/.test(fence ?? "")) return undefined;
  return { execution, number, fence: fence! };
}

/** Throws ActorError `lease`. */
export function requestOf({ task, program, markerNonce, limits, seed }: Lease): ExecutionRequest {
  const refuse = (name: string, value: unknown, must: string) => {
    throw new ActorError("lease", `lease: ${name} is ${JSON.stringify(value).slice(0, 80)}, must be ${must}`);
  };
  if (!task || task.length > LONGEST_TASK) refuse("task", task ?? "", `a name of 1 to ${LONGEST_TASK} characters`);
  if (!/^([0-9a-f]{32})?$/.test(markerNonce ?? ""))
    refuse("markerNonce", markerNonce, "empty or 32 lower-case hexadecimal digits");
  // Number(): 64-bit fields are objects where protobufjs finds the package `long`.
  const number = Number(seed ?? 0);
  if (!Number.isInteger(number) || number < 0 || number > LARGEST_SEED)
    refuse("seed", number, `a whole number from 0 to ${LARGEST_SEED}`);
  return {
    task: task!,
    program: program ?? new Uint8Array(),
    nonce: markerNonce ?? "",
    limits: limitsOf(limits ?? {}),
    seed: number,
  };
}
