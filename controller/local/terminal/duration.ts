export const count = (n: number, noun: string): string => `${n} ${noun}${n === 1 ? "" : "s"}`;

/** Returns seconds as people say them: `50 s`, `3 minutes`, `2 hours`. */
export function duration(seconds: number): string {
  if (seconds < 90) return `${Math.max(1, Math.round(seconds))} s`;
  if (seconds < 90 * 60) return count(Math.round(seconds / 60), "minute");
  return count(Math.round(seconds / 3600), "hour");
}
