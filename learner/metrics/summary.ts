/** `summary.json` of a run folder: what is known of the run as a whole. Written anew whenever a part of it changes. */
import { readFile, rename, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Evaluation } from "../evaluation/figures.ts";

/** What the starting policy was pretrained on, and how far that alone would have come. */
export interface CorpusSummary {
  programs: number;
  /** Score of its best program on the run's task; absent if it was never measured. */
  bestScore?: number;
  /** What that program is, e.g. its kind of model. */
  bestProgram?: string;
}

export interface RunSummary {
  state: "running" | "succeeded" | "failed" | "stopped";
  /** For a person: what blocks or failed, and how to mend it. */
  message: string;
  startedAt: string;
  updatedAt: string;
  /** That are finished. */
  iterations: number;
  elapsedSeconds: number;
  evaluation: Evaluation;
  corpus?: CorpusSummary;
  /** longrun, node, onnxruntime, python, numpy, … as found. */
  versions: Record<string, string>;
  isolationLevel?: string;
}

/** Of a run that begins. */
export function newSummary(corpus: CorpusSummary | undefined, versions: Record<string, string>): RunSummary {
  const now = new Date().toISOString();
  return {
    state: "running",
    message: "",
    startedAt: now,
    updatedAt: now,
    iterations: 0,
    elapsedSeconds: 0,
    evaluation: {},
    ...(corpus && { corpus }),
    versions,
  };
}

export async function writeSummary(runDirectory: string, summary: RunSummary): Promise<void> {
  const path = join(runDirectory, "summary.json");
  await writeFile(`${path}.new`, `${JSON.stringify(summary, null, 2)}\n`, { flush: true });
  await rename(`${path}.new`, path);
}

/** Undefined if there is none yet. */
export async function readSummary(runDirectory: string): Promise<RunSummary | undefined> {
  try {
    return JSON.parse(await readFile(join(runDirectory, "summary.json"), "utf8")) as RunSummary;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw error;
  }
}
