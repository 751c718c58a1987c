/** The only reasons for which a test may be skipped where all tools can be had, as in CI. */
export const ALLOWED_SKIPS: readonly { reason: RegExp; because: string }[] = [];

/** Returns whether a test may be skipped for this reason. */
export function isAllowed(reason: string): boolean {
  return ALLOWED_SKIPS.some((allowed) => allowed.reason.test(reason));
}
