/** A request to the engine that cannot be served. `code` is stable: batch, step, checkpoint, memory, worker. */
export class EngineError extends Error {
  readonly code: string;

  constructor(code: string, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "EngineError";
    this.code = code;
  }
}
