import { collectDefaultMetrics, Registry } from "prom-client";

/** Gauges of prom-client with names of counters, which metrics tools refuse. They are of little use. */
const MISNAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

/** Returns a registry with this process's metrics. */
export function registryOfProcess(): Registry {
  const register = new Registry();
  collectDefaultMetrics({ register });
  for (const misnamed of MISNAMED) register.removeSingleMetric(misnamed);
  return register;
}
