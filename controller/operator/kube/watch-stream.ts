import type { IncomingMessage } from "node:http";
import { ApiError } from "./errors.ts";

/**
 * Yields the JSON values of a stream that has one on each line. A line, and even a character, may arrive in several pieces.
 *
 * Throws `ApiError` with status 0 and reason `Silence` if nothing arrived for `silenceSeconds` (as with a half-open connection),
 * `BrokenStream` if a line is not JSON or the stream ended inside one, or the system's reason.
 */
export async function* jsonLines(response: IncomingMessage, silenceSeconds: number): AsyncGenerator<unknown> {
  let silent = false;
  const timer = setTimeout(() => {
    silent = true;
    response.destroy();
  }, silenceSeconds * 1000);
  response.setEncoding("utf8");
  let pending = "";
  try {
    for await (const chunk of response as AsyncIterable<string>) {
      timer.refresh();
      let start = 0;
      for (let end = chunk.indexOf("\n"); end >= 0; end = chunk.indexOf("\n", start)) {
        const line = pending + chunk.slice(start, end);
        pending = "";
        start = end + 1;
        yield parse(line);
      }
      pending += chunk.slice(start);
    }
  } catch (error) {
    if (silent) throw silence(silenceSeconds);
    if (error instanceof ApiError) throw error;
    const reason = (error as NodeJS.ErrnoException).code ?? (error as Error).name;
    throw new ApiError(
      `watch: the connection broke: ${(error as Error).message}`,
      { status: 0, reason },
      { cause: error },
    );
  } finally {
    clearTimeout(timer);
    response.destroy();
  }
  if (silent) throw silence(silenceSeconds);
  if (pending.trim()) throw brokenStream(pending);
}

function silence(seconds: number): ApiError {
  return new ApiError(`watch: no data for ${seconds} s; the connection is closed`, {
    status: 0,
    reason: "Silence",
  });
}

function parse(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch (cause) {
    throw brokenStream(line, cause);
  }
}

function brokenStream(line: string, cause?: unknown): ApiError {
  const start = JSON.stringify(line.slice(0, 60));
  return new ApiError(`watch: ${start} is not a whole event`, { status: 0, reason: "BrokenStream" }, { cause });
}
