/** Runs one manifest with a few different settings, for benchmarks of learning. */
import { existsSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { mean } from "../../learner/evaluation/bootstrap.ts";
import type { IterationMetrics } from "../../learner/metrics/iteration.ts";
import { readMetrics } from "../../learner/metrics/jsonl.ts";
import { finished } from "./processes.ts";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const CLI = path("../../controller/cli.ts");
const MANIFEST = path("../../manifests/quickstart/trainingrun.yaml");

/** Number of iterations at the end of a run that count as the learned result. */
export const LAST = 3;

/** Measures of an iteration; higher is better. */
export const MEASURES: Record<string, (line: IterationMetrics) => number> = {
  "valid fraction": (line) => line.validFraction,
  // Between the task's rewardRange.worst (0) and .best (1), clipped.
  "score of valid programs, 0 to 1": (line) => line.meanNormalizedScore ?? 0,
  "score, 0 to 1, invalid ones 0": (line) => (line.meanNormalizedScore ?? 0) * line.validFraction,
};

export interface Arms {
  seeds: number;
  set: string[];
  /** Lines of metrics by arm and seed. */
  lines: Record<string, IterationMetrics[][]>;
}

/**
 * Runs each arm, a name with settings (`path=value`), with each seed, one run after the other.
 *
 * Flags: `--seeds N`, `--manifest FILE`, `--set path=value` for all arms, and `--runs DIR`, which keeps the run folders; a complete run in
 * there is not repeated.
 */
export async function runArms(arms: Record<string, string[]>, flags: string[], seeds: number): Promise<Arms> {
  const { values } = parseArgs({
    args: flags,
    options: {
      seeds: { type: "string", default: String(seeds) },
      manifest: { type: "string", default: MANIFEST },
      set: { type: "string", multiple: true, default: [] },
      runs: { type: "string" },
    },
  });
  const directory = values.runs ?? (await mkdtemp(join(tmpdir(), "longrun-arms-")));
  const lines: Arms["lines"] = {};
  for (let seed = 0; seed < Number(values.seeds); seed++) {
    for (const [arm, own] of Object.entries(arms)) {
      const out = join(directory, `${arm.replaceAll(" ", "-")}-${seed}`);
      const settings = [`seed=${seed}`, "evaluation.before=false", "evaluation.after=false", ...own, ...values.set];
      if (!existsSync(join(out, "report.html"))) {
        process.stderr.write(`${arm}, seed ${seed}: ${out}\n`);
        const set = settings.flatMap((setting) => ["--set", setting]);
        await finished(process.execPath, [CLI, "run", values.manifest, "--out", out, ...set]);
      }
      lines[arm] ??= [];
      lines[arm].push(await readMetrics(join(out, "metrics.jsonl")));
    }
  }
  return { seeds: Number(values.seeds), set: values.set, lines };
}

type Value = (line: IterationMetrics) => number;

/** Returns the last iterations of each run. */
export const last = (runs: IterationMetrics[][], value: Value) => runs.map((run) => run.slice(-LAST).map(value));

/** Returns the mean over the runs of the first iteration, which the starting policy wrote. */
export const first = (runs: IterationMetrics[][], value: Value) => mean(runs.map((run) => value(run[0]!)));

/** Returns the number of executed programs, mean over the runs. */
export const programs = (runs: IterationMetrics[][]) =>
  mean(runs.map((run) => run.reduce((sum, line) => sum + line.executed, 0)));
