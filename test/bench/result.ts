/** The result of a benchmark, printed as a table and stored as dated JSON in `results/`. */
import { mkdir, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";

export interface Goal {
  what: string;
  /** E.g. `>= 1.0x`. */
  goal: string;
  measured: string;
  met: boolean;
}

export interface BenchResult {
  rows: Record<string, string | number>[];
  goals: Goal[];
  /** How it was measured, in sentences; part of the result. */
  method: string;
  /** Every single measurement. */
  raw: unknown;
  /** False: printed, but not written to `results/`. Default: true. */
  kept?: boolean;
  /** Name of a part of the benchmark, which has a file of its own. */
  part?: string;
  /** Folder of the result; default: `results/` beside this file. */
  folder?: string | undefined;
}

/** Invalid flags of a benchmark; the message contains the valid ones. */
export class UsageError extends Error {}

export interface Bench {
  about: string;
  /** One result, or several: each is printed and written before the next begins. */
  run(flags: string[]): Promise<BenchResult> | AsyncIterable<BenchResult>;
}

/** Yields the results of a benchmark. */
export async function* resultsOf({ run }: Bench, flags: string[]): AsyncGenerator<BenchResult> {
  const found = run(flags);
  if (Symbol.asyncIterator in found) yield* found;
  else yield await found;
}

export function print(name: string, { rows, goals, method, part = "" }: BenchResult): void {
  const lines = [`\n${name}${part && ` ${part}`}: ${method}\n`, ...table(rows), ""];
  for (const { what, goal, measured, met } of goals) {
    lines.push(`  ${met ? "met   " : "missed"}  ${what}: ${measured} (goal ${goal})`);
  }
  process.stdout.write(`${lines.join("\n")}\n`);
}

/** Writes `results/DATE-NAME.json`, or `DATE-NAME-PART.json`, and returns its path. */
export async function save(name: string, { folder, ...result }: BenchResult, date: Date): Promise<string> {
  const directory = folder ?? path.join(import.meta.dirname, "results");
  const words = [date.toISOString().slice(0, 10), name, ...(result.part === undefined ? [] : [result.part])];
  const file = path.join(directory, `${words.join("-")}.json`);
  const machine = {
    processor: os.cpus()[0]?.model.trim() ?? "unknown",
    cores: os.availableParallelism(),
    memoryBytes: os.totalmem(),
    // Load at the end: if it is far above the number of cores, other processes ran, too.
    loadAverage: os.loadavg()[0],
    system: `${os.type()} ${os.release()} ${os.arch()}`,
    node: process.version,
  };
  await mkdir(directory, { recursive: true });
  await writeFile(file, `${JSON.stringify({ name, date: date.toISOString(), machine, ...result }, null, 2)}\n`);
  return file;
}

export function median(values: readonly number[]): number {
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length === 0) return Number.NaN;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

/** Returns the value below which `share` of the values lie. */
export function quantile(values: readonly number[], share: number): number {
  const sorted = [...values].sort((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))]!;
}

function table(rows: Record<string, string | number>[]): string[] {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = [columns, ...rows.map((row) => columns.map((column) => String(row[column] ?? "")))];
  const widths = columns.map((_, column) => Math.max(...cells.map((row) => row[column]!.length)));
  return cells.map((row) =>
    row
      .map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)))
      .join("   ")
      .trimEnd(),
  );
}
