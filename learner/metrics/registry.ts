import { collectDefaultMetrics, Registry } from "prom-client";

/** Gauges of the process that prom-client names like counters, which tools for metrics refuse; they say little. */
const MISNAMED = ["nodejs_active_handles_total", "nodejs_active_requests_total", "nodejs_active_resources_total"];

/** Returns a registry with the numbers of this process. */
export function registryOfProcess(): Registry {
  const register = new Registry();
  collectDefaultMetrics({ register });
  for (const misnamed of MISNAMED) register.removeSingleMetric(misnamed);
  return register;
}
