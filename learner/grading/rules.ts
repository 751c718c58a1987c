import type { Column } from "./column.ts";
import type { Frame } from "./frame.ts";
import type { Values } from "./metrics.ts";
import type { MleBenchTask } from "./mlebench-tasks.ts";
import { type Refusal, refuse } from "./reasons.ts";

/** What graders do in their own ways: that of MLE-bench's task, and a task's own (`grader` of a TrainingRun). */
export interface Rules {
  ids: MleBenchTask["ids"];
  /** Columns have one type throughout, see `FrameLimits`. */
  wholeColumns: boolean;
  maxBytes: (answersBytes: number) => number;
  /** @throws Error in one line if the answers do not fit the grader */
  checkAnswers: (frame: Frame) => void;
  /** What a submission must have before its rows are matched. @param rows of the answers */
  check: (frame: Frame, rows: number) => Refusal | undefined;
  /**
   * @param answers the target columns of the answers
   * @returns what the metric takes from a column: of the answers, or of a submission where `truth` is given
   */
  reader: (answers: readonly Column[]) => (column: Column, truth?: Values) => Values | Refusal;
  /** @param predicted the target columns in the order of the answers' rows */
  checkRows: (predicted: readonly Values[]) => Refusal | undefined;
  /** @returns the score of columns [target][row], NaN where it is undefined */
  score: (truth: readonly Values[], predicted: readonly Values[]) => number | Refusal;
  round: (score: number) => number;
}

export function wrongRows({ rows: found }: Frame, expected: number): Refusal | undefined {
  return found === expected ? undefined : refuse("rowCount", { found, expected });
}

export function missingColumn(frame: Frame, names: readonly string[]): Refusal | undefined {
  const column = names.find((name) => !frame.names.includes(name));
  if (column === undefined) return undefined;
  return refuse("missingColumn", { column, found: frame.names.slice(0, 100).join(",") });
}
