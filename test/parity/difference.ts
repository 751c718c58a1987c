/** Measures the difference between the numbers of two states of the same files. */
import fs from "node:fs";
import path from "node:path";
import { readSafetensors } from "../../learner/engine/model/safetensors.ts";

export interface Difference {
  readonly file: string;
  /** Largest difference of two numbers, absolute up to 1 and relative above; infinite if anything but numbers differs. */
  readonly largest: number;
}

/** Returns the files of either folder that are not equal byte for byte. */
export function differences(before: string, after: string): Difference[] {
  const files = new Set([...filesBelow(before), ...filesBelow(after)]);
  return [...files].sort().flatMap((file) => {
    const [old, made] = [path.join(before, file), path.join(after, file)];
    if (!fs.existsSync(old) || !fs.existsSync(made)) return [{ file, largest: Number.POSITIVE_INFINITY }];
    if (fs.readFileSync(old).equals(fs.readFileSync(made))) return [];
    return [{ file, largest: distance(contentOf(old), contentOf(made)) }];
  });
}

function filesBelow(folder: string): string[] {
  return fs
    .readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => path.relative(folder, path.join(entry.parentPath, entry.name)));
}

function contentOf(file: string): unknown {
  if (file.endsWith(".json")) return JSON.parse(fs.readFileSync(file, "utf8"));
  if (!file.endsWith(".safetensors")) return fs.readFileSync(file, "latin1");
  return Object.fromEntries(
    [...readSafetensors(file)].map(([name, { shape, data }]) => [name, { shape, data: Array.from(data) }]),
  );
}

/** Keys may be in any order. */
function distance(a: unknown, b: unknown): number {
  if (Object.is(a, b)) return 0;
  if (typeof a === "number" && typeof b === "number") {
    const difference = Math.abs(a - b) / Math.max(1, Math.abs(a));
    return Number.isNaN(difference) ? Number.POSITIVE_INFINITY : difference;
  }
  if (typeof a !== "object" || typeof b !== "object" || a === null || b === null) return Number.POSITIVE_INFINITY;
  const [left, right] = [a as Record<string, unknown>, b as Record<string, unknown>];
  const keys = Object.keys(left);
  if (Array.isArray(a) !== Array.isArray(b) || keys.length !== Object.keys(right).length)
    return Number.POSITIVE_INFINITY;
  return keys.reduce(
    (largest, key) => Math.max(largest, key in right ? distance(left[key], right[key]) : Number.POSITIVE_INFINITY),
    0,
  );
}
