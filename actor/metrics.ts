/**
 * `/metrics` of an actor: its slots, the outcomes of its programs, and its connection to the learner. Values are read when Prometheus
 * scrapes. No label names an execution, a task or the actor: the scraper knows which actor it asked.
 */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import { ADDRESS_FORM, readAddress } from "../proto/address.ts";
import { OUTCOMES } from "../proto/execution.ts";
import { limitedServer } from "../proto/http-server.ts";
import { certificateExpirations } from "../proto/tls-folder.ts";
import type { ClientState } from "./client.ts";
import { ActorError } from "./errors.ts";
import type { ExecutionResult } from "./execution.ts";

interface ActorMetricsOptions {
  slots: number;
  usableSlots: () => number;
  /** Undefined until there is a client. */
  client: () => ClientState | undefined;
  isolationLevel: string;
  tlsDirectory: string;
}

const DURATION_BUCKETS_SECONDS = [0.1, 0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 1800, 3600];
/** Gauges of prom-client with names of counters, which metrics tools refuse. They are of little use. */
const MISNAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

export class ActorMetrics {
  readonly registry = new Registry();
  readonly #executions: Counter<"outcome">;
  readonly #durations: Histogram;
  readonly #cpu: Counter;
  readonly #broken: Counter;

  constructor({ slots, usableSlots, client, isolationLevel, tlsDirectory }: ActorMetricsOptions) {
    const registers = [this.registry];
    collectDefaultMetrics({ register: this.registry });
    for (const misnamed of MISNAMED) this.registry.removeSingleMetric(misnamed);
    const named = (name: string, help: string, labelNames: string[] = []) => ({
      name: `longrun_actor_${name}`,
      help,
      labelNames,
      registers,
    });
    this.#executions = new Counter(named("executions_total", "Programs that ran here, by outcome", ["outcome"]));
    for (const outcome of OUTCOMES) this.#executions.inc({ outcome }, 0);
    this.#durations = new Histogram({
      ...named("execution_duration_seconds", "Seconds that each program ran"),
      buckets: DURATION_BUCKETS_SECONDS,
    });
    this.#cpu = new Counter(named("execution_cpu_seconds_total", "CPU seconds that programs used"));
    this.#broken = new Counter(named("sandbox_failures_total", "Sandboxes that broke and were started anew"));
    new Gauge({
      ...named("slots", "Slots by state: busy, free, or broken (its sandbox is being started anew)", ["state"]),
      collect() {
        const usable = usableSlots();
        const busy = Math.min(client()?.running ?? 0, slots);
        this.set({ state: "busy" }, busy);
        this.set({ state: "free" }, Math.max(0, usable - busy));
        this.set({ state: "broken" }, slots - Math.max(usable, busy));
      },
    });
    const gauge = (name: string, help: string, value: (state: ClientState) => number) =>
      new Gauge({
        ...named(name, help),
        collect() {
          const state = client();
          this.set(state ? value(state) : 0);
        },
      });
    const counter = (name: string, help: string, value: (state: ClientState) => number) =>
      new Counter({
        ...named(name, help),
        collect() {
          this.reset();
          const state = client();
          this.inc(state ? value(state) : 0);
        },
      });
    gauge("connected", "1 while the stream to the learner stands", ({ connected }) => Number(connected));
    gauge("draining", "1 once it takes no more leases", ({ draining }) => Number(draining));
    gauge("unacknowledged_results", "Results that the learner has not acknowledged", (it) => it.unacknowledged);
    counter("broken_streams_total", "Streams to the learner that broke", ({ brokenStreams }) => brokenStreams);
    counter("busy_slot_seconds_total", "Seconds that slots executed a program", ({ busySeconds }) => busySeconds);
    counter("slot_seconds_total", "Seconds that slots were there", ({ aliveSeconds }) => aliveSeconds);
    new Gauge(named("info", "1; the isolation level that was found", ["isolation"])).set(
      { isolation: isolationLevel },
      1,
    );
    new Gauge({
      name: "longrun_certificate_expiration_timestamp_seconds",
      help: "Unix time at which a certificate in use expires: own, or the authority's",
      labelNames: ["certificate"],
      registers,
      collect() {
        for (const [certificate, seconds] of Object.entries(certificateExpirations(tlsDirectory) ?? {}))
          this.set({ certificate }, seconds);
      },
    });
  }

  executed({ outcome, durationSeconds, cpuSeconds }: ExecutionResult): void {
    this.#executions.inc({ outcome });
    this.#cpu.inc(cpuSeconds);
    if (outcome !== "lost") this.#durations.observe(durationSeconds);
  }

  /** Counts a broken sandbox. */
  broken(): void {
    this.#broken.inc();
  }
}

/** @throws ActorError `arguments` if the address cannot be used */
export async function serveMetrics(listen: string, registry: Registry): Promise<{ port: number; close(): void }> {
  const address = readAddress(listen);
  if (address === undefined) throw new ActorError("arguments", `--metrics-listen ${listen}: ${ADDRESS_FORM}`);
  const server = limitedServer(async (request, response) => {
    if (request.method !== "GET" || request.url?.split("?")[0] !== "/metrics") {
      response.writeHead(404).end("there is /metrics\n");
      return;
    }
    try {
      const text = await registry.metrics();
      response.writeHead(200, { "content-type": registry.contentType }).end(text);
    } catch (error) {
      response.writeHead(500).end(`${(error as Error).message}\n`);
    }
  });
  try {
    server.listen(address.port, address.host);
    await once(server, "listening");
  } catch (cause) {
    throw new ActorError("arguments", `--metrics-listen ${listen}: ${(cause as Error).message}`, cause);
  }
  server.unref();
  return {
    port: (server.address() as AddressInfo).port,
    close() {
      server.close();
      server.closeAllConnections();
    },
  };
}
