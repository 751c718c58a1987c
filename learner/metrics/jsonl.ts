/**
 * `metrics.jsonl`: one line per iteration. A line is on disk before `append` resolves. Opening the file cuts off a line that a crash left
 * incomplete, and lines of iterations that a resumed run trains again.
 */
import { type FileHandle, open } from "node:fs/promises";
import { writeFault } from "./errors.ts";
import { readIfThere, replaceFile } from "./files.ts";
import type { IterationMetrics } from "./iteration.ts";

export class MetricsFile {
  /** The newest line, if any. */
  last: IterationMetrics | undefined;
  readonly #path: string;
  readonly #handle: FileHandle;
  #size: number;

  private constructor(path: string, handle: FileHandle, size: number, last: IterationMetrics | undefined) {
    this.#path = path;
    this.#handle = handle;
    this.#size = size;
    this.last = last;
  }

  /** Opens or makes the file. Keeps the lines up to and including `resumedIteration` (0 keeps none). */
  static async open(path: string, resumedIteration: number): Promise<MetricsFile> {
    try {
      const found = (await readIfThere(path)) ?? "";
      const kept = wholeLines(found).filter(({ line }) => line.iteration <= resumedIteration);
      const text = kept.map(({ source }) => `${source}\n`).join("");
      if (text !== found) await replaceFile(path, text);
      const handle = await open(path, "a");
      return new MetricsFile(path, handle, Buffer.byteLength(text), kept.at(-1)?.line);
    } catch (error) {
      throw writeFault(path, "the metrics", error);
    }
  }

  /** Appends a line. If the write fails, the file stays as it was. */
  async append(line: IterationMetrics): Promise<void> {
    const text = `${JSON.stringify(line)}\n`;
    try {
      await this.#handle.appendFile(text);
      await this.#handle.datasync();
    } catch (error) {
      await this.#handle.truncate(this.#size).catch(() => undefined);
      throw writeFault(this.#path, "the metrics", error);
    }
    this.#size += Buffer.byteLength(text);
    this.last = line;
  }

  async close(): Promise<void> {
    await this.#handle.close();
  }
}

/** Returns the complete lines of a file that may still be written; if an iteration occurs twice, the later line. */
export async function readMetrics(path: string): Promise<IterationMetrics[]> {
  return wholeLines((await readIfThere(path)) ?? "").map(({ line }) => line);
}

function wholeLines(text: string): { source: string; line: IterationMetrics }[] {
  const lines = text.split("\n").slice(0, -1);
  const whole = lines.flatMap((source) => {
    const line = parseLine(source);
    return line ? [{ source, line }] : [];
  });
  const byIteration = new Map(whole.map((it) => [it.line.iteration, it]));
  return [...byIteration.values()].sort((a, b) => a.line.iteration - b.line.iteration);
}

function parseLine(source: string): IterationMetrics | undefined {
  try {
    const value: unknown = JSON.parse(source);
    const isLine = typeof value === "object" && value !== null && "iteration" in value;
    return isLine && typeof value.iteration === "number" ? (value as IterationMetrics) : undefined;
  } catch {
    return undefined;
  }
}
