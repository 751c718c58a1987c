/** Builds the report's plots from the lines of `metrics.jsonl`. Pure: svg.ts renders them. */
import type { TopLevelSpec } from "vega-lite";
import { guardNames } from "../grading/guards.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { sum } from "../metrics/statistics.ts";
import { addedHistogram } from "./durations.ts";
import { guardWords } from "./guards.ts";
import { type Axis, groupedPlot, heatPlot, linePlot, type Series, type Size, stackPlot } from "./plots.ts";
import type { ReportedTask, RunFolder } from "./run-folder.ts";
import { color, PALETTE } from "./theme.ts";

export interface Chart {
  title: string;
  caption: string;
  legend: Series[];
  size: Size;
  /** Undefined if nothing was measured yet; `empty` then says why. */
  spec: TopLevelSpec | undefined;
  empty: string;
}

type ChartSection = "learning" | "programs" | "durations" | "optimisation" | "time";

type Lines = readonly IterationMetrics[];

/** Returns the value that is drawn for a line; null values are left out. */
type Value = (line: IterationMetrics) => number | null | undefined;
type Measured = Series & { value: Value };

interface Text {
  title: string;
  caption: string;
  y: Axis;
}

const ITERATION = { title: "iteration", whole: true };
const NOT_YET = "Nothing measured yet.";
const NO_VALID = "No valid program yet, so there is no score.";
const SHARE = { format: ".0%", domain: [0, 1] as [number, number] };

/** A part of a stack: its name in the metrics, words, colour. */
interface Part extends Series {
  name: string;
}

const part = (name: string, shade: Parameters<typeof color>[0], label = name): Part => ({
  name,
  label,
  color: color(shade),
});

/** The first is at the bottom of the stack. */
const OUTCOMES = [
  ...[part("completed", "green"), part("failed", "red"), part("timedOut", "orange", "timed out")],
  ...[part("outOfMemory", "purple", "out of memory"), part("outputLimit", "brown", "output limit")],
  ...[part("notExecuted", "grey", "no program"), part("lost", "pale")],
];

const PHASES = [
  ...[part("generate", "blue"), part("execute", "orange"), part("evaluate", "teal"), part("train", "green")],
  ...[part("checkpoint", "purple"), part("other", "grey")],
];

/** Uses of the engine's time, then the reasons why it was idle. */
const USES = [
  ...[part("generating", "blue"), part("updating", "green"), part("idleActors", "orange", "idle: too few actors")],
  ...[part("idlePrograms", "yellow", "idle: programs run"), part("idleStaleness", "purple", "idle: maxStaleness")],
  part("idleOther", "grey", "idle: other"),
];

const GUARDS = { sampleSubmission: color("orange"), constant: color("purple"), perfect: color("red") };

export function chartsOf({ lines, manifest, tasks }: RunFolder): Record<ChartSection, Chart[]> {
  const baseline = manifest.spec?.algorithm?.baseline;
  const line = (title: string, caption: string, y: Text["y"], ...series: Measured[]) =>
    lineChart(lines, { title, caption, y }, series);
  const third = (
    title: string,
    caption: string,
    value: Value,
    hue: (typeof PALETTE)[number],
    unit: string,
    format?: string,
  ) => {
    const text = { title, caption, y: { title: unit, ...(format && { format, zero: format.endsWith("%") }) } };
    return lineChart(lines, text, [{ label: title, color: color(hue), value }], { size: "third" });
  };
  return {
    learning: [
      ...tasks.flatMap((task) => scores(lines, task, tasks.length > 1)),
      line(
        "Valid programs",
        "Share of the batch that ended by itself and left a submission that could be graded.",
        { title: "share of samples", ...SHARE },
        { label: tasks.length > 1 ? "all tasks" : "valid", color: color("green"), value: (it) => it.validFraction },
        ...(tasks.length > 1 ? tasks : []).map(({ name }, index) => ({
          label: name,
          color: color(shade(index)),
          dashed: true,
          value: (it: IterationMetrics) => it.tasks[name]?.validFraction,
        })),
      ),
      line(
        "Mean reward",
        "What PPO is given: the score on rewardRange if valid, else a failure reward and a little for each marker.",
        { title: "reward" },
        { label: "reward", color: color("purple"), value: (it) => it.meanReward },
      ),
    ],
    programs: [outcomes(lines), families(lines), markers(lines), ...flagged(lines)],
    durations: [
      histogram(lines),
      line(
        "Mean duration",
        "Launched: all programs that ended. Trained: those in batches. Weighted: by the duration weights.",
        { title: "seconds", zero: true },
        { label: "launched", color: "var(--ink)", dashed: true, value: (it) => it.launchedMeanDurationSeconds },
        { label: "trained", color: color("blue"), value: (it) => it.trainedMeanDurationSeconds },
        { label: "trained, weighted", color: color("orange"), value: (it) => it.weightedMeanDurationSeconds },
      ),
      line(
        "Effective sample size",
        "How many equally weighted samples the duration weights leave of a batch.",
        { title: "samples", zero: true },
        { label: "batch", color: color("grey"), dashed: true, value: (it) => it.samples },
        { label: "effective", color: color("blue"), value: (it) => it.effectiveSampleSize },
      ),
      line(
        "Largest duration weight",
        "The mean weight of a batch is 1; one far above it lets a single program decide the update.",
        { title: "weight", zero: true },
        { label: "largest", color: color("red"), value: (it) => it.maxDurationWeight },
      ),
    ],
    optimisation: [
      third(
        "KL to the starting policy",
        "How far the policy has moved from its starting weights.",
        (it) => it.kl,
        "blue",
        "nats per token",
      ),
      third(
        "Entropy",
        "How varied the policy writes; near 0 it always writes the same.",
        (it) => it.entropy,
        "teal",
        "nats per token",
      ),
      third(
        "Clipped tokens",
        "Tokens whose update PPO limited, because their probability changed much.",
        (it) => it.clipFraction,
        "orange",
        "share of tokens",
        ".1%",
      ),
      third(
        "Gradient norm, policy",
        "Mean size of the gradients, before gradientClip limits them.",
        (it) => it.gradientNorm,
        "purple",
        "before clipping",
      ),
      third(
        "Largest ratio of an update",
        "Most that one update raised the probability of a token.",
        (it) => it.ratioMax,
        "red",
        "π new / π old",
      ),
      // The most informative metric for the chosen baseline.
      baseline === "BatchMean"
        ? third(
            "Lag",
            "How many iterations older the policy version that wrote a sample is.",
            (it) => it.meanLag,
            "green",
            "iterations, mean",
          )
        : baseline === undefined || baseline === "Critic"
          ? third(
              "Critic: explained variance",
              "Share of the rewards' variance that the critic predicts; 0 or less: nothing.",
              (it) => it.explainedVariance,
              "green",
              "share of returns",
            )
          : third(
              "Groups of one reward, which teach nothing",
              "Groups whose samples all earned the same, so that none is better than another.",
              (it) => it.zeroSpreadShare,
              "green",
              "share of groups",
              ".0%",
            ),
      third(
        "Responses cut at maxResponseTokens",
        "Responses that reached this limit before they ended.",
        (it) => it.truncatedFraction ?? null,
        "brown",
        "share of samples",
        ".0%",
      ),
      third("Learning rate, policy", "Step size of the optimiser.", (it) => it.learningRate, "blue", "per step", ".1e"),
    ],
    time: [
      ...engine(lines),
      phases(lines),
      line(
        "Who waits",
        "Actors: share of slot-seconds that executed a program. Learner: share of the iteration spent waiting.",
        { title: "share", ...SHARE },
        { label: "actors busy", color: color("orange"), value: (it) => it.actorBusyShare },
        { label: "learner idle", color: color("grey"), dashed: true, value: (it) => it.learnerIdleShare },
      ),
    ],
  };
}

function scores(lines: Lines, { name, metric, better }: ReportedTask, several: boolean): Chart[] {
  const suffix = several ? ` of ${name}` : "";
  const caption = better ? `${better === "lower" ? "Lower" : "Higher"} is better.` : "";
  const series: Measured[] = [
    { label: "best so far", color: color("blue"), step: true, value: (line) => line.tasks[name]?.bestScoreSoFar },
    { label: "mean of the valid programs", color: color("orange"), value: (line) => line.tasks[name]?.meanScore },
  ];
  const plot = (by: string, options: LineOptions) =>
    lineChart(lines, { title: `Score${suffix} by ${by}`, caption, y: { title: metric } }, series, {
      ...options,
      empty: NO_VALID,
    });
  const minutes = { title: "minutes since the start", zero: true };
  return [plot("iteration", {}), plot("time", { x: minutes, at: (line) => line.elapsedSeconds / 60 })];
}

function outcomes(lines: Lines): Chart {
  const text = {
    title: "What became of the programs",
    caption: "Completed programs may still leave a submission that cannot be graded.",
    y: { title: "share of samples", format: ".0%" },
  };
  return stackChart(lines, text, (line) => line.outcomes, OUTCOMES);
}

/** The families with the largest share over the run; all others are one series. */
function families(lines: Lines): Chart {
  const totals = new Map<string, number>();
  for (const line of lines) {
    for (const [name, share] of Object.entries(line.families)) totals.set(name, (totals.get(name) ?? 0) + share);
  }
  const ranked = [...totals.keys()].sort((a, b) => totals.get(b)! - totals.get(a)!);
  const rest = ranked.slice(PALETTE.length);
  const text = {
    title: "Kinds of model",
    caption: "Which model the executed programs fit. One that takes over shows here before it shows in the score.",
    y: { title: "share of executed programs", format: ".0%" },
  };
  const others = ({ families: of }: IterationMetrics) => ({ others: sum(rest.map((name) => of[name] ?? 0)) });
  const shown = ranked.slice(0, PALETTE.length).map((name, index) => part(name, shade(index)));
  return stackChart(lines, text, (line) => ({ ...line.families, ...others(line) }), [...shown, part("others", "grey")]);
}

function markers(lines: Lines): Chart {
  const cells = lines.flatMap((line) =>
    Object.entries(line.markers).map(([row, share]) => ({ x: line.iteration, row, share })),
  );
  return {
    title: "How far the programs get",
    caption: "Share of the executed programs that reached each marker; the stronger the colour, the more.",
    legend: [],
    size: "wide",
    spec: cells.length > 0 ? heatPlot(cells, ITERATION, color("blue")) : undefined,
    empty: NOT_YET,
  };
}

/** Returns a chart of flagged submissions, or none if no guard flagged any. */
function flagged(lines: Lines): Chart[] {
  const seen = guardNames.filter((guard) => lines.some((line) => (line.guards?.[guard] ?? 0) > 0));
  if (seen.length === 0) return [];
  const text = {
    title: "Flagged submissions",
    caption: "Valid submissions that look as if no model had made them. One submission can have several flags.",
    y: { title: "share of samples", format: ".1%", zero: true },
  };
  const series = seen.map((guard): Measured => {
    const value: Value = ({ samples, guards }) => (samples > 0 ? (guards?.[guard] ?? 0) / samples : null);
    return { label: guardWords(guard), color: GUARDS[guard], value };
  });
  return [lineChart(lines, text, series)];
}

function histogram(lines: Lines): Chart {
  const [launched, trained] = [
    { label: "launched (all that ended)", color: color("grey") },
    { label: "trained", color: color("blue") },
  ];
  const bars = addedHistogram(lines).flatMap(({ label, launchedShare, trainedShare }) => [
    { group: label, y: launchedShare, series: launched.label },
    { group: label, y: trainedShare, series: trained.label },
  ]);
  const legend = [launched, trained];
  const text = { x: { title: "seconds that a program ran" }, y: { title: "share of programs", format: ".0%" } };
  return {
    title: "Durations over the whole run",
    caption: "Where the two differ, programs ran and were thrown away, so the policy never learned from them.",
    legend,
    size: "half",
    spec: bars.length > 0 ? groupedPlot(bars, legend, text, "half") : undefined,
    empty: "No program has run yet.",
  };
}

/** Lines of an earlier longrun lack `engineSeconds`; if all lack it, there is no chart. */
function engine(lines: Lines): Chart[] {
  const measured = lines.filter(({ engineSeconds }) => engineSeconds);
  if (measured.length === 0) return [];
  const text = {
    title: "What the engine does",
    caption: "It generates solutions or updates the policy, one at a time; else it idles, for one of these reasons.",
    y: { title: "share of the iteration", format: ".0%" },
  };
  return [stackChart(measured, text, ({ engineSeconds }) => ({ ...engineSeconds }), USES, { size: "wide" })];
}

function phases(lines: Lines): Chart {
  const unknown = new Set(lines.flatMap((line) => Object.keys(line.secondsByPhase)));
  for (const { name } of PHASES) unknown.delete(name);
  const parts = [...PHASES, ...[...unknown].map((name, index) => part(name, shade(PHASES.length + index)))];
  const text = {
    title: "Where the time goes",
    caption: "Wall-clock seconds of the learner; in execute its engine waits for programs to end.",
    y: { title: "seconds" },
  };
  return stackChart(lines, text, (line) => line.secondsByPhase, parts, { shares: false });
}

interface LineOptions {
  x?: Axis;
  /** Returns a line's position on the x axis. */
  at?: (line: IterationMetrics) => number;
  size?: Size;
  empty?: string;
}

function lineChart(lines: Lines, { title, caption, y }: Text, series: Measured[], options: LineOptions = {}): Chart {
  const { x = ITERATION, at = (line) => line.iteration, size = "half", empty = NOT_YET } = options;
  const points = lines.flatMap((line) =>
    series.flatMap(({ label, value }) => {
      const height = value(line);
      return Number.isFinite(height) ? [{ x: at(line), y: height!, series: label }] : [];
    }),
  );
  const measured = series.filter(({ label }) => points.some((point) => point.series === label));
  const spec = measured.length > 0 ? linePlot(points, measured, x, y, size) : undefined;
  return { title, caption, legend: series.length > 1 ? measured : [], size, spec, empty };
}

/** Stacks the parts of a record, without parts that no line has. @param shares scales every bar to 1 */
function stackChart(
  lines: Lines,
  { title, caption, y }: Text,
  record: (line: IterationMetrics) => Readonly<Record<string, number>>,
  parts: readonly Part[],
  { shares = true, size = "half" }: { shares?: boolean; size?: Size } = {},
): Chart {
  const seen = parts.filter(({ name }) => lines.some((line) => (record(line)[name] ?? 0) > 0));
  const bars = lines.flatMap((line) =>
    seen.map(({ name, label }) => ({ x: line.iteration, y: record(line)[name] ?? 0, series: label })),
  );
  const spec = bars.length > 0 ? stackPlot(bars, seen, { x: ITERATION, y, size, shares }) : undefined;
  return { title, caption, legend: seen, size, spec, empty: NOT_YET };
}

const shade = (index: number) => PALETTE[index % PALETTE.length]!;
