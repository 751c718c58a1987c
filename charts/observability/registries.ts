/** Reads every metric that longrun serves from the code of its parts. */
import type { Registry } from "prom-client";
import { ActorMetrics } from "../../actor/metrics.ts";
import { KubeMetrics } from "../../controller/operator/kube/metrics.ts";
import { RunMetrics } from "../../controller/operator/status/run-metrics.ts";
import { observeLive } from "../../learner/metrics/live.ts";
import { LearnerMetrics } from "../../learner/metrics/prometheus.ts";

export type Part = "learner" | "actor" | "controller";

export interface Metric {
  name: string;
  type: "counter" | "gauge" | "histogram" | "summary";
  help: string;
  labels: string[];
}

/** Fields that prom-client stores about a metric besides its declared types. */
interface Declared {
  name: string;
  help: string;
  labelNames: string[];
}

const nothing = () => undefined;

const REGISTRIES: Record<Part, () => Registry> = {
  learner() {
    const { registry } = new LearnerMetrics();
    const status = { current: {}, secondsSinceProgress: 0 };
    observeLive(registry, { status, checkpoint: nothing, startedAt: 0, directory: ".", tlsDirectory: "." });
    return registry;
  },
  actor() {
    const counts = { slots: 1, usableSlots: () => 1 };
    return new ActorMetrics({ ...counts, client: nothing, isolationLevel: "", tlsDirectory: "." }).registry;
  },
  controller() {
    const { registry } = new KubeMetrics();
    new RunMetrics(registry);
    return registry;
  },
};

export const PARTS = Object.keys(REGISTRIES) as Part[];

/** Returns the metrics in the order of their declaration. */
export async function metricsOf(part: Part): Promise<Metric[]> {
  const registry = REGISTRIES[part]();
  const types = new Map((await registry.getMetricsAsJSON()).map(({ name, type }) => [name, String(type)]));
  return (registry.getMetricsAsArray() as unknown as Declared[]).map(({ name, help, labelNames }) => ({
    name,
    help,
    labels: [...labelNames],
    type: types.get(name) as Metric["type"],
  }));
}

/** Returns the series names of all parts, as in PromQL: a histogram has three. */
export async function seriesNames(): Promise<Set<string>> {
  const names = new Set<string>();
  for (const part of PARTS)
    for (const { name, type } of await metricsOf(part))
      for (const suffix of type === "histogram" ? ["_bucket", "_sum", "_count"] : [""]) names.add(name + suffix);
  return names;
}
