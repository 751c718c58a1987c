/** What a client sent, or a part of it. */
export type Fields = Readonly<Record<string, unknown>>;

/** An answer that refuses a request, in the shape of OpenAI's API: `{"error":{"message","type","param","code"}}`. */
export class RequestError extends Error {
  /** of HTTP */
  readonly status: number;
  /** the request's field that is wrong */
  readonly param: string | null;
  /** what clients tell errors of one status apart by */
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

  /** Returns the body of the answer, and what a stream says when it cannot go on. */
  body() {
    const { message, status, param, code } = this;
    const type = status >= 500 ? "server_error" : status === 429 ? "rate_limit_error" : "invalid_request_error";
    return { error: { message, type, param, code } };
  }
}

/** Returns the refusal of a field: its name, its value and what to give instead. */
export function refusedField(param: string, value: unknown, remedy: string, code: string | null = null): RequestError {
  return new RequestError(400, `${param} is ${brief(value)}; ${remedy}`, { param, code });
}

function brief(value: unknown): string {
  const text = JSON.stringify(value) ?? "missing";
  return text.length > 60 ? `${text.slice(0, 57)}...` : text;
}
