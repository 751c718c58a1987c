/** Draws labels from signals, and says what predictions the signals alone allow: the known answer that no program can do much better than. */
import type { MetricName } from "../../grading/metrics.ts";
import type { Domain } from "./domains.ts";
import type { Draws } from "./random.ts";

export interface Target {
  name: string;
  kind: Kind;
  labels: string[];
  /** Returns a row's best prediction for the columns of a submission. */
  known(row: number, columns: readonly string[]): string[];
}

export const kinds = ["regression", "positive", "binary", "classes", "levels", "ranking", "extraction"] as const;
export type Kind = (typeof kinds)[number];

interface TargetOptions {
  metric: MetricName;
  domain: Domain;
  rows: number;
  /** Standard deviation of the noise on a signal of deviation 1; for classes how flat their probabilities are. */
  noise: number;
  /** Share of rows with label 1. */
  positives: number;
  classes: number;
  signal: () => Float64Array;
  draws: Draws;
}

/** Kinds of tables that a metric can grade. */
export const KINDS_OF: Readonly<Record<MetricName, readonly Exclude<Kind, never>[]>> = {
  MAE: ["regression"],
  RMSE: ["regression"],
  R2: ["regression"],
  Pearson: ["regression"],
  Spearman: ["regression"],
  RMSLE: ["positive"],
  MAPE: ["positive"],
  F1: ["binary"],
  Jaccard: ["binary"],
  RocAuc: ["binary"],
  Accuracy: ["binary", "classes"],
  BalancedAccuracy: ["binary", "classes"],
  F1Macro: ["classes", "binary"],
  F1Micro: ["classes"],
  F1Weighted: ["classes"],
  RocAucOneVsOne: ["classes"],
  LogLoss: ["binary", "classes"],
  Brier: ["binary", "classes"],
  QuadraticWeightedKappa: ["levels"],
  WordJaccard: ["extraction"],
  MAPAtK: ["ranking"],
};

export function drawTarget(kind: Exclude<Kind, "extraction">, o: TargetOptions): Target {
  switch (kind) {
    case "regression":
    case "positive":
      return numberTarget(kind, o);
    case "binary":
      return binaryTarget(o);
    case "levels":
      return levelTarget(o);
    default:
      return classTarget(kind, o);
  }
}

function numberTarget(kind: "regression" | "positive", { domain, noise, signal, draws }: TargetOptions): Target {
  const [name, middle, spread] = domain.amount;
  const value = (s: number) =>
    kind === "regression" ? middle + spread * s : middle * Math.exp((0.9 * spread * s) / middle);
  const known = signal();
  const labels = Array.from(known, (s) => value(s + noise * draws.normal()).toFixed(kind === "regression" ? 1 : 2));
  return { name, kind, labels, known: (row) => [value(known[row]!).toFixed(4)] };
}

const logistic = (x: number) => 1 / (1 + Math.exp(-x));
/** Metrics of two labels that want a probability. */
const WANTS_PROBABILITY: readonly MetricName[] = ["RocAuc", "LogLoss", "Brier"];

function binaryTarget({ metric, domain, noise, positives, signal, draws }: TargetOptions): Target {
  const s = signal();
  const sharpness = 2.5 / noise;
  let [low, high] = [-20, 20];
  for (let i = 0; i < 50; i++) {
    const shift = (low + high) / 2;
    const share = s.reduce((sum, value) => sum + logistic(sharpness * value + shift), 0) / s.length;
    if (share < positives) low = shift;
    else high = shift;
  }
  const p = s.map((value) => logistic(sharpness * value + low));
  const labels = Array.from(p, (share) => (draws.chance(share) ? "1" : "0"));
  const threshold =
    metric === "F1" || metric === "Jaccard" || metric === "F1Macro"
      ? bestThreshold(p)
      : metric === "BalancedAccuracy"
        ? positives
        : 0.5;
  const known = (row: number) =>
    WANTS_PROBABILITY.includes(metric) ? p[row]!.toFixed(6) : p[row]! > threshold ? "1" : "0";
  return { name: domain.event, kind: "binary", labels, known: (row) => [known(row)] };
}

/** Returns the threshold with the largest expected F1, 2 Σ p of the chosen / (chosen + Σ p). */
function bestThreshold(p: Float64Array): number {
  const sorted = p.toSorted().reverse();
  const total = p.reduce((sum, value) => sum + value, 0);
  let [hits, best, threshold] = [0, 0, 0.5];
  for (const [chosen, value] of sorted.entries()) {
    hits += value;
    const f1 = (2 * hits) / (chosen + 1 + total);
    if (f1 > best) [best, threshold] = [f1, value - 1e-9];
  }
  return threshold;
}

/** Shares of the levels 1 to 5. */
const LEVELS = [0.12, 0.23, 0.3, 0.22, 0.13];

function levelTarget({ domain, noise, signal, draws }: TargetOptions): Target {
  const s = signal();
  const known = levelsOf(s);
  const labels = levelsOf(s.map((value) => value + noise * draws.normal()));
  return { name: domain.level, kind: "levels", labels, known: (row) => [known[row]!] };
}

function levelsOf(values: Float64Array): string[] {
  const sorted = values.toSorted();
  const shareBelow = (level: number) => LEVELS.slice(0, level).reduce((sum, share) => sum + share, 0);
  const cuts = [1, 2, 3, 4].map((level) => sorted[Math.floor(shareBelow(level) * (sorted.length - 1))]!);
  return Array.from(values, (value) => String(1 + cuts.filter((cut) => value > cut).length));
}

function classTarget(kind: "classes" | "ranking", o: TargetOptions): Target {
  const { metric, domain, noise, signal, draws } = o;
  const [name, values] = domain.classes;
  const classes = draws.some(values, kind === "ranking" ? values.length : o.classes);
  const signals = classes.map(() => ({ s: signal(), bias: 0.4 * draws.normal() }));
  const sharpness = 2.5 / noise;
  const shares = Array.from({ length: o.rows }, (_, row) => {
    const weights = signals.map(({ s, bias }) => Math.exp(sharpness * s[row]! + bias));
    const total = weights.reduce((sum, weight) => sum + weight, 0);
    return weights.map((weight) => weight / total);
  });
  const labels = shares.map((share) => classes[drawn(share, draws.uniform())]!);
  const prior = classes.map((label) => labels.filter((other) => other === label).length / o.rows);
  const weighed = (row: number) =>
    shares[row]!.map((share, i) => (metric === "BalancedAccuracy" ? share / Math.max(prior[i]!, 1e-6) : share));
  const ordered = (row: number) => {
    const weights = weighed(row);
    return [...classes.keys()].sort((a, b) => weights[b]! - weights[a]!).map((i) => classes[i]!);
  };
  return {
    name,
    kind,
    labels,
    known: (row, columns) => {
      if (kind === "ranking") return [ordered(row).slice(0, 5).join(" ")];
      if (columns.length === 1) return [ordered(row)[0]!];
      return columns.map((column) => String(shares[row]![classes.indexOf(column)] ?? 0));
    },
  };
}

function drawn(shares: readonly number[], at: number): number {
  let sum = 0;
  for (const [i, share] of shares.entries()) {
    sum += share;
    if (sum > at) return i;
  }
  return shares.length - 1;
}
