/** Results of a reconcile's steps, and the handling of their errors. */

import type { Run } from "./desired/names.ts";
import { ApiError } from "./kube/errors.ts";
import type { Finding } from "./status/conditions.ts";
import { writeBlocker } from "./writes/refusals.ts";

/** `settle` of context.ts applies it. */
export interface StepResult<Memory = object> {
  /** The changed fields of the part's memory. */
  remember?: Partial<Memory> | undefined;
  /** A call to start in the background. */
  call?: Call<Memory> | undefined;
  /** Seconds until the next reconcile, even if nothing changes. */
  againSeconds?: number | undefined;
  /** Why the API server refused the step; a person must act. */
  refused?: Finding | undefined;
  /** An error that a retry may resolve, after part of the step was done. */
  error?: unknown;
}

/** A call to the learner, or to a webhook. */
export interface Call<Memory = object> {
  /** At most one call of each kind runs at a time; another is not started. */
  kind: string;
  /** Returns the changed fields of the part's memory. */
  work: () => Promise<Partial<Memory>>;
}

/** Runs a step. @returns its result, with `refused` if a person must act @throws Error that a retry may resolve */
export async function tryStep<Result extends StepResult>(
  run: Run,
  step: () => Promise<Result>,
): Promise<Partial<Result> & Pick<StepResult, "refused" | "error">> {
  try {
    const { error, ...result } = await step();
    if (error === undefined) return result as Partial<Result>;
    const refused = writeBlocker(error, run);
    return { ...(result as Partial<Result>), ...(refused ? { refused } : { error }) };
  } catch (error) {
    const refused = writeBlocker(error, run);
    if (!refused) throw error;
    return { refused } as Partial<Result> & { refused: Finding };
  }
}

export type Tried = { failed: boolean } & Pick<StepResult, "refused" | "error">;

/**
 * Runs independent steps: all of them, even after one has failed. Returns whether a step failed, the first refusal, and the first error
 * that a retry may resolve. @throws Error if the API server does not answer
 */
export async function tryAll(run: Run, ...steps: (() => Promise<unknown>)[]): Promise<Tried> {
  let failed = false;
  let refused: Finding | undefined;
  let first: unknown;
  for (const step of steps)
    try {
      await step();
    } catch (error) {
      const found = writeBlocker(error, run);
      // If the API server does not answer, the next step would only wait as long.
      if (!found && !isAnswer(error)) throw error;
      if (!found) first ??= error;
      refused ??= found;
      failed = true;
    }
  return { failed, refused, error: first };
}

function isAnswer(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status !== 429 && error.status <= 500;
}
