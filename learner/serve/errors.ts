/** The content of a request, or a part of it. */
export type Fields = Readonly<Record<string, unknown>>;

/** An answer that refuses a request, in the shape of OpenAI's API: `{"error":{"message","type","param","code"}}`. */
export class RequestError extends Error {
  /** HTTP status. */
  readonly status: number;
  /** The request's wrong field. */
  readonly param: string | null;
  /** Lets clients distinguish errors with the same status. */
  readonly code: string | null;

  constructor(
    status: number,
    message: string,
    { param = null, code = null, cause }: { param?: string | null; code?: string | null; cause?: unknown } = {},
  ) {
    super(message, { cause });
    this.status = status;
    this.param = param;
    this.code = code;
  }

  /** Returns the body of the answer, also used as the last event of a stream that fails. */
  body() {
    const { message, status, param, code } = this;
    const type = status >= 500 ? "server_error" : status === 429 ? "rate_limit_error" : "invalid_request_error";
    return { error: { message, type, param, code } };
  }
}

/** Returns the refusal of a field: its name, its value and the remedy. */
export function refusedField(param: string, value: unknown, remedy: string, code: string | null = null): RequestError {
  return new RequestError(400, `${param} is ${brief(value)}; ${remedy}`, { param, code });
}

/** Returns a value as JSON, cut after 60 characters. */
export function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? "missing";
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
