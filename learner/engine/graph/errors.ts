/** An error whose `code` is stable, so that callers can tell errors apart. */
export class CodedError<Code extends string> extends Error {
  readonly code: Code;

  constructor(code: Code, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
    this.code = code;
  }
}

/** A graph that cannot be built or run. */
export class GraphError extends CodedError<"shape" | "dtype" | "graph" | "gradient" | "session" | "device" | "feed"> {}
