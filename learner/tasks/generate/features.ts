/** Draws the features of a synthetic table, and signals that depend on them in a known way. */
import type { Domain } from "./domains.ts";
import { type Draws, standardized } from "./random.ts";

export interface Ingredients {
  numbers: number;
  categories: number;
  hasText: boolean;
  hasDate: boolean;
  /** Share of cells that are empty in up to three columns; 0: none. */
  missing: number;
  /** Share of the signal's variance that is a sum over features; the rest are products, steps, waves and interactions. */
  linear: number;
}

export interface FeatureColumn {
  name: string;
  kind: "number" | "category" | "date" | "text";
  cells: string[];
}

export interface Features {
  columns: FeatureColumn[];
  /** Draws a new signal of all rows, with mean 0 and standard deviation 1. */
  signal(): Float64Array;
}

const DAYS = 730;
const DAY_SECONDS = 86_400;
const FIRST_DAY = Date.UTC(2023, 0, 1) / 1000;
/** Words of a text column that change a signal. */
const SIGNAL_WORDS = 6;
const WORDS = [4, 9] as const;

export function drawFeatures(domain: Domain, wanted: Ingredients, rows: number, draws: Draws): Features {
  const numbers = draws.some(domain.numbers, wanted.numbers).map((about) => ({ about, z: normals(rows, draws) }));
  const categories = draws.some(domain.categories, wanted.categories).map(([name, values]) => {
    return { name, values, codes: Array.from({ length: rows }, () => draws.whole(0, values.length - 1)) };
  });
  const days = wanted.hasDate ? Array.from({ length: rows }, () => draws.whole(0, DAYS - 1)) : undefined;
  const texts = wanted.hasText
    ? Array.from({ length: rows }, () => draws.some(domain.words, draws.whole(...WORDS)))
    : undefined;
  const columns: FeatureColumn[] = [
    ...numbers.map(({ about: [name, low, high, decimals], z }) => ({
      name,
      kind: "number" as const,
      cells: Array.from(z, (value) => ((low + high) / 2 + (value * (high - low)) / 6).toFixed(decimals)),
    })),
    ...categories.map(({ name, values, codes }) => ({
      name,
      kind: "category" as const,
      cells: codes.map((code) => values[code]!),
    })),
    ...(days ? [{ name: domain.date, kind: "date" as const, cells: days.map(isoDay) }] : []),
    ...(texts ? [{ name: domain.text, kind: "text" as const, cells: texts.map((words) => words.join(" ")) }] : []),
  ];
  leaveOut(columns, wanted.missing, draws);

  const signal = () => {
    const sum = new Float64Array(rows);
    const add = (value: (row: number) => number) => {
      for (let row = 0; row < rows; row++) sum[row]! += value(row);
    };
    // The last number is noise to the program.
    const useful = numbers.slice(0, -1);
    for (const { z } of useful) {
      const weight = draws.normal();
      add((row) => weight * z[row]!);
    }
    for (const { values, codes } of categories) {
      const effects = values.map(() => draws.normal());
      add((row) => effects[codes[row]!]!);
    }
    if (texts) {
      const effects = new Map(draws.some(domain.words, SIGNAL_WORDS).map((word, i) => [word, i % 2 ? 1.5 : -1.5]));
      add((row) => texts[row]!.reduce((total, word) => total + (effects.get(word) ?? 0), 0));
    }
    const bent = new Float64Array(rows);
    const bend = (values: (row: number) => number) => {
      const one = standardized(Float64Array.from(bent.keys(), values));
      for (const [row, value] of one.entries()) bent[row]! += value;
    };
    const [a, b] = draws.some(useful, 2);
    bend((row) => a!.z[row]! * b!.z[row]!);
    const step = draws.between(-0.5, 0.5);
    bend((row) => (b!.z[row]! > step ? 1 : 0) * Math.abs(a!.z[row]!));
    const [category] = categories;
    if (category) {
      const slopes = category.values.map((_, i) => (i % 2 ? 1 : -1) * draws.between(0.5, 1.5));
      bend((row) => slopes[category.codes[row]!]! * a!.z[row]!);
    }
    if (days) {
      const phase = draws.uniform();
      bend((row) => Math.sin(2 * Math.PI * (days[row]! / 365 + phase)));
    }
    const [flat, curved] = [standardized(sum), standardized(bent)];
    const mixed = flat.map(
      (value, row) => Math.sqrt(wanted.linear) * value + Math.sqrt(1 - wanted.linear) * curved[row]!,
    );
    return standardized(mixed);
  };
  return { columns, signal };
}

const normals = (rows: number, draws: Draws) => Float64Array.from({ length: rows }, () => clipped(draws.normal()));
const clipped = (z: number) => Math.max(-3, Math.min(3, z));
const isoDay = (day: number) => new Date((FIRST_DAY + day * DAY_SECONDS) * 1000).toISOString().slice(0, 10);

/** Empties cells of up to three columns; the signal still depends on what stood there. */
function leaveOut(columns: FeatureColumn[], share: number, draws: Draws): void {
  if (share === 0) return;
  const mayLack = columns.filter(({ kind }) => kind === "number" || kind === "category");
  for (const column of draws.some(mayLack, 3))
    column.cells = column.cells.map((cell) => (draws.chance(share) ? "" : cell));
}
