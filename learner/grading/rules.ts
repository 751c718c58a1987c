import type { Column } from "./column.ts";
import type { Frame } from "./frame.ts";
import type { Values } from "./metrics.ts";
import type { MleBenchTask } from "./mlebench-tasks.ts";
import { twinOf } from "./name-twins.ts";
import { type Refusal, refuse } from "./reasons.ts";

/** The rules that differ among graders: of MLE-bench's tasks, and of a TrainingRun's `grader`. */
export interface Rules {
  ids: MleBenchTask["ids"];
  /** Each column has one type throughout, see `FrameLimits`. */
  wholeColumns: boolean;
  maxBytes: (answersBytes: number) => number;
  /** @throws Error in one line if the answers do not fit the grader */
  checkAnswers: (frame: Frame) => void;
  /** Checks a submission before its rows are matched. @param rows number of the answers' rows */
  check: (frame: Frame, rows: number) => Refusal | undefined;
  /**
   * @param answers the answers' target columns
   * @returns a function that converts a column to the metric's input: of the answers, or, if `truth` is given, of a submission
   */
  reader: (answers: readonly Column[]) => (column: Column, truth?: Values) => Values | Refusal;
  /** @param predicted the target columns in the order of the answers' rows */
  checkRows: (predicted: readonly Values[]) => Refusal | undefined;
  /** @returns the score of columns [target][row]; NaN if it is undefined */
  score: (truth: readonly Values[], predicted: readonly Values[]) => number | Refusal;
  round: (score: number) => number;
}

export function wrongRows({ rows: found }: Frame, expected: number): Refusal | undefined {
  return found === expected ? undefined : refuse("rowCount", { found, expected });
}

export function missingColumn(frame: Frame, names: readonly string[]): Refusal | undefined {
  const column = names.find((name) => !frame.names.includes(name));
  if (column === undefined) return undefined;
  const twin = twinOf(column, frame.names);
  if (twin) return refuse("missingColumn", { column, found: twin.quoted, value: twin.difference });
  return refuse("missingColumn", { column, found: frame.names.slice(0, 100).join(",") });
}
