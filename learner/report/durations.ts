/** Explains a run's durations: launched against trained, and the effect of the weighting (eq. 3). */
import { duration, percent } from "../metrics/format.ts";
import type { IterationMetrics } from "../metrics/iteration.ts";
import { share, sum } from "../metrics/statistics.ts";

/** Returns the sum of all lines' histograms, without empty bins at both ends; empty if no program ran. */
export function addedHistogram(lines: readonly IterationMetrics[]) {
  const edges = lines[0]?.durationHistogram.edgesSeconds ?? [];
  const added = (kind: "launched" | "trained") =>
    edges.map((_, bin) => sum(lines.map((line) => line.durationHistogram[kind][bin] ?? 0)));
  const [launched, trained] = [added("launched"), added("trained")];
  const used = edges.map((_, bin) => launched[bin]! + trained[bin]! > 0);
  const [first, last] = [used.indexOf(true), used.lastIndexOf(true)];
  if (first < 0) return [];
  return edges.slice(first, last + 1).map((edge, index) => {
    const bin = first + index;
    const next = edges[bin + 1];
    return {
      label: next === undefined ? `≥ ${edge}` : `${edge}–${next}`,
      launchedShare: share(launched[bin]!, sum(launched)) ?? 0,
      trainedShare: share(trained[bin]!, sum(trained)) ?? 0,
    };
  });
}

/** If the means differ by a smaller share, launched and trained count as equal. */
const TOLERANCE = 0.1;

/** Returns one paragraph for the report; empty if no program ran. */
export function durationSentence(lines: readonly IterationMetrics[], weighting: string, collection: string): string {
  const [launched, trained] = [runMean(lines, "launched"), runMean(lines, "trained")];
  if (launched === null || trained === null) return "";
  const difference = trained / launched - 1;
  const measured = `Programs that ended ran ${duration(launched)} on average, those that were trained on ${duration(trained)}`;
  const setting = `durationWeighting ${weighting}, collection ${collection}`;
  if (difference < -TOLERANCE) {
    const kept =
      weighting === "Off"
        ? "Nothing makes up for it, so the policy drifts towards fast programs."
        : "The weights make up for it only in part: no weight restores a sample that was never seen.";
    return `${measured}: ${percent(-difference)} shorter. Slow work is being lost before it can train (${setting}). ${kept}`;
  }
  if (difference > TOLERANCE)
    return `${measured}: ${percent(difference)} longer (${setting}). Fast work is being lost, or slow work from before the first line still trains.`;
  const counts = WITHOUT_LOSS[weighting] ?? `${PREFERS_SLOW}.`;
  return `${measured}: they agree, so no slow work is being lost (${setting}). ${counts}`;
}

const PREFERS_SLOW =
  "Weighting by duration therefore does not repair a loss. It prefers slow programs, by choice: one that runs twice as long counts nearly twice as much";
/** The effect of a durationWeighting if no slow work is lost. */
const WITHOUT_LOSS: Readonly<Record<string, string>> = {
  Off: "Every program counts the same, fast or slow.",
  Completion: "Completion weights are near 1 then: fast and slow programs count the same.",
  Capped: `${PREFERS_SLOW}, up to the cap.`,
};

/** Returns the mean over all programs of the run, null for none. Lines contain means and counts. */
function runMean(lines: readonly IterationMetrics[], kind: "launched" | "trained"): number | null {
  const meanOf = (line: IterationMetrics) => line[`${kind}MeanDurationSeconds`];
  const programsOf = (line: IterationMetrics) => sum(line.durationHistogram[kind]);
  const measured = lines.filter((line) => meanOf(line) !== null);
  return share(sum(measured.map((line) => meanOf(line)! * programsOf(line))), sum(measured.map(programsOf)));
}
