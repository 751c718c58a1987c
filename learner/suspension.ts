/** Suspension: a controller asks the run to stop at a point from which it can continue later (LearnerControl.Suspend). */
import type { SuspendResponseMessage } from "../proto/service.ts";
import type { SuspendRequest } from "./server/control.ts";
import type { Leases } from "./store/leases.ts";

/** Ends the training loop. */
export class SuspendedError extends Error {
  override readonly name = "SuspendedError";
}

export class Suspension {
  request: SuspendRequest | undefined;
  /** Number of executions that still ran when the wait for them ended. */
  givenBack: number | undefined;
  readonly #asked = new AbortController();
  readonly #answer = Promise.withResolvers<SuspendResponseMessage>();

  /** Aborts when a suspension is requested, with a SuspendedError. */
  get signal(): AbortSignal {
    return this.#asked.signal;
  }

  /** Suspends the run; a second request joins the first. */
  ask(request: SuspendRequest): Promise<SuspendResponseMessage> {
    this.request ??= request;
    this.#asked.abort(new SuspendedError(`suspended: ${this.request.reason}`));
    return this.#answer.promise;
  }

  /** Queues the running executions again, for the learner that resumes the run. This costs them no attempt. */
  giveBack(leases: Leases): void {
    this.givenBack = leases.running().length;
    leases.disruptAll("the run is suspended");
  }

  /** Answers all requests. The run is over, suspended or not, and its newest checkpoint is on disk. */
  settle(response: SuspendResponseMessage): void {
    this.#answer.resolve(response);
  }
}
