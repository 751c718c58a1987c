/** What a step of a reconcile came to, and what becomes of its error. */
import type { Finding } from "./conditions.ts";
import type { Run } from "./desired/names.ts";
import { ApiError } from "./kube/errors.ts";
import type { Changes } from "./memory.ts";
import { writeBlocker } from "./refusals.ts";

/** `settle` of context.ts applies it. */
export interface StepResult {
  /** The fields of the run's memory that change. */
  remember?: Changes | undefined;
  /** Is started in the background. */
  call?: Call | undefined;
  /** Seconds until the run is looked at again, though nothing changes. */
  againSeconds?: number | undefined;
  /** Why the API server refused the step: somebody must act. */
  refused?: Finding | undefined;
  /** That another try may mend, where part of the step was done. */
  error?: unknown;
}

/** A call to the learner, or to a webhook. */
export interface Call {
  /** One call of each kind is on its way at a time; another is not started. */
  kind: string;
  /** Returns the fields of the run's memory that change. */
  work: () => Promise<Changes>;
}

/** Runs a step. @returns its result, with `refused` if somebody must act @throws an error that another try may mend */
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

/** Tries steps that do not depend on one another: every step, also after one has failed. */
export class IndependentSteps {
  readonly #run: Run;
  #error: unknown;

  constructor(run: Run) {
    this.#run = run;
  }

  /** Returns whether a step failed, and the finding about the first refusal. @throws if the API server does not answer */
  async all(...steps: (() => Promise<unknown>)[]): Promise<{ failed: boolean; finding: Finding | undefined }> {
    let failed = false;
    let finding: Finding | undefined;
    for (const step of steps)
      try {
        await step();
      } catch (error) {
        const found = writeBlocker(error, this.#run);
        // If the API server does not answer, the next step would wait just as long.
        if (!found && !isAnswer(error)) throw error;
        if (!found) this.#error ??= error;
        finding ??= found;
        failed = true;
      }
    return { failed, finding };
  }

  /** The first error that another try may mend. */
  get error(): unknown {
    return this.#error;
  }
}

function isAnswer(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status !== 429 && error.status <= 500;
}
