/** Random values and the tables that stand-ins for tasks consist of. */
import { uniforms } from "../../learner/engine/model/random.ts";

/** Rows of the training and of the test set. */
export const sizes = { train: 150, test: 40 };
const seed = 20250101;

type Cell = string | number;
export type Row = Record<string, Cell>;
/** Content by path below `prepared/`. */
export type Files = Record<string, string | Buffer>;

/** Random values of one task, the same in every run. */
export class Draw {
  readonly next: () => number;
  constructor(task: string) {
    this.next = uniforms(seed, "standin", task);
  }
  int = (least: number, most: number): number => least + Math.floor(this.next() * (most - least + 1));
  pick = <T>(items: readonly T[]): T => items[this.int(0, items.length - 1)]!;
  real = (least: number, most: number, digits = 4): number =>
    Number((least + this.next() * (most - least)).toFixed(digits));
  chance = (probability: number): boolean => this.next() < probability;
  hex = (digits: number): string => Array.from({ length: digits }, () => this.pick([..."0123456789abcdef"])).join("");
  words = (count: number, from: readonly string[] = neutral): string =>
    Array.from({ length: count }, () => this.pick(from)).join(" ");
}

export const neutral =
  "the a river stone walk light paper seven tower glass quiet field map copper garden letter".split(" ");
export const pleasant = "good great lovely happy nice".split(" ");
export const unpleasant = "bad awful sad ugly poor".split(" ");

/** Returns CSV as pandas' `to_csv(index=False)` writes it. */
export function csv(rows: readonly Row[], columns = Object.keys(rows[0]!)): string {
  const cell = (value: Cell) =>
    /[",\n\r]/.test(String(value)) ? `"${String(value).replaceAll('"', '""')}"` : `${value}`;
  return [columns, ...rows.map((row) => columns.map((name) => row[name]!))]
    .map((line) => `${line.map(cell).join(",")}\n`)
    .join("");
}

export const without = (rows: readonly Row[], ...columns: string[]): Row[] =>
  rows.map((row) => Object.fromEntries(Object.entries(row).filter(([name]) => !columns.includes(name))));
export const only = (rows: readonly Row[], ...columns: string[]): Row[] =>
  rows.map((row) => Object.fromEntries(columns.map((name) => [name, row[name]!])));
export const withValues = (rows: readonly Row[], values: Row): Row[] => rows.map((row) => ({ ...row, ...values }));
export const split = (make: (number: number, part: "train" | "test") => Row) => ({
  train: Array.from({ length: sizes.train }, (_, i) => make(i, "train")),
  test: Array.from({ length: sizes.test }, (_, i) => make(i, "test")),
});
export const oneHot = (rows: readonly Row[], id: string, label: string, classes: readonly string[]): Row[] =>
  rows.map((row) => ({ [id]: row[id]!, ...Object.fromEntries(classes.map((c) => [c, c === row[label] ? 1 : 0])) }));
/** Returns tables with their usual names: train.csv, test.csv without the labels, sample_submission.csv, the answers. */
export const tables = (train: Row[], test: Row[], sample: Row[], answers: Row[], answersFile = "test.csv"): Files => ({
  "public/train.csv": csv(train),
  "public/test.csv": csv(test),
  "public/sample_submission.csv": csv(sample),
  [`private/${answersFile}`]: csv(answers),
});
