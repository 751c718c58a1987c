/** Waits in tests. Every wait has a limit: a test that waits for ever would hide which one it was. */
import assert from "node:assert/strict";
import { setTimeout as sleep } from "node:timers/promises";

/** Longest wait in seconds, for a busy machine. */
const LIMIT_SECONDS = 60;

/**
 * Waits until `holds` returns true. @param otherwise what did not happen, for the message @returns the seconds that it took
 * @throws AssertionError after `seconds`
 */
export async function until(
  holds: () => boolean | Promise<boolean>,
  otherwise: string | (() => string),
  { seconds = LIMIT_SECONDS, pauseMilliseconds = 10 } = {},
): Promise<number> {
  const startedMs = performance.now();
  const elapsed = () => (performance.now() - startedMs) / 1000;
  while (!(await holds())) {
    if (elapsed() > seconds)
      assert.fail(`not within ${seconds} s: ${typeof otherwise === "string" ? otherwise : otherwise()}`);
    await sleep(pauseMilliseconds);
  }
  return elapsed();
}
