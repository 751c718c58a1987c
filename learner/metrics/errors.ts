/** A fault of metrics, logs or their files. `code` is stable; the message contains the remedy. */
export class MetricsError extends Error {
  readonly code: "listen" | "log-level" | "metrics-file";

  constructor(code: MetricsError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "MetricsError";
    this.code = code;
  }
}

/** Returns the error for a metrics file that could not be written. @param what the metrics, the event file */
export function writeFault(path: string, what: string, cause: unknown): MetricsError {
  const { code, message } = cause as NodeJS.ErrnoException;
  const why = code === "ENOSPC" ? "the disk is full; free some space and resume the run" : message;
  return new MetricsError("metrics-file", `${path}: cannot write ${what}: ${why}`, { cause });
}
