/** A fault of metrics, logs or their files. `code` is stable; the message says what to do. */
export class MetricsError extends Error {
  readonly code: "listen" | "log-level" | "metrics-file";

  constructor(code: MetricsError["code"], message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "MetricsError";
    this.code = code;
  }
}
