/** Limits of requests to an endpoint. */
export const LIMITS = {
  /** Tries of a request in all; the search then stops with the last fault. */
  attempts: 8,
  /** Wait before the second try; each further wait is twice as long, less up to half of it at random. */
  firstWaitSeconds: 1,
  longestWaitSeconds: 60,
  /** Longest Retry-After that is waited for; a longer one is cut to this. */
  retryAfterSeconds: 300,
  /** Longest time for a whole answer. */
  requestSeconds: 600,
  /** Longest answer. */
  answerBytes: 8 * 1024 * 1024,
} as const;

export type Limits = { readonly [Name in keyof typeof LIMITS]: number };
