import { isDeepStrictEqual } from "node:util";

/** Returns the first difference in words, e.g. `evaluation.samples is 128, not 64`; undefined if there is none. */
export function difference(then: unknown, now: unknown, path: string): string | undefined {
  if (isDeepStrictEqual(then, now)) return undefined;
  const isObject = (value: unknown) => typeof value === "object" && value !== null;
  if (!isObject(then) || !isObject(now)) return `${path} is ${JSON.stringify(then)}, not ${JSON.stringify(now)}`;
  const [a, b] = [then, now] as [Record<string, unknown>, Record<string, unknown>];
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    const found = difference(a[key], b[key], path === "" ? key : `${path}.${key}`);
    if (found) return found;
  }
  return undefined;
}
