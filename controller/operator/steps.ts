/** Results of a reconcile's steps, and the handling of their errors. */

import type { Run } from "./desired/names.ts";
import { ApiError } from "./kube/errors.ts";
import type { Changes } from "./memory.ts";
import type { Finding } from "./status/conditions.ts";
import { writeBlocker } from "./writes/refusals.ts";

/** `settle` of context.ts applies it. */
export interface StepResult {
  /** The changed fields of the run's memory. */
  remember?: Changes | undefined;
  /** A call to start in the background. */
  call?: Call | undefined;
  /** Seconds until the next reconcile, even if nothing changes. */
  againSeconds?: number | undefined;
  /** Why the API server refused the step; a person must act. */
  refused?: Finding | undefined;
  /** An error that a retry may resolve, after part of the step was done. */
  error?: unknown;
}

/** A call to the learner, or to a webhook. */
export interface Call {
  /** At most one call of each kind runs at a time; another is not started. */
  kind: string;
  /** Returns the changed fields of the run's memory. */
  work: () => Promise<Changes>;
}

/** Runs a step. @returns its result, with `refused` if a person must act @throws Error that a retry may resolve */
export async function tryStep(run: Run, step: () => Promise<StepResult>): Promise<StepResult> {
  try {
    const { error, ...result } = await step();
    if (error === undefined) return result;
    const refused = writeBlocker(error, run);
    return refused ? { ...result, refused } : { ...result, error };
  } catch (error) {
    const refused = writeBlocker(error, run);
    if (!refused) throw error;
    return { refused };
  }
}

/** Runs independent steps: all of them, even after one has failed. */
export class IndependentSteps {
  readonly #run: Run;
  #error: unknown;

  constructor(run: Run) {
    this.#run = run;
  }

  /** Returns whether a step failed, and the finding about the first refusal. @throws Error if the API server does not answer */
  async all(...steps: (() => Promise<unknown>)[]): Promise<{ failed: boolean; finding: Finding | undefined }> {
    let failed = false;
    let finding: Finding | undefined;
    for (const step of steps)
      try {
        await step();
      } catch (error) {
        const found = writeBlocker(error, this.#run);
        // If the API server does not answer, the next step would only wait as long.
        if (!found && !isAnswer(error)) throw error;
        if (!found) this.#error ??= error;
        finding ??= found;
        failed = true;
      }
    return { failed, finding };
  }

  /** The first error that a retry may resolve. */
  get error(): unknown {
    return this.#error;
  }
}

function isAnswer(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status !== 429 && error.status <= 500;
}
