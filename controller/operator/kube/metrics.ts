/**
 * Metrics of the Kubernetes client, queue and caches, with the names of controller-runtime and client-go, so that existing dashboards and
 * alerts can read them.
 */
import { Counter, collectDefaultMetrics, Gauge, Histogram, Registry } from "prom-client";
import type { RequestObservation } from "./api-client.ts";

/** Gauges of prom-client with names of counters, which metrics tools refuse. They are of little use. */
const MISNAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

const RECONCILE_BUCKETS_SECONDS = [
  0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.25, 1.5, 1.75, 2,
  2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9, 10, 15, 20, 25, 30, 40, 50, 60,
];
const QUEUE_BUCKETS_SECONDS = [1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1, 10, 100, 1000];
const REQUEST_BUCKETS_SECONDS = [0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60];

/** Metrics of a work queue. The queue calls `observe` once. */
export interface QueueMetrics {
  observe(queue: { readonly depth: number; runningSeconds(): number[] }): void;
  added(): void;
  retried(): void;
  started(waitedSeconds: number): void;
  finished(result: "success" | "requeue_after" | "error", seconds: number): void;
}

type ObservedQueue = Parameters<QueueMetrics["observe"]>[0];

export class KubeMetrics {
  readonly registry: Registry;
  readonly #queues = new Map<string, ObservedQueue>();
  readonly #reconciles: Counter<"controller" | "result">;
  readonly #reconcileErrors: Counter<"controller">;
  readonly #reconcileSeconds: Histogram<"controller">;
  readonly #adds: Counter<"name">;
  readonly #retries: Counter<"name">;
  readonly #queueSeconds: Histogram<"name">;
  readonly #workSeconds: Histogram<"name">;
  readonly #requests: Counter<"code" | "method" | "host">;
  readonly #requestSeconds: Histogram<"verb" | "host">;
  readonly #leader: Gauge<"name">;
  readonly #faults: Counter<"resource" | "kind">;
  readonly #served: Gauge<"namespace">;

  /** `registry`: absent: a new one, with the process's metrics. */
  constructor(registry?: Registry) {
    this.registry = registry ?? new Registry();
    if (!registry) collectDefaultMetrics({ register: this.registry });
    for (const misnamed of MISNAMED) this.registry.removeSingleMetric(misnamed);
    const registers = [this.registry];
    const queues = this.#queues;
    const ofQueues = (name: string, help: string, value: (queue: ObservedQueue) => number, label = "name") =>
      new Gauge({
        name,
        help,
        labelNames: [label],
        registers,
        collect() {
          for (const [queue, observed] of queues) this.set({ [label]: queue }, value(observed));
        },
      });
    this.#reconciles = new Counter({
      name: "controller_runtime_reconcile_total",
      help: "Reconciles by result: success, requeue_after, error",
      labelNames: ["controller", "result"],
      registers,
    });
    this.#reconcileErrors = new Counter({
      name: "controller_runtime_reconcile_errors_total",
      help: "Reconciles that failed",
      labelNames: ["controller"],
      registers,
    });
    this.#reconcileSeconds = new Histogram({
      name: "controller_runtime_reconcile_time_seconds",
      help: "Seconds of a reconcile",
      labelNames: ["controller"],
      buckets: RECONCILE_BUCKETS_SECONDS,
      registers,
    });
    const active = (queue: ObservedQueue) => queue.runningSeconds().length;
    ofQueues("controller_runtime_active_workers", "Workers that have a key", active, "controller");
    ofQueues("workqueue_depth", "Keys that wait for a worker", (queue) => queue.depth);
    ofQueues("workqueue_unfinished_work_seconds", "Seconds of work not finished, all workers together", (queue) =>
      queue.runningSeconds().reduce((sum, seconds) => sum + seconds, 0),
    );
    ofQueues("workqueue_longest_running_processor_seconds", "Seconds of the longest-running worker", (queue) =>
      Math.max(0, ...queue.runningSeconds()),
    );
    this.#adds = new Counter({ name: "workqueue_adds_total", help: "Keys added", labelNames: ["name"], registers });
    this.#retries = new Counter({
      name: "workqueue_retries_total",
      help: "Keys added again after a failure",
      labelNames: ["name"],
      registers,
    });
    this.#queueSeconds = new Histogram({
      name: "workqueue_queue_duration_seconds",
      help: "Seconds that a key waited for a worker",
      labelNames: ["name"],
      buckets: QUEUE_BUCKETS_SECONDS,
      registers,
    });
    this.#workSeconds = new Histogram({
      name: "workqueue_work_duration_seconds",
      help: "Seconds that a worker had a key",
      labelNames: ["name"],
      buckets: QUEUE_BUCKETS_SECONDS,
      registers,
    });
    this.#requests = new Counter({
      name: "rest_client_requests_total",
      help: "Requests to the API server; code <error> without an answer",
      labelNames: ["code", "method", "host"],
      registers,
    });
    this.#requestSeconds = new Histogram({
      name: "rest_client_request_duration_seconds",
      help: "Seconds of a request to the API server; of a watch, to its start",
      labelNames: ["verb", "host"],
      buckets: REQUEST_BUCKETS_SECONDS,
      registers,
    });
    this.#leader = new Gauge({
      name: "leader_election_master_status",
      help: "1 while this process is the leader",
      labelNames: ["name"],
      registers,
    });
    this.#faults = new Counter({
      name: "longrun_reflector_faults_total",
      help: "Lists and watches that failed and handlers that threw",
      labelNames: ["resource", "kind"],
      registers,
    });
    this.#served = new Gauge({
      name: "longrun_namespace_served",
      help: "1 while the API server lets the controller read a namespace that --namespace names",
      labelNames: ["namespace"],
      registers,
    });
  }

  /** Returns the metrics of one queue and its reconciles; `name` is the value of the labels `name` and `controller`. */
  queue(name: string): QueueMetrics {
    for (const counter of [this.#adds, this.#retries]) counter.inc({ name }, 0);
    this.#reconcileErrors.inc({ controller: name }, 0);
    for (const result of ["success", "requeue_after", "error"]) this.#reconciles.inc({ controller: name, result }, 0);
    return {
      observe: (queue) => this.#queues.set(name, queue),
      added: () => this.#adds.inc({ name }),
      retried: () => this.#retries.inc({ name }),
      started: (seconds) => this.#queueSeconds.observe({ name }, seconds),
      finished: (result, seconds) => {
        this.#workSeconds.observe({ name }, seconds);
        this.#reconcileSeconds.observe({ controller: name }, seconds);
        this.#reconciles.inc({ controller: name, result });
        if (result === "error") this.#reconcileErrors.inc({ controller: name });
      },
    };
  }

  /** Pass it to `ApiClient` as `onRequest`. */
  readonly observeRequest = ({ method, code, seconds, host }: RequestObservation): void => {
    this.#requests.inc({ code, method, host });
    this.#requestSeconds.observe({ verb: method, host }, seconds);
  };

  observeLeader(name: string, leading: boolean): void {
    this.#leader.set({ name }, leading ? 1 : 0);
  }

  observeServed(namespace: string, isServed: boolean): void {
    this.#served.set({ namespace }, isServed ? 1 : 0);
  }

  /** Starts to count faults of this resource, at 0, so that the first fault is visible as an increase. */
  watches(resource: string): void {
    for (const kind of ["list", "watch", "handler"]) this.#faults.inc({ resource, kind }, 0);
  }

  /** Pass it to a `Reflector` as `onFault`, with its resource. */
  observeFault(resource: string, kind: "list" | "watch" | "handler"): void {
    this.#faults.inc({ resource, kind });
  }
}
