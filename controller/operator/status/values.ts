/** Values of a status. */

/** Returns whole seconds in RFC 3339. */
export function timeOf(unixMs: number): string {
  return new Date(unixMs).toISOString().replace(/\.\d+Z/, "Z");
}

export function dropUndefined<T extends object>(value: T): { [K in keyof T]: Exclude<T[K], undefined> } {
  return Object.fromEntries(Object.entries(value).filter(([, it]) => it !== undefined)) as never;
}
