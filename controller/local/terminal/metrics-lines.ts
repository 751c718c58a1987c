/** Reads the finished iterations of a run folder. */
import { closeSync, fstatSync, openSync, readFileSync, readSync } from "node:fs";
import { join } from "node:path";
import type { IterationLine } from "./terminal.ts";

interface MetricsLine {
  text: string;
  line: IterationLine;
}

const METRICS = "metrics.jsonl";

/** @returns the complete lines of metrics.jsonl, oldest first; none if the file does not exist yet */
export function readMetrics(directory: string): MetricsLine[] {
  try {
    return linesOf(readFileSync(join(directory, METRICS), "utf8"));
  } catch {
    return [];
  }
}

/** Reads metrics.jsonl while the learner writes it. A run can have thousands of lines, so each is read once and none is kept. */
export class NewMetrics {
  readonly #path: string;
  /** Bytes of the file that were read. */
  #read = 0;
  /** The policy version of the newest line that was returned. */
  #newest = { lineage: 0, iteration: 0 };

  constructor(directory: string) {
    this.#path = join(directory, METRICS);
  }

  /** Returns the complete lines that no earlier call has returned, oldest first; none if the file does not exist yet. */
  take(): MetricsLine[] {
    const content = this.#rest();
    const end = content.lastIndexOf("\n") + 1;
    this.#read += end;
    return linesOf(content.toString("utf8", 0, end)).filter(({ line: { lineage, iteration } }) => {
      const newest = this.#newest;
      const isNew = lineage === newest.lineage ? iteration > newest.iteration : lineage > newest.lineage;
      if (isNew) this.#newest = { lineage, iteration };
      return isNew;
    });
  }

  /** Reads the file from its beginning again, because a learner that starts removes the lines of iterations that it trains again. */
  startOver(): void {
    this.#read = 0;
  }

  #rest(): Buffer {
    let file: number;
    try {
      file = openSync(this.#path, "r");
    } catch {
      return Buffer.alloc(0);
    }
    try {
      const rest = Buffer.alloc(Math.max(0, fstatSync(file).size - this.#read));
      return rest.subarray(0, readSync(file, rest, 0, rest.length, this.#read));
    } finally {
      closeSync(file);
    }
  }
}

/**
 * Returns the first iteration whose best score is a program's. It counts as the program's iteration: a program that was carried over is
 * trained on in a later iteration than it was written in. @param task of a run with several
 */
export function iterationOf(score: number, lines: readonly IterationLine[], task?: string): number | undefined {
  return lines.find((line) => (task === undefined ? line : line.tasks?.[task])?.bestScore === score)?.iteration;
}

/** Returns the complete lines: the text after the last line break is still being written. */
export function linesOf(content: string): MetricsLine[] {
  const lines = content.split("\n").slice(0, -1);
  return lines.map((text) => ({ text, line: JSON.parse(text) }));
}
