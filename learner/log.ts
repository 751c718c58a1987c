/** The learner's log: JSON lines on stderr, which the local backend keeps in `logs/`. */
import { type Logger, levels, pino } from "pino";
import { MetricsError } from "./metrics/errors.ts";

export type { Logger };

/** `level` is one of pino's, or `silent`. Writes synchronously, so that the last lines before a crash are not lost. */
export function createLog(name: string, level = process.env.LOG_LEVEL || "info"): Logger {
  const known = [...Object.values(levels.labels), "silent"];
  if (!known.includes(level)) {
    throw new MetricsError("log-level", `LOG_LEVEL: ${level} is not a level; use one of ${known.join(", ")}`);
  }
  const options = { name, level, timestamp: pino.stdTimeFunctions.isoTime, base: { pid: process.pid } };
  return pino(options, pino.destination({ fd: 2, sync: true }));
}

/** Says something to the user: in the log, and on the terminal of `longrun run`. */
export function logNotice(log: Logger, text: string): void {
  log.info(text);
  process.send?.({ type: "note", text });
}
