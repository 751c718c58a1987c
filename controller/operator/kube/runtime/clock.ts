/** If the wall clock is this far ahead of the monotonic clock, the machine was suspended or the wall clock was set. */
const SUSPENSION_MS = 1000;

/**
 * Returns a clock for leases, in milliseconds since its start. It never goes back, and it counts the time in which the machine was
 * suspended, which Linux's monotonic clock omits. A wall clock that is set forward looks like a suspension, which is safe.
 */
export function suspensionAwareClock(
  monotonic: () => number = () => performance.now(),
  wall: () => number = Date.now,
): () => number {
  let elapsedMs = 0;
  let monotonicMs = monotonic();
  let wallMs = wall();
  return () => {
    const [nowMs, nowWallMs] = [monotonic(), wall()];
    const passedMs = nowMs - monotonicMs;
    const wallPassedMs = nowWallMs - wallMs;
    elapsedMs += wallPassedMs - passedMs > SUSPENSION_MS ? wallPassedMs : passedMs;
    monotonicMs = nowMs;
    wallMs = nowWallMs;
    return elapsedMs;
  };
}
