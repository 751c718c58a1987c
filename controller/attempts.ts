/** Steps of one reconcile that do not depend on one another. */
import type { Finding, RefusedChildren } from "./conditions.ts";
import type { Run } from "./desired/names.ts";
import { ApiError } from "./kube/errors.ts";
import { writeBlocker } from "./refusals.ts";

/** Tries every step, also after one has failed. */
export class Attempts {
  readonly #run: Run;
  #error: unknown;

  constructor(run: Run) {
    this.#run = run;
  }

  /** Returns whether a step failed, and the finding about the first refusal. */
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

  /** Returns `refused`. @throws the first error that another try may mend */
  settle(refused: RefusedChildren): RefusedChildren {
    if (this.#error !== undefined) throw this.#error;
    return refused;
  }
}

function isAnswer(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status !== 429 && error.status <= 500;
}
