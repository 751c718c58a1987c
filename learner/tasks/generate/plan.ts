/** Draws what a generated task is like. The same seed, number and attempt give the same table, byte for byte. */
import { permutation, uniforms } from "../../engine/index.ts";
import { type MetricName, metrics } from "../../grading/metrics.ts";
import { DOMAINS, type Domain } from "./domains.ts";
import { drawExtraction } from "./extraction.ts";
import { drawFeatures, type FeatureColumn, type Ingredients } from "./features.ts";
import { type Draws, drawsOf } from "./random.ts";
import { drawTarget, KINDS_OF, type Kind, type Target } from "./targets.ts";

export const LEAST_ROWS = 200;
export const MOST_ROWS = 5000;

export interface Plan extends Ingredients {
  seed: number;
  /** From 1. */
  number: number;
  /** From 0; a task that its check refuses is drawn again. */
  attempt: number;
  name: string;
  metric: MetricName;
  kind: Kind;
  rows: number;
  noise: number;
  /** Share of label 1 of a binary target. */
  positives: number;
  classes: number;
  /** A column gives the label away, on purpose. */
  leaks: boolean;
}

export interface Drawn {
  plan: Plan;
  domain: Domain;
  /** Without the id and the target. */
  columns: FeatureColumn[];
  target: Target;
}

const METRICS = Object.keys(metrics) as MetricName[];
/** Name of the column that gives the label away. */
export const LEAK = "reference";

/** Returns the metrics of tasks 1 to `count`. Every metric comes once before one comes twice. */
function metricsOf(seed: number, count: number): MetricName[] {
  const rounds = Array.from({ length: Math.ceil(count / METRICS.length) }, (_, round) =>
    permutation(METRICS.length, uniforms(seed, "metrics", round)).map((i) => METRICS[i]!),
  );
  return rounds.flat().slice(0, count);
}

/** Returns the numbers of tasks that can give their label away, the first to do so first. Selected words are no label of a column. */
export function leakable(seed: number, count: number): number[] {
  const named = metricsOf(seed, count);
  return permutation(count, uniforms(seed, "leaks")).flatMap((i) =>
    KINDS_OF[named[i]!].includes("extraction") ? [] : i + 1,
  );
}

/** @param leaking how many of the `count` tasks give their label away, at most as many as are `leakable` */
export function drawTask(seed: number, number: number, attempt: number, o: { count: number; leaking: number }): Drawn {
  const draws = drawsOf(uniforms(seed, "generate", number, attempt));
  const metric = metricsOf(seed, number).at(-1)!;
  const domain = DOMAINS[Math.floor(uniforms(seed, "domain", number)() * DOMAINS.length)]!;
  const kind = draws.one(KINDS_OF[metric]);
  const leaks = leakable(seed, o.count).slice(0, o.leaking).includes(number);
  const plan: Plan = {
    seed,
    number,
    attempt,
    metric,
    kind,
    leaks,
    name: `${kind === "extraction" ? "words" : domain.name}-${String(number).padStart(String(o.count).length, "0")}`,
    rows: rowsOf(kind, draws),
    noise: draws.between(0.25, 0.7),
    linear: draws.between(0.35, 0.65),
    numbers: draws.whole(4, 6),
    categories: draws.whole(1, 3),
    hasText: draws.chance(0.35),
    hasDate: draws.chance(0.4),
    missing: draws.chance(0.5) ? draws.between(0.02, 0.15) : 0,
    positives: draws.chance(0.5) ? 0.5 : draws.between(0.12, 0.35),
    classes: draws.whole(3, 5),
  };
  return { plan, domain, ...drawTable(plan, domain, draws) };
}

/** Rankings among ten classes need many rows to be told apart from guesses. */
const MANY: readonly Kind[] = ["ranking", "classes"];

/** Returns a number whose logarithm is uniform: small tables are as frequent as large ones. */
function rowsOf(kind: Kind, draws: Draws): number {
  const least = MANY.includes(kind) ? 5 * LEAST_ROWS : LEAST_ROWS;
  return Math.round(least * (MOST_ROWS / least) ** draws.uniform());
}

function drawTable(plan: Plan, domain: Domain, draws: Draws): Pick<Drawn, "columns" | "target"> {
  const { kind, rows, noise, leaks } = plan;
  if (kind === "extraction") return drawExtraction(rows, noise / 4, draws);
  const { columns, signal } = drawFeatures(domain, plan, rows, draws);
  const target = drawTarget(kind, { ...plan, domain, signal, draws });
  if (leaks) columns.splice(draws.whole(0, columns.length), 0, leakOf(target.labels));
  return { columns, target };
}

/** Returns a column that is one-to-one with the labels, under other values. */
function leakOf(labels: readonly string[]): FeatureColumn {
  const different = [...new Set(labels)].sort();
  const isNumber = different.length > 20;
  const codes = new Map(
    different.map((label, i) => [label, isNumber ? (3 * Number(label) + 11).toFixed(4) : `R${i + 10}`]),
  );
  return { name: LEAK, kind: isNumber ? "number" : "category", cells: labels.map((label) => codes.get(label)!) };
}
