/** Tries again after faults that may pass. */
import { setTimeout as sleep } from "node:timers/promises";
import { EndpointError, PassingFault } from "./errors.ts";
import type { Limits } from "./limits.ts";

type Waits = Pick<Limits, "attempts" | "firstWaitSeconds" | "longestWaitSeconds" | "retryAfterSeconds">;

/**
 * Returns the seconds before the try after `attempt` (from 1): as the server asks, else an exponential backoff.
 * @param random uniform in [0, 1): clients that failed together do not come back together
 */
export function waitSeconds(attempt: number, asked: number | undefined, limits: Waits, random: number): number {
  if (asked !== undefined) return Math.min(asked, limits.retryAfterSeconds);
  const longest = Math.min(limits.firstWaitSeconds * 2 ** (attempt - 1), limits.longestWaitSeconds);
  return longest * (1 - random / 2);
}

/**
 * @param attempt one try
 * @param onFault called before each wait
 * @throws EndpointError after the last try; whatever else `attempt` throws; the reason of `signal`
 */
export async function retried<Result>(
  attempt: () => Promise<Result>,
  limits: Waits,
  { signal, onFault }: { signal: AbortSignal; onFault: (fault: PassingFault, waitSeconds: number) => void },
): Promise<Result> {
  for (let tries = 1; ; tries++) {
    try {
      return await attempt();
    } catch (fault) {
      signal.throwIfAborted();
      if (!(fault instanceof PassingFault)) throw fault;
      if (tries >= limits.attempts)
        throw new EndpointError(`${fault.message}, after ${tries} tries; go on later`, { cause: fault });
      const seconds = waitSeconds(tries, fault.waitSeconds, limits, Math.random());
      onFault(fault, seconds);
      await sleep(seconds * 1000, undefined, { signal }).catch(() => signal.throwIfAborted());
    }
  }
}
