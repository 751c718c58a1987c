/** Reads the finished iterations of a run folder. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { IterationLine } from "./terminal.ts";

/** @returns the complete lines of metrics.jsonl, oldest first; none if the file does not exist yet */
export function readMetrics(directory: string): { text: string; line: IterationLine }[] {
  let content: string;
  try {
    content = readFileSync(join(directory, "metrics.jsonl"), "utf8");
  } catch {
    return [];
  }
  // The text after the last line break is still being written.
  const lines = content.split("\n").slice(0, -1);
  return lines.map((text) => ({ text, line: JSON.parse(text) }));
}
