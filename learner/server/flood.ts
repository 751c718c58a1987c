import type { DEFAULTS } from "./options.ts";

/**
 * Returns a function that counts messages and reports whether there are more than any actor needs. A token bucket: `messagesPerSecond` on
 * average over `floodSeconds`. An actor sends two messages per program and at most four per submission of 1 MiB, so 5000 messages a second
 * are 800 programs a second on one actor. Times are monotonic milliseconds.
 */
export function floodGate(
  { messagesPerSecond, floodSeconds }: Pick<typeof DEFAULTS, "messagesPerSecond" | "floodSeconds">,
  startMs: number,
) {
  const most = messagesPerSecond * floodSeconds;
  let [left, atMs] = [most, startMs];
  return (nowMs: number, cost: number): boolean => {
    left = Math.min(most, left + ((nowMs - atMs) / 1000) * messagesPerSecond) - cost;
    atMs = nowMs;
    return left < 0;
  };
}
