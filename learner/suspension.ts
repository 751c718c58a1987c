/** A controller asks the run to stop where it can go on later (LearnerControl.Suspend). */
import type { SuspendResponseMessage } from "../proto/service.ts";
import type { SuspendRequest } from "./server/control.ts";
import type { Leases } from "./store/leases.ts";

/** What the loop ends with. */
export class SuspendedError extends Error {
  override readonly name = "SuspendedError";
}

export class Suspension {
  request: SuspendRequest | undefined;
  /** Executions that still ran when the wait for them was over. */
  givenBack: number | undefined;
  readonly #asked = new AbortController();
  readonly #answer = Promise.withResolvers<SuspendResponseMessage>();

  /** Fires when a suspension is asked for, with a SuspendedError. */
  get signal(): AbortSignal {
    return this.#asked.signal;
  }

  /** Whoever asks again joins the suspension that is under way. */
  ask(request: SuspendRequest): Promise<SuspendResponseMessage> {
    this.request ??= request;
    this.#asked.abort(new SuspendedError(`suspended: ${this.request.reason}`));
    return this.#answer.promise;
  }

  /** Nobody waits for what still runs: it is run again after the resume, and that costs it no attempt. */
  giveBack(leases: Leases): void {
    this.givenBack = leases.running().length;
    leases.disruptAll("the run is suspended");
  }

  /** The run is over, suspended or not: its newest checkpoint is on disk, and nothing trains any more. */
  settle(response: SuspendResponseMessage): void {
    this.#answer.resolve(response);
  }
}
