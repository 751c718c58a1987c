/** Revivers for `JSON.parse`, with which `JSON.stringify` writes numbers as they stood: a double changes ids beyond 2^53, and 1.0 to 1. */

/** Keeps every number as it is written. */
export function asWritten(_: string, value: unknown, context?: { source?: string }): unknown {
  const { rawJSON } = JSON as unknown as { rawJSON: (text: string) => unknown };
  return typeof value === "number" && context?.source !== undefined ? rawJSON(context.source) : value;
}

/** Keeps the digits of whole numbers beyond 2^53. */
export function largeAsWritten(key: string, value: unknown, context?: { source?: string }): unknown {
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? asWritten(key, value, context) : value;
}
