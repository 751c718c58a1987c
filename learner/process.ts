import type { RunContext } from "./context.ts";
import type { Health } from "./health.ts";
import type { MetricsServer } from "./metrics/http.ts";
import type { Options } from "./options.ts";
import type { Suspension } from "./suspension.ts";

/** The objects that the process has before it has a policy. */
export interface Process extends Omit<RunContext, "progress"> {
  options: Options;
  suspension: Suspension;
  metricsServer: MetricsServer;
  health: Health;
  /** SIGTERM or SIGINT. */
  signal: AbortSignal;
}
