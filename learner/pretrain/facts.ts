import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { CorpusSummary } from "../metrics/summary.ts";

/** What a model folder says of the corpus that it was pretrained on. */
export interface Corpus {
  /** As `programHashes` makes them. */
  hashes: Buffer;
  summary: CorpusSummary;
}

/** Undefined if `folder` was not made by `longrun pretrain`. */
export function readCorpus(folder: string, task: string): Corpus | undefined {
  const path = join(folder, "corpus.hashes");
  if (!existsSync(path)) return undefined;
  const hashes = readFileSync(path);
  // Measured apart from pretraining, by executing the corpus (test/bench/corpus.ts).
  const measured = join(folder, "corpus-best.json");
  const best = existsSync(measured) ? JSON.parse(readFileSync(measured, "utf8"))[task] : undefined;
  const programs = hashes.length / 8;
  return { hashes, summary: { programs, ...(best && { bestScore: best.score, bestProgram: best.family }) } };
}
