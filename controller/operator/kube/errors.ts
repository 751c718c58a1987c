/** An error of the API server or of the connection to it. */
export class ApiError extends Error {
  override readonly name = "ApiError";
  /** HTTP status; 0 without an answer (see `reason` and `cause`). */
  readonly status: number;
  /** The API's reason (`Conflict`, `AlreadyExists`, `Expired`), or for status 0 the system's (`ECONNRESET`, `Timeout`). */
  readonly reason: string;
  /** How long the server asks to wait before the next try. */
  readonly retryAfterSeconds?: number;

  constructor(
    message: string,
    fields: { status: number; reason: string; retryAfterSeconds?: number },
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.status = fields.status;
    this.reason = fields.reason;
    if (fields.retryAfterSeconds !== undefined) this.retryAfterSeconds = fields.retryAfterSeconds;
  }
}

/** Returns whether the resourceVersion is too old for the API server, so that a new list is needed. */
export function isExpired(error: unknown): boolean {
  return error instanceof ApiError && (error.status === 410 || error.reason === "Expired" || error.reason === "Gone");
}

/** Returns whether another writer was first, or a precondition (uid, resourceVersion) failed. */
export function isConflict(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409 && error.reason !== "AlreadyExists";
}

export function isAlreadyExists(error: unknown): boolean {
  return error instanceof ApiError && error.status === 409 && error.reason === "AlreadyExists";
}

/** A write was prevented because this process may no longer be the leader. Nothing was sent. */
export class LeaseLostError extends Error {
  override readonly name = "LeaseLostError";
}
