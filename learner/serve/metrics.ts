/** The server's metrics for Prometheus. Base units (seconds, tokens). Labels have few values, and none contains a client's text. */
import { Counter, Gauge, Histogram } from "prom-client";
import { registryOfProcess } from "../metrics/registry.ts";
import { ENDPOINTS } from "./request.ts";

/** How a choice ended: by its `finish_reason`, because its client hung up, or by a failure. */
const ENDS = ["stop", "length", "abandoned", "failed"] as const;

const SECONDS = [0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600];

export class ServeMetrics {
  readonly registry = registryOfProcess();
  readonly #registers = { registers: [this.registry] };
  readonly requests = new Counter({
    name: "longrun_serve_requests_total",
    help: "Answered requests, by endpoint and HTTP status",
    ...this.#registers,
    labelNames: ["endpoint", "status"] as const,
  });
  readonly choices = new Counter({
    name: "longrun_serve_choices_total",
    help: "Ended choices, by reason",
    ...this.#registers,
    labelNames: ["end"] as const,
  });
  readonly tokens = new Counter({
    name: "longrun_serve_tokens_total",
    help: "Tokens of prompts, and tokens generated",
    ...this.#registers,
    labelNames: ["kind"] as const,
  });
  readonly requestSeconds = new Histogram({
    name: "longrun_serve_request_seconds",
    help: "Seconds from a request to the end of its answer",
    ...this.#registers,
    labelNames: ["endpoint"] as const,
    buckets: SECONDS,
  });
  readonly firstTokenSeconds = new Histogram({
    name: "longrun_serve_first_token_seconds",
    help: "Seconds from a request to the first token of its stream",
    labelNames: ["endpoint"] as const,
    buckets: SECONDS,
    ...this.#registers,
  });

  /** @param open returns the number of choices that run or wait now @param slots number of the engine's slots */
  constructor(open: () => number, slots: number) {
    for (const end of ENDS) this.choices.inc({ end }, 0);
    for (const kind of ["prompt", "generated"]) this.tokens.inc({ kind }, 0);
    for (const endpoint of ENDPOINTS) this.requests.inc({ endpoint, status: "200" }, 0);
    new Gauge({
      name: "longrun_serve_choices",
      help: "Choices now: in a slot, or waiting for one",
      ...this.#registers,
      labelNames: ["state"] as const,
      collect() {
        this.set({ state: "running" }, Math.min(open(), slots));
        this.set({ state: "waiting" }, Math.max(0, open() - slots));
      },
    });
  }
}
