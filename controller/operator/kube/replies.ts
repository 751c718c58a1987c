/** Reads the API server's replies: objects, errors and warnings. */
import { ApiError } from "./errors.ts";
import type { TransportReply } from "./transport.ts";

export interface Status {
  code?: number;
  reason?: string;
  message?: string;
  details?: { retryAfterSeconds?: number; causes?: { field?: string }[] };
}

export function parseBody<T>(what: string, reply: TransportReply): T {
  try {
    return JSON.parse(reply.body) as T;
  } catch (cause) {
    const start = JSON.stringify(reply.body.slice(0, 80));
    throw new ApiError(`${what}: the answer ${start} is not JSON`, { status: 0, reason: "BadAnswer" }, { cause });
  }
}

export function apiError(what: string, reply: TransportReply): ApiError {
  let status: Status = {};
  try {
    status = JSON.parse(reply.body) as Status;
  } catch {
    status = { message: reply.body.slice(0, 200).trim() }; // a proxy in between has its own format of errors
  }
  const header = reply.headers["retry-after"];
  const retryAfterSeconds = header && /^\d+$/.test(header) ? Number(header) : status.details?.retryAfterSeconds;
  // A wrong uid is a failed precondition; server-side apply reports it as a change of an immutable field.
  const otherUid = reply.status === 422 && status.details?.causes?.some(({ field }) => field === "metadata.uid");
  return new ApiError(`${what}: ${reply.status} ${status.message ?? ""}`.trim(), {
    status: otherUid ? 409 : reply.status,
    reason: otherUid ? "Conflict" : (status.reason ?? "Unknown"),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
}

export function connectionError(what: string, cause: unknown): ApiError {
  const { code, name, message } = cause as NodeJS.ErrnoException;
  const reason = typeof code === "string" ? code : name; // an AbortError has a number there
  return new ApiError(`${what}: ${message || code}`, { status: 0, reason }, { cause });
}

/** Parses `299 - "text"`, several separated by commas. */
export function warningsOf(header: string | string[] | undefined): string[] {
  if (header === undefined) return [];
  return [...String(header).matchAll(/\d{3} \S+ "((?:[^"\\]|\\.)*)"/g)].map((match) => match[1]!);
}
