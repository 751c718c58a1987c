/** Answers `/healthz` and `/readyz`. Any answer shows that the event loop is alive. */
import type { Probe } from "./metrics/http.ts";

export class Health {
  /** Returns the learner's phase, which is part of every answer. */
  #doing: () => string;
  #engine: { readonly failure: Error | undefined } | undefined;
  #listening = false;
  #over = false;

  constructor(doing: () => string) {
    this.#doing = doing;
  }

  /** Call it when the engine has the weights. */
  loaded(engine: { readonly failure: Error | undefined }): void {
    this.#engine = engine;
  }

  /** Call it when actors and the controller can connect. */
  listening(): void {
    this.#listening = true;
  }

  /** Call it when the run is over and needs no engine. */
  over(): void {
    this.#over = true;
  }

  /** Whether a restart would not help. */
  live(): Probe {
    const failure = this.#over ? undefined : this.#engine?.failure;
    return failure ? { ok: false, message: failure.message } : { ok: true, message: this.#doing() };
  }

  /** Whether the learner can take actors. */
  ready(): Probe {
    const live = this.live();
    if (!live.ok) return live;
    if (this.#engine === undefined && !this.#over) return { ok: false, message: "the weights are being loaded" };
    if (!this.#listening) return { ok: false, message: "the gRPC server does not listen yet" };
    return live;
  }
}
