/** Metrics of each run, for an operator of many runs: its activity, demand, resources and blockers. */

import { Counter, Gauge, type Registry } from "prom-client";
import { gpuCount } from "../../../crds/gpu.ts";
import type { TrainingRunStatus } from "../../../crds/trainingrun.ts";
import type { Run } from "../desired/names.ts";
import type { Demand } from "../parts/actors/autoscale.ts";
import { findCondition, isBlocker } from "./conditions.ts";

type RunLabels = "namespace" | "run";
type RunName = Record<RunLabels, string>;

/** The CRD's phases: the compiler refuses a missing one and an unknown one. */
const PHASE: Record<NonNullable<TrainingRunStatus["phase"]>, true> = {
  Pending: true,
  Running: true,
  WarmingUp: true,
  Evaluating: true,
  Suspended: true,
  Succeeded: true,
  Failed: true,
};
export const PHASES = Object.keys(PHASE) as (keyof typeof PHASE)[];

/** Values of a run that are measured after each reconcile. */
export interface RunMeasurement {
  run: Run;
  /** The current status, whether or not it was written. */
  status: TrainingRunStatus;
  /** Undefined: the learner has not reported them. */
  demand: Demand | undefined;
  /** Counted by the learner since the run's start; undefined: not reported. */
  executions: { completed: number; lost: number; retried: number; disrupted: number } | undefined;
  /** Number of actors by state; an undefined number is unknown and leaves the metric unchanged. */
  actors: { desired: number | undefined; running: number; starting: number; draining: number; idle: number };
  /** Desired number of generators. */
  generators: number;
  /** Whether the run should have a learner. */
  learnerDue: boolean;
  /** Unix milliseconds at which the first of its certificates expires; undefined: none is due. */
  certificatesExpireAtMs: number | undefined;
}

/** Labels that the metrics show for a run, so that outdated ones can be removed. */
interface Shown {
  blocked?: string | undefined;
  waiting?: string | undefined;
  executions: Record<string, number>;
}

export class RunMetrics {
  readonly #gauges: Gauge[] = [];
  readonly #counters: Counter[] = [];
  readonly #phase = this.#gauge("phase", "1 for the phase of a run, 0 for the others", "phase");
  readonly #iteration = this.#gauge("iteration", "Iterations that a run has finished");
  readonly #iterations = this.#gauge("stopping_iterations", "Iterations of a run");
  readonly #demand = this.#gauge(
    "executions",
    "Executions of a run by state (queued, running), reported by its learner; they determine the number of actors",
    "state",
  );
  readonly #events = this.#counter(
    "execution_events_total",
    "Executions of a run that were completed, were lost for good, or were tried again",
    "event",
  );
  readonly #actors = this.#gauge(
    "actors",
    "Actors of a run by state: desired; running, starting and draining; and idle, which are running too",
    "state",
  );
  readonly #waiting = this.#gauge(
    "actors_waiting",
    "Actors of a run that do not run yet; the reason is the reason of its condition ActorsScaled",
    "reason",
  );
  readonly #decisions = this.#counter(
    "scalings_total",
    "Changes of the number of desired actors, by direction (up, down)",
    "direction",
  );
  readonly #blocked = this.#gauge(
    "blocked",
    "1 while a run is blocked; the reason is the reason of its condition Ready",
    "reason",
  );
  readonly #learner = this.#gauge(
    "learner_available",
    "1 while the learner of a run answers, 0 while it does not; absent if the run needs no learner",
  );
  readonly #failures = this.#gauge(
    "learner_failures",
    "Failures of a run's learner since its last finished iteration; above spec.failurePolicy.retries the run is Failed",
  );
  readonly #gpus = this.#gauge(
    "gpus",
    "GPUs, or parts of one, that the pods of a run request, by component (learner, actor, generator)",
    "component",
  );
  readonly #expiration = this.#gauge(
    "certificate_expiration_timestamp_seconds",
    "Unix time at which the first of a run's certificates expires; each is renewed long before",
  );
  readonly #shown = new Map<string, Shown>();

  constructor(registry: Registry) {
    for (const metric of [...this.#gauges, ...this.#counters]) registry.registerMetric(metric);
  }

  observe(name: RunName, it: RunMeasurement): void {
    const { run, status, demand, actors } = it;
    const shown = this.#of(name);
    for (const phase of PHASES) this.#phase.set({ ...name, phase }, status.phase === phase ? 1 : 0);
    this.#iteration.set(name, status.iteration ?? 0);
    this.#iterations.set(name, run.spec.stopping.iterations);
    this.#failures.set(name, status.failures?.count ?? 0);
    for (const [state, count] of Object.entries(demand ?? {})) this.#demand.set({ ...name, state }, count);
    for (const [event, total] of Object.entries(it.executions ?? {})) {
      this.#events.inc({ ...name, event }, Math.max(0, total - (shown.executions[event] ?? 0)));
      shown.executions[event] = Math.max(total, shown.executions[event] ?? 0);
    }
    for (const [state, count] of Object.entries(actors))
      if (count !== undefined) this.#actors.set({ ...name, state }, count);
    this.#showReason(this.#waiting, name, shown, "waiting", waitingReason(status, actors.starting), actors.starting);
    this.#showReason(this.#blocked, name, shown, "blocked", blockedReason(status), 1);
    if (it.learnerDue)
      this.#learner.set(name, findCondition(status.conditions, "LearnerAvailable")?.status === "True" ? 1 : 0);
    else this.#learner.remove(name);
    const active = actors.running + actors.starting + actors.draining;
    for (const [component, count] of Object.entries(gpusOf(run, it.learnerDue ? 1 : 0, active, it.generators)))
      this.#gpus.set({ ...name, component }, count);
    if (it.certificatesExpireAtMs === undefined) this.#expiration.remove(name);
    else this.#expiration.set(name, it.certificatesExpireAtMs / 1000);
  }

  scaled(name: RunName, direction: "up" | "down"): void {
    for (const each of ["up", "down"]) this.#decisions.inc({ ...name, direction: each }, each === direction ? 1 : 0);
  }

  /** Removes the metrics of a deleted run. */
  forget(name: RunName): void {
    const shown = this.#of(name);
    this.#shown.delete(keyOf(name));
    const without = (metric: Gauge | Counter, label: string, values: readonly string[]) => {
      for (const value of values) metric.remove({ ...name, [label]: value });
    };
    for (const gauge of [this.#iteration, this.#iterations, this.#failures, this.#learner, this.#expiration])
      gauge.remove(name);
    without(this.#phase, "phase", PHASES);
    without(this.#demand, "state", ["queued", "running"]);
    without(this.#events, "event", ["completed", "lost", "retried", "disrupted"]);
    without(this.#actors, "state", ["desired", "running", "starting", "draining", "idle"]);
    without(this.#decisions, "direction", ["up", "down"]);
    without(this.#gpus, "component", ["learner", "actor", "generator"]);
    if (shown.waiting !== undefined) without(this.#waiting, "reason", [shown.waiting]);
    if (shown.blocked !== undefined) without(this.#blocked, "reason", [shown.blocked]);
  }

  /** Shows one reason at a time: the previous one is removed. */
  #showReason(
    gauge: Gauge,
    name: RunName,
    shown: Shown,
    what: "blocked" | "waiting",
    reason: string | undefined,
    value: number,
  ): void {
    const before = shown[what];
    if (before !== undefined && before !== reason) gauge.remove({ ...name, reason: before });
    if (reason !== undefined) gauge.set({ ...name, reason }, value);
    shown[what] = reason;
  }

  #of(name: RunName): Shown {
    const key = keyOf(name);
    const known = this.#shown.get(key) ?? { executions: {} };
    this.#shown.set(key, known);
    return known;
  }

  #gauge(suffix: string, help: string, label?: string): Gauge {
    const gauge = new Gauge({ ...named(suffix, help, label), registers: [] });
    this.#gauges.push(gauge);
    return gauge;
  }

  #counter(suffix: string, help: string, label: string): Counter {
    const counter = new Counter({ ...named(suffix, help, label), registers: [] });
    this.#counters.push(counter);
    return counter;
  }
}

const named = (suffix: string, help: string, label: string | undefined) => ({
  name: `longrun_run_${suffix}`,
  help,
  labelNames: ["namespace", "run", ...(label === undefined ? [] : [label])],
});

const keyOf = ({ namespace, run }: RunName): string => `${namespace}/${run}`;

function blockedReason(status: TrainingRunStatus): string | undefined {
  const reason = findCondition(status.conditions, "Ready")?.reason;
  return reason !== undefined && isBlocker(reason) ? reason : undefined;
}

function waitingReason(status: TrainingRunStatus, starting: number): string | undefined {
  return starting > 0 ? findCondition(status.conditions, "ActorsScaled")?.reason : undefined;
}

function gpusOf({ spec }: Run, learners: number, actors: number, generators: number) {
  const { slots, resources, sandboxResources } = spec.actors;
  return {
    learner: learners * gpuCount(spec.learner.resources),
    actor: actors * (gpuCount(resources) + slots * gpuCount(sandboxResources)),
    ...(spec.generation && { generator: generators * gpuCount(spec.generation.resources) }),
  };
}
