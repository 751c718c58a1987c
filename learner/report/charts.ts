/** Which plots the report has, from the lines of `metrics.jsonl`. Pure: rendering is svg.ts. */
import type { TopLevelSpec } from "vega-lite";
import { guardNames } from "../grading/guards.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { addedHistogram, type HistogramBin } from "./durations.ts";
import { guardWords } from "./guards.ts";
import { groupedPlot, heatPlot, linePlot, type Series, type Size, stackPlot } from "./plots.ts";
import type { ReportedTask, RunFolder } from "./run-folder.ts";
import { color, PALETTE } from "./theme.ts";

export interface Chart {
  title: string;
  /** What it means, below the plot. */
  caption: string;
  legend: Series[];
  size: Size;
  /** Undefined if nothing was measured yet; `empty` then says why. */
  spec: TopLevelSpec | undefined;
  empty: string;
}

export type ChartSection = "learning" | "programs" | "durations" | "optimisation" | "time";

type Lines = readonly IterationMetrics[];

const ITERATION = { title: "iteration", whole: true };
const NOT_YET = "Nothing measured yet.";
const NO_VALID = "No valid program yet, so there is no score.";

/** Name in the metrics, words, colour; the first is at the bottom of the stack. */
const OUTCOMES: readonly [string, string, string][] = [
  ["completed", "completed", color("green")],
  ["failed", "failed", color("red")],
  ["timedOut", "timed out", color("orange")],
  ["outOfMemory", "out of memory", color("purple")],
  ["outputLimit", "output limit", color("brown")],
  ["notExecuted", "no program", color("grey")],
  ["lost", "lost", color("pale")],
];

const PHASES: readonly [string, string][] = [
  ["generate", color("blue")],
  ["execute", color("orange")],
  ["evaluate", color("teal")],
  ["train", color("green")],
  ["checkpoint", color("purple")],
  ["other", color("grey")],
];

export function chartsOf({ lines, manifest, tasks }: RunFolder): Record<ChartSection, Chart[]> {
  return {
    learning: [
      ...tasks.flatMap((task) => scores(lines, task, tasks.length > 1)),
      validity(lines, tasks),
      reward(lines),
    ],
    programs: [outcomes(lines), families(lines), markers(lines), ...flagged(lines)],
    durations: [histogram(addedHistogram(lines)), meanDurations(lines), sampleSize(lines), largestWeight(lines)],
    optimisation: [
      third("KL to the starting policy", lines, (line) => line.kl, "blue", "nats per token"),
      third("Entropy", lines, (line) => line.entropy, "teal", "nats per token"),
      third("Clipped tokens", lines, (line) => line.clipFraction, "orange", "share of tokens", ".1%"),
      third("Gradient norm, policy", lines, (line) => line.gradientNorm, "purple", "before clipping"),
      third("Largest ratio of an update", lines, (line) => line.ratioMax, "red", "π new / π old"),
      ofBaseline(lines, manifest.spec?.algorithm?.baseline),
      third("Responses cut", lines, (line) => line.truncatedFraction ?? null, "brown", "share of samples", ".0%"),
      third("Learning rate, policy", lines, (line) => line.learningRate ?? null, "blue", "per step", ".1e"),
    ],
    time: [phases(lines), busy(lines)],
  };
}

/** What tells most about the baseline that was chosen. */
function ofBaseline(lines: Lines, baseline = "Critic"): Chart {
  if (baseline === "Critic")
    return third("Critic: explained variance", lines, (line) => line.explainedVariance, "green", "share of returns");
  if (baseline === "BatchMean") return third("Lag", lines, (line) => line.meanLag, "green", "iterations, mean");
  const none = (line: IterationMetrics) => line.zeroSpreadShare ?? null;
  return third("Groups of one reward, which teach nothing", lines, none, "green", "share of groups", ".0%");
}

function scores(lines: Lines, { name, metric, better }: ReportedTask, several: boolean): Chart[] {
  const suffix = several ? ` of ${name}` : "";
  const best: Series = { label: "best so far", color: color("blue"), step: true };
  const mean: Series = { label: "mean of the valid programs", color: color("orange") };
  const caption = better ? `${better === "lower" ? "Lower" : "Higher"} is better.` : "";
  const plot = (title: string, x: LineText["x"], at: (line: IterationMetrics) => number) => {
    const points = lines.flatMap((line) => [
      { x: at(line), y: line.tasks[name]?.bestScoreSoFar ?? null, series: best.label },
      { x: at(line), y: line.tasks[name]?.meanScore ?? null, series: mean.label },
    ]);
    return lineChart({ title, caption, points, series: [best, mean], x, y: { title: metric } }, NO_VALID);
  };
  return [
    plot(`Score${suffix} by iteration`, ITERATION, (line) => line.iteration),
    plot(
      `Score${suffix} by time`,
      { title: "minutes since the start", zero: true },
      (line) => line.elapsedSeconds / 60,
    ),
  ];
}

function validity(lines: Lines, tasks: readonly ReportedTask[]): Chart {
  const names = tasks.length > 1 ? tasks.map(({ name }) => name) : [];
  const all: Series = { label: names.length > 0 ? "all tasks" : "valid", color: color("green") };
  const perTask = names.map((label, index) => ({ label, color: palette(index), dashed: true }));
  return lineChart({
    title: "Valid programs",
    caption: "Share of the batch that ended by itself and left a submission that could be graded.",
    points: lines.flatMap((line) => [
      { x: line.iteration, y: line.validFraction, series: all.label },
      ...names.map((name) => ({ x: line.iteration, y: line.tasks[name]?.validFraction ?? null, series: name })),
    ]),
    series: [all, ...perTask],
    y: { title: "share of samples", format: ".0%", domain: [0, 1] },
  });
}

function reward(lines: Lines): Chart {
  return lineChart({
    title: "Mean reward",
    caption: "What PPO is given: the score if valid, else a failure reward and something for each marker reached.",
    points: lines.map((line) => ({ x: line.iteration, y: line.meanReward, series: "reward" })),
    series: [{ label: "reward", color: color("purple") }],
    y: { title: "reward" },
  });
}

function outcomes(lines: Lines): Chart {
  const seen = OUTCOMES.filter(([name]) => lines.some((line) => (line.outcomes[name] ?? 0) > 0));
  return stackChart({
    title: "What became of the programs",
    caption: "Completed programs may still leave a submission that cannot be graded.",
    bars: lines.flatMap((line) =>
      seen.map(([name, label]) => ({ x: line.iteration, y: line.outcomes[name] ?? 0, series: label })),
    ),
    series: seen.map(([, label, shade]) => ({ label, color: shade })),
    y: { title: "share of samples", format: ".0%" },
    shares: true,
  });
}

/** The families with the largest share over the run; the rest is one. */
function families(lines: Lines): Chart {
  const totals = new Map<string, number>();
  for (const line of lines) {
    for (const [name, share] of Object.entries(line.families)) totals.set(name, (totals.get(name) ?? 0) + share);
  }
  const ranked = [...totals.keys()].sort((a, b) => totals.get(b)! - totals.get(a)!);
  const shown = ranked.slice(0, PALETTE.length);
  const rest = (line: IterationMetrics) =>
    ranked.slice(PALETTE.length).reduce((sum, name) => sum + (line.families[name] ?? 0), 0);
  const series = shown.map((label, index) => ({ label, color: palette(index) }));
  return stackChart({
    title: "Kinds of model",
    caption: "Which model the executed programs fit. One that takes over shows here before it shows in the score.",
    bars: lines.flatMap((line) => [
      ...shown.map((name) => ({ x: line.iteration, y: line.families[name] ?? 0, series: name })),
      ...(rest(line) > 0 ? [{ x: line.iteration, y: rest(line), series: "others" }] : []),
    ]),
    series: ranked.length > shown.length ? [...series, { label: "others", color: color("grey") }] : series,
    y: { title: "share of executed programs", format: ".0%" },
    shares: true,
  });
}

function markers(lines: Lines): Chart {
  const cells = lines.flatMap((line) =>
    Object.entries(line.markers).map(([row, share]) => ({ x: line.iteration, row, share })),
  );
  return {
    title: "How far the programs come",
    caption: "Share of the executed programs that reached each marker; the darker, the more.",
    legend: [],
    size: "wide",
    spec: cells.length > 0 ? heatPlot(cells, ITERATION, color("blue"), "wide") : undefined,
    empty: NOT_YET,
  };
}

/** Where nothing was flagged there is nothing to draw. */
function flagged(lines: Lines): Chart[] {
  const seen = guardNames.filter((guard) => lines.some((line) => (line.guards?.[guard] ?? 0) > 0));
  if (seen.length === 0) return [];
  const colors = { sampleSubmission: color("orange"), constant: color("purple"), perfect: color("red") };
  const share = (line: IterationMetrics, found = 0) => (line.samples > 0 ? found / line.samples : null);
  return [
    lineChart({
      title: "Flagged submissions",
      caption: "Valid, and yet earned by no model. One submission can have several of these.",
      points: lines.flatMap((line) =>
        seen.map((guard) => ({
          x: line.iteration,
          y: share(line, line.guards?.[guard]),
          series: guardWords(guard),
        })),
      ),
      series: seen.map((guard) => ({ label: guardWords(guard), color: colors[guard] })),
      y: { title: "share of samples", format: ".1%", zero: true },
    }),
  ];
}

function histogram(bins: HistogramBin[]): Chart {
  const series = [
    { label: "launched (all that ended)", color: color("grey") },
    { label: "trained", color: color("blue") },
  ];
  const bars = bins.flatMap((bin) => [
    { group: bin.label, y: bin.launchedShare, series: series[0]!.label },
    { group: bin.label, y: bin.trainedShare, series: series[1]!.label },
  ]);
  const text = { x: { title: "seconds that a program ran" }, y: { title: "share of programs", format: ".0%" } };
  return {
    title: "Durations over the whole run",
    caption: "Where the two differ, programs were thrown away that had run, and the policy never learned from them.",
    legend: series,
    size: "half",
    spec: bars.length > 0 ? groupedPlot(bars, series, text, "half") : undefined,
    empty: "No program has run yet.",
  };
}

function meanDurations(lines: Lines): Chart {
  const series: Series[] = [
    { label: "launched", color: "var(--ink)", dashed: true },
    { label: "trained", color: color("blue") },
    { label: "trained, weighted", color: color("orange") },
  ];
  return lineChart({
    title: "Mean duration",
    caption: "Weighted: as the policy gradient counts the programs.",
    points: lines.flatMap((line) => [
      { x: line.iteration, y: line.launchedMeanDurationSeconds, series: "launched" },
      { x: line.iteration, y: line.trainedMeanDurationSeconds, series: "trained" },
      { x: line.iteration, y: line.weightedMeanDurationSeconds, series: "trained, weighted" },
    ]),
    series,
    y: { title: "seconds", zero: true },
  });
}

function sampleSize(lines: Lines): Chart {
  return lineChart({
    title: "Effective sample size",
    caption: "How many equally weighted samples the duration weights leave of a batch.",
    points: lines.flatMap((line) => [
      { x: line.iteration, y: line.samples, series: "batch" },
      { x: line.iteration, y: line.effectiveSampleSize, series: "effective" },
    ]),
    series: [
      { label: "batch", color: color("grey"), dashed: true },
      { label: "effective", color: color("blue") },
    ],
    y: { title: "samples", zero: true },
  });
}

function largestWeight(lines: Lines): Chart {
  return lineChart({
    title: "Largest duration weight",
    caption: "The mean weight of a batch is 1; one far above it lets a single program decide the update.",
    points: lines.map((line) => ({ x: line.iteration, y: line.maxDurationWeight, series: "largest" })),
    series: [{ label: "largest", color: color("red") }],
    y: { title: "weight", zero: true },
  });
}

function phases(lines: Lines): Chart {
  const known = new Map(PHASES);
  const names = new Set([...known.keys(), ...lines.flatMap((line) => Object.keys(line.secondsByPhase))]);
  const seen = [...names].filter((name) => lines.some((line) => (line.secondsByPhase[name] ?? 0) > 0));
  return stackChart({
    title: "Where the time goes",
    caption: "Wall-clock seconds of the learner; execute is waiting for programs to end.",
    bars: lines.flatMap((line) =>
      seen.map((name) => ({ x: line.iteration, y: line.secondsByPhase[name] ?? 0, series: name })),
    ),
    series: seen.map((label, index) => ({ label, color: known.get(label) ?? palette(index) })),
    y: { title: "seconds" },
  });
}

function busy(lines: Lines): Chart {
  return lineChart({
    title: "Who waits",
    caption: "Actors: share of slot-seconds that executed a program. Learner: share of the iteration spent waiting.",
    points: lines.flatMap((line) => [
      { x: line.iteration, y: line.actorBusyShare, series: "actors busy" },
      { x: line.iteration, y: line.learnerIdleShare, series: "learner idle" },
    ]),
    series: [
      { label: "actors busy", color: color("orange") },
      { label: "learner idle", color: color("grey"), dashed: true },
    ],
    y: { title: "share", format: ".0%", domain: [0, 1] },
  });
}

function third(
  title: string,
  lines: Lines,
  value: (line: IterationMetrics) => number | null,
  shade: (typeof PALETTE)[number],
  unit: string,
  format?: string,
): Chart {
  const points = lines.map((line) => ({ x: line.iteration, y: value(line), series: title }));
  const y = { title: unit, ...(format && { format }) };
  return lineChart({ title, caption: "", points, series: [{ label: title, color: color(shade) }], y, size: "third" });
}

type LineText = Omit<Parameters<typeof linePlot>[0], "x" | "size"> & {
  title: string;
  caption: string;
  x?: Parameters<typeof linePlot>[0]["x"];
  size?: Size;
};

function lineChart({ title, caption, x = ITERATION, size = "half", ...plot }: LineText, empty = NOT_YET): Chart {
  const measured = plot.series.filter((one) =>
    plot.points.some((point) => point.series === one.label && point.y !== null),
  );
  const spec = measured.length > 0 ? linePlot({ ...plot, series: measured, x, size }) : undefined;
  return { title, caption, legend: plot.series.length > 1 ? measured : [], size, spec, empty };
}

type StackText = Omit<Parameters<typeof stackPlot>[0], "x" | "size"> & { title: string; caption: string };

function stackChart({ title, caption, ...plot }: StackText): Chart {
  const size = "half";
  const spec = plot.bars.length > 0 ? stackPlot({ ...plot, x: ITERATION, size }) : undefined;
  return { title, caption, legend: plot.series, size, spec, empty: NOT_YET };
}

function palette(index: number): string {
  return color(PALETTE[index % PALETTE.length]!);
}
