/**
 * `metrics.jsonl`: one line an iteration. A line is on disk before `append` resolves; a line that a crash tore, and
 * lines of iterations that a resumed run trains again, are cut off when the file is opened.
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

  /** Opens or makes the file and keeps the lines up to and including `resumedIteration` (0 keeps none). */
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

  /** Adds a line. If the disk refuses it, the file is left as it was before. */
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

/** The whole lines of a file that may be being written; of an iteration that stands there twice, the later. */
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
