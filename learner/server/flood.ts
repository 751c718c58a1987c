import type { DEFAULTS } from "./options.ts";

/**
 * Returns what counts messages, and says whether those are more than any actor has to send. A token bucket: `messagesPerSecond` on
 * average over `floodSeconds`. An actor sends two messages for each program and at most four for a submission of 1 MiB, so that 5000
 * messages a second are 800 programs a second, on one actor. Times are monotonic milliseconds.
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
