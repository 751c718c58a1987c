/** Reads the API server's replies: objects, errors and warnings. */
import { ApiError } from "./errors.ts";
import type { TransportReply } from "./transport.ts";

export interface Status {
  code?: number;
  reason?: string;
  message?: string;
  details?: { retryAfterSeconds?: number; causes?: { field?: string }[] };
}

/** Returns the object in a reply. Its fields are unchecked: the API server checked them. @throws ApiError for anything but an object */
export function parseBody<T>(what: string, reply: TransportReply): T {
  const body = objectIn(reply.body);
  if (body !== undefined) return body as T;
  const start = JSON.stringify(reply.body.slice(0, 80));
  throw new ApiError(`${what}: the answer ${start} is not a JSON object`, { status: 0, reason: "BadAnswer" });
}

export function apiError(what: string, reply: TransportReply): ApiError {
  const { message, reason, details } = statusIn(reply.body);
  const header = reply.headers["retry-after"];
  const retryAfterSeconds = header && /^\d+$/.test(header) ? Number(header) : details?.retryAfterSeconds;
  // A wrong uid is a failed precondition; server-side apply reports it as a change of an immutable field.
  const otherUid = reply.status === 422 && details?.causes?.some(({ field }) => field === "metadata.uid");
  return new ApiError(`${what}: ${reply.status} ${message ?? ""}`.trim(), {
    status: otherUid ? 409 : reply.status,
    reason: otherUid ? "Conflict" : (reason ?? "Unknown"),
    ...(retryAfterSeconds !== undefined && { retryAfterSeconds }),
  });
}

/** Returns the Status of an error's body. A proxy in between has its own format of errors: its text is the message. */
function statusIn(body: string): Status {
  const status = objectIn(body);
  const { message, reason, details } = status ?? {};
  const isText = (value: unknown) => value === undefined || typeof value === "string";
  if (!status || !isText(message) || !isText(reason)) return { message: body.slice(0, 200).trim() };
  const { retryAfterSeconds: seconds, causes } = Object(details) as Record<string, unknown>;
  return {
    message: message as string,
    reason: reason as string,
    details: {
      ...(typeof seconds === "number" && { retryAfterSeconds: seconds }),
      causes: (Array.isArray(causes) ? causes : []).map((cause) => Object(cause) as { field?: string }),
    },
  };
}

function objectIn(body: string): Record<string, unknown> | undefined {
  try {
    const json: unknown = JSON.parse(body);
    return typeof json === "object" && json !== null && !Array.isArray(json)
      ? (json as Record<string, unknown>)
      : undefined;
  } catch {
    return undefined;
  }
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
