/**
 * Does the quickstart learn, or only select? Quickstart runs beside control runs that differ in nothing but a learning
 * rate of 0, so that they execute as many programs; the last three iterations of each are compared.
 */
import { existsSync } from "node:fs";
import { mkdtemp } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import type { IterationMetrics } from "../../learner/metrics/iteration.ts";
import { readMetrics } from "../../learner/metrics/jsonl.ts";
import { lowerBound, mean } from "./bootstrap.ts";
import { finished } from "./processes.ts";
import type { Bench } from "./result.ts";

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url));
const CLI = path("../../controller/cli.ts");
const MANIFEST = path("../../manifests/quickstart/trainingrun.yaml");
const LAST = 3;

const ARMS: Record<string, string[]> = {
  quickstart: [],
  "learning rate 0": ["algorithm.learningRate=0", "algorithm.criticLearningRate=0"],
};

/** Of an iteration; each is better when higher. */
const MEASURES: Record<string, (line: IterationMetrics) => number> = {
  "valid fraction": (line) => line.validFraction,
  // Between the task's rewardRange.worst (0) and .best (1), clipped.
  "score of valid programs, 0 to 1": (line) => line.meanNormalizedScore ?? 0,
  "score, 0 to 1, invalid ones 0": (line) => (line.meanNormalizedScore ?? 0) * line.validFraction,
};

async function run(flags: string[]) {
  const { values } = parseArgs({
    args: flags,
    options: {
      seeds: { type: "string", default: "3" },
      manifest: { type: "string", default: MANIFEST },
      /** Further `--set`s of both arms. */
      set: { type: "string", multiple: true, default: [] },
      /** Keeps the run folders here; a run that is there already and whole is not run again. */
      runs: { type: "string" },
    },
  });
  const directory = values.runs ?? (await mkdtemp(join(tmpdir(), "longrun-learning-")));
  const lines: Record<string, IterationMetrics[][]> = {};
  for (let seed = 0; seed < Number(values.seeds); seed++) {
    for (const [arm, own] of Object.entries(ARMS)) {
      const out = join(directory, `${arm.replaceAll(" ", "-")}-${seed}`);
      const settings = [`seed=${seed}`, "evaluation.before=false", "evaluation.after=false", ...own, ...values.set];
      if (!existsSync(join(out, "report.html"))) {
        process.stderr.write(`${arm}, seed ${seed}: ${out}\n`);
        await finished(process.execPath, [
          CLI,
          "run",
          values.manifest,
          "--out",
          out,
          ...settings.flatMap((s) => ["--set", s]),
        ]);
      }
      lines[arm] ??= [];
      lines[arm].push(await readMetrics(join(out, "metrics.jsonl")));
    }
  }
  const [treated, control] = Object.values(lines) as [IterationMetrics[][], IterationMetrics[][]];
  const last = (runs: IterationMetrics[][], value: (line: IterationMetrics) => number) =>
    runs.map((run) => run.slice(-LAST).map(value));
  const first = (runs: IterationMetrics[][], value: (line: IterationMetrics) => number) =>
    mean(runs.map((run) => value(run[0]!)));
  const programs = (runs: IterationMetrics[][]) =>
    mean(runs.map((run) => run.reduce((sum, line) => sum + line.executed, 0)));
  const compared = Object.entries(MEASURES).map(([measure, value]) => {
    const [a, b] = [last(treated, value), last(control, value)];
    return { measure, value, a: mean(a.map(mean)), b: mean(b.map(mean)), bound: lowerBound(a, b) };
  });
  const rows = compared.map(({ measure, value, a, b, bound }) => ({
    measure,
    "first iteration": first(treated, value).toFixed(3),
    quickstart: a.toFixed(3),
    "learning rate 0": b.toFixed(3),
    difference: (a - b).toFixed(3),
    "95 % lower bound": bound.toFixed(3),
  }));
  const goals = compared.slice(0, 2).map(({ measure, bound }) => ({
    what: `${measure}: lower bound of the difference to the control`,
    goal: "> 0",
    measured: bound.toFixed(3),
    met: bound > 0,
  }));
  const method =
    `${values.seeds} seeds each, mean of the last ${LAST} iterations, programs executed ${programs(treated).toFixed(0)} and ` +
    `${programs(control).toFixed(0)} a run, bootstrap over runs and their iterations`;
  return { rows, goals, method, raw: { set: values.set, lines } };
}

export const learning: Bench = { about: "the quickstart beside runs with a learning rate of 0 (most of an hour)", run };
