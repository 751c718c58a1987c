/** Answers of the proxy of `api-proxy.ts`. */
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";

function status(code: number, reason?: string, retryAfterSeconds?: number) {
  const reasons: Record<number, string> = {
    404: "NotFound",
    409: "Conflict",
    429: "TooManyRequests",
    500: "InternalError",
  };
  return {
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message: `injected by the fault proxy: ${code}`,
    reason: reason ?? reasons[code] ?? "Unknown",
    details: retryAfterSeconds === undefined ? {} : { retryAfterSeconds },
    code,
  };
}

export const EXPIRED = `${JSON.stringify({ type: "ERROR", object: status(410, "Expired") })}\n`;

export function answerStatus(
  response: ServerResponse,
  code: number,
  reason?: string,
  retryAfterSeconds?: number,
): void {
  if (retryAfterSeconds !== undefined) response.setHeader("retry-after", retryAfterSeconds);
  answerJson(response, code, status(code, reason, retryAfterSeconds));
}

export function answerJson(response: ServerResponse, code: number, value: unknown): void {
  response.writeHead(code, { "content-type": "application/json" }).end(JSON.stringify(value));
}

export function withoutFraming(headers: IncomingMessage["headers"]): OutgoingHttpHeaders {
  const { "transfer-encoding": _chunked, "content-length": _length, connection: _connection, ...kept } = headers;
  return kept;
}

export async function bytes(stream: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of stream) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export async function* lines(stream: IncomingMessage): AsyncIterable<string> {
  let rest = "";
  for await (const chunk of stream.setEncoding("utf8")) {
    const parts = (rest + chunk).split("\n");
    rest = parts.pop()!;
    yield* parts.filter((line) => line !== "");
  }
}
