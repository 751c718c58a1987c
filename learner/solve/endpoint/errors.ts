/** The endpoint cannot be used: it refused a request, or failed too often. The message names the remedy. */
export class EndpointError extends Error {
  override readonly name = "EndpointError";
  readonly code = "endpoint";
}

/** A fault that another try may not meet. */
export class PassingFault extends Error {
  /** Seconds that the server asks to wait; undefined: it does not say. */
  readonly waitSeconds: number | undefined;

  constructor(message: string, waitSeconds?: number, options?: ErrorOptions) {
    super(message, options);
    this.waitSeconds = waitSeconds;
  }
}
