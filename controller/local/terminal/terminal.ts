/** The output of `longrun run`: a live line with the current activity, a row for each iteration, and a table at the end. */

import type { EngineSeconds } from "../../../proto/engine-seconds.ts";
import { nothingToLearn, WARN_AFTER_ITERATIONS } from "../../../proto/nothing-to-learn.ts";
import type { PhaseName } from "../../../proto/service.ts";
import { engineText } from "../../engine-text.ts";
import { harmless } from "../../harmless.ts";
import { phaseName, type StatusReceived } from "./status.ts";

/** The fields of a metrics line that rows show; learner/metrics/README.md explains them. */
export interface IterationLine {
  /** Grows with each start of a learner; with `iteration` it names a policy version. */
  lineage: number;
  iteration: number;
  samples: number;
  validFraction: number;
  meanScore: number | null;
  bestScore: number | null;
  /** Between the task's `rewardRange.worst` (0) and `.best` (1), clipped: one wild program does not hide the others. */
  meanNormalizedScore: number | null;
  meanDurationSeconds: number | null;
  launchedMeanDurationSeconds: number | null;
  trainedMeanDurationSeconds: number | null;
  kl: number | null;
  seconds: number;
  /** Valid submissions that a guard flags; lines of an earlier longrun have no such count. */
  flagged?: number;
  /** All programs were alike in reward; absent in lines of an earlier longrun. */
  noSignal?: boolean;
  /** In how many iterations in a row; absent in lines of an earlier longrun. */
  noSignalIterations?: number;
  /** Share of the responses that were cut at maxResponseTokens; absent in lines of an earlier longrun. */
  truncatedFraction?: number | null;
  /** Generation and training disagree on the same weights; absent in lines of an earlier longrun. */
  importanceDeviates?: boolean;
  /** Valid rewards that were raised to the grader's rewardFloor; absent, like the next field, in lines of an earlier longrun. */
  clampedRewards?: number;
  /** More than half of the valid rewards were raised. */
  mostlyClamped?: boolean;
  /** Faults of generators and rows that moved to another generator; absent without generators. */
  generation?: { faults: Record<string, number>; movedRows: number };
  /** Seconds of engine time by use; absent in lines of an earlier longrun. */
  engineSeconds?: EngineSeconds;
  /** Figures by task name, for the rows. Lines of an earlier longrun have fewer fields. */
  tasks?: Record<string, TaskLine>;
}

type TaskLine = Pick<IterationLine, "validFraction" | "meanScore" | "bestScore"> &
  Partial<Pick<IterationLine, "meanNormalizedScore" | "meanDurationSeconds">>;

export interface EvaluationFigures {
  samples: number;
  validFraction: number;
  meanScore: number | null;
  bestScore: number | null;
  meanNormalizedScore: number | null;
  meanDurationSeconds: number | null;
  /** The public score of the best program. Present: the other scores are private. */
  publicBestScore?: number | null;
}

interface Column {
  title: string;
  width: number;
  /** Narrow terminals lose the columns of the highest numbers first. */
  priority: number;
  text: (line: IterationLine) => string;
  /** The row of a task also has this column. */
  ofTask?: true;
}

const COLUMNS: Column[] = [
  { title: "iteration", width: 9, priority: 0, text: (line) => String(line.iteration) },
  { title: "valid", width: 6, priority: 1, text: (line) => percent(line.validFraction), ofTask: true },
  { title: "mean score", width: 10, priority: 2, text: (line) => significant(line.meanScore), ofTask: true },
  { title: "0 to 1", width: 6, priority: 2.5, text: (line) => significant(line.meanNormalizedScore, 3), ofTask: true },
  { title: "best score", width: 10, priority: 3, text: (line) => significant(line.bestScore), ofTask: true },
  { title: "duration", width: 8, priority: 5, text: (line) => seconds(line.meanDurationSeconds), ofTask: true },
  { title: "KL", width: 8, priority: 6, text: (line) => significant(line.kl, 3) },
  { title: "launched", width: 8, priority: 7, text: (line) => seconds(line.launchedMeanDurationSeconds) },
  { title: "trained", width: 8, priority: 8, text: (line) => seconds(line.trainedMeanDurationSeconds) },
  { title: "took", width: 8, priority: 4, text: (line) => seconds(line.seconds) },
];
const GAP = "  ";

/** @returns the columns that fit into `width` characters */
function fitting(width: number): Column[] {
  const byPriority = [...COLUMNS].sort((a, b) => a.priority - b.priority);
  let used = -GAP.length;
  const kept = new Set(
    byPriority.filter((column) => {
      used += column.width + GAP.length;
      return used <= width || column.priority === 0;
    }),
  );
  return COLUMNS.filter((column) => kept.has(column));
}

export function iterationHeader(width: number): string {
  return fitting(width)
    .map((column) => column.title.padStart(column.width))
    .join(GAP);
}

export function iterationRow(line: IterationLine, width: number): string {
  return fitting(width)
    .map((column) => column.text(line).padStart(column.width))
    .join(GAP);
}

/** @returns a row for each task of a run that has several, in the same columns, with its name behind it */
export function taskRows({ tasks = {} }: IterationLine, width: number): string[] {
  const names = Object.keys(tasks);
  if (names.length < 2) return [];
  return names.map((name) => {
    const { meanNormalizedScore = null, meanDurationSeconds = null, ...given } = tasks[name]!;
    const line = { ...given, meanNormalizedScore, meanDurationSeconds } as IterationLine;
    const cells = fitting(width).map((column) => (column.ofTask ? column.text(line) : "").padStart(column.width));
    return `${cells.join(GAP).trimEnd()}${GAP}${name}`.slice(0, width);
  });
}

/**
 * @returns the row with its notes, which get a line of their own if they do not fit behind the row. The share of cut responses is shown
 * only
 *   if it fits behind the row
 */
export function iterationRows(line: IterationLine, width: number): string[] {
  const row = iterationRow(line, width);
  const notes = [
    ...(line.flagged ? [`${line.flagged} flagged`] : []),
    ...(line.clampedRewards ? [clampedNote(line, line.clampedRewards)] : []),
    ...(line.noSignal ? ["all rewards alike: nothing to learn from"] : []),
    ...generatorNotes(line),
    ...(line.importanceDeviates ? ["sampling and training disagree on probabilities"] : []),
  ];
  const withCut = [...notes, `${percent(line.truncatedFraction ?? 0)} cut`].join(", ");
  if (line.truncatedFraction && row.length + GAP.length + withCut.length <= width) return [`${row}${GAP}${withCut}`];
  if (notes.length === 0) return [row];
  const note = notes.join(", ");
  const whole = `${row}${GAP}${note}`;
  return whole.length <= width ? [whole] : [row, note.padStart(Math.min(row.length, width))];
}

const FAULTS: Record<string, string> = {
  lost: "lost",
  oldVersion: "with old weights",
  logProbs: "with other log-probs",
};

function generatorNotes({ generation }: IterationLine): string[] {
  if (!generation) return [];
  const { faults, movedRows } = generation;
  const notes = Object.entries(faults).flatMap(([fault, times]) =>
    times > 0 ? [`${times} ${times === 1 ? "generator" : "generators"} ${FAULTS[fault] ?? fault}`] : [],
  );
  return movedRows > 0 ? [...notes, `${movedRows} rows moved`] : notes;
}

function clampedNote({ samples, validFraction, mostlyClamped }: IterationLine, clamped: number): string {
  const note = `${clamped} of ${Math.round(validFraction * samples)} valid rewards at rewardFloor`;
  return mostlyClamped ? `${note}: give the grader a rewardRange` : note;
}

/** Returns the lines of the table that compares the policy's programs before and after training. */
export function comparison(
  before: EvaluationFigures | undefined,
  after: EvaluationFigures | undefined,
  scoreLabel: string,
): string[] {
  if (!before && !after) return [];
  const row = (title: string, text: (figures: EvaluationFigures) => string): string[] => [
    title,
    before ? text(before) : "-",
    after ? text(after) : "-",
  ];
  const isSplit = (before ?? after)?.publicBestScore !== undefined;
  const reported = isSplit ? `private ${scoreLabel}` : scoreLabel;
  const rows = [
    ["", "before", "after"],
    row("valid programs", (f) => percent(f.validFraction)),
    row(`mean ${reported}`, (f) => significant(f.meanScore)),
    row("mean score, 0 to 1", (f) => significant(f.meanNormalizedScore, 3)),
    row(`best ${reported}`, (f) => significant(f.bestScore)),
    ...(isSplit ? [row(`its public ${scoreLabel}`, (f) => significant(f.publicBestScore ?? null))] : []),
    row("mean duration", (f) => seconds(f.meanDurationSeconds)),
    row("samples", (f) => String(f.samples)),
  ];
  const widths = [0, 1, 2].map((column) => Math.max(...rows.map((cells) => cells[column]!.length)));
  return rows.map(([title, ...cells]) =>
    [title!.padEnd(widths[0]!), ...cells.map((cell, index) => cell.padStart(widths[index + 1]!))].join(GAP).trimEnd(),
  );
}

/** @returns the known lines about the whole run's use of time and its responses */
export function runNotes(lines: readonly IterationLine[]): string[] {
  const engine = engineText(lines.map(({ engineSeconds }) => engineSeconds));
  const known = lines.filter(({ truncatedFraction }) => typeof truncatedFraction === "number");
  const cut = known.reduce((sum, { samples, truncatedFraction }) => sum + samples * truncatedFraction!, 0);
  const all = known.reduce((sum, { samples }) => sum + samples, 0);
  const last = known.at(-1)?.truncatedFraction ?? 0;
  const flagged = lines.reduce((sum, line) => sum + (line.flagged ?? 0), 0);
  return [
    ...(engine === undefined ? [] : [`Engine: ${engine}`]),
    ...(flagged > 0
      ? [
          `Flagged: ${flagged === 1 ? "1 valid submission looks as if no model had made it" : `${flagged} valid submissions look as if no model had made them`}, such as a constant prediction; the report has the reasons`,
        ]
      : []),
    ...(cut > 0
      ? [`Responses cut at model.maxResponseTokens: ${percent(cut / all)}, ${percent(last)} in the last iteration`]
      : []),
  ];
}

const PHASES: Partial<Record<PhaseName, string>> = {
  STARTING: "starting",
  GENERATING: "writing solutions",
  EXECUTING: "executing programs",
  EVALUATING: "log-probs and values",
  TRAINING: "training",
  CHECKPOINTING: "writing a checkpoint",
  FINAL_EVALUATION: "evaluating the policy",
  WARMING_UP: "learning from given answers",
};

/** Phases outside of iterations. */
const BETWEEN: readonly PhaseName[] = ["FINAL_EVALUATION", "WARMING_UP"];

/** @returns the current activity, e.g. `iteration 3/12 · executing programs 14/32 · 2 queued, 1 running · 1 actor` */
export function progressText(status: StatusReceived): string {
  const { iteration, iterations, phaseDone, phaseTotal, executions, actors, generation } = status;
  const phase = PHASES[phaseName(status)] ?? phaseName(status).toLowerCase();
  const parts = [
    iteration > 0 && !BETWEEN.includes(phaseName(status)) ? `iteration ${iteration}/${iterations}` : "",
    phaseTotal > 0 ? `${phase} ${phaseDone}/${phaseTotal}` : phase,
    executions ? `${executions.queued} queued, ${executions.running} running` : "",
    actors && actors.length > 0 ? `${actors.filter((actor) => actor.connected).length} of ${actors.length} actors` : "",
    generation?.generators
      ? `${generation.generators.filter(({ ready }) => ready).length} of ${generation.generators.length} generators`
      : "",
    status.message ?? "",
  ];
  return parts.filter((part) => part !== "").join(" · ");
}

/** Output of the terminal, such as `process.stdout`. */
export interface Screen {
  write(text: string): unknown;
  isTTY?: boolean;
  columns?: number;
}

const PLAIN_WIDTH = 120;
/** Without a terminal the current activity gets a line after so much silence. */
const SILENCE_MS = 60_000;
const DIM = "\u001b[2m";
const BOLD = "\u001b[1m";
const RESET = "\u001b[0m";
const CLEAR_LINE = "\r\u001b[K";

/** Writes rows to `screen`; on a terminal the last line is rewritten in place with the current activity. */
export class Terminal {
  readonly #screen: Screen;
  readonly #env: NodeJS.ProcessEnv;
  #live = "";
  #headerShown = false;
  readonly #now: () => number;
  #spokenMs: number;

  /** @param now milliseconds */
  constructor(screen: Screen, env: NodeJS.ProcessEnv = process.env, now = () => performance.now()) {
    this.#screen = screen;
    this.#env = env;
    this.#now = now;
    this.#spokenMs = now();
  }

  get width(): number {
    const stated = Number(this.#env.COLUMNS);
    return stated > 0 ? stated : this.#screen.columns || PLAIN_WIDTH;
  }

  /** Shows the current activity: in the live line of a terminal, elsewhere in a line after a minute without another. */
  progress(text: string): void {
    if (!this.#screen.isTTY) {
      if (this.#now() - this.#spokenMs >= SILENCE_MS) this.line(text);
      return;
    }
    const plain = harmless(text).replaceAll("\n", " ");
    const shown = plain.length < this.width ? plain : `${plain.slice(0, this.width - 2)}…`;
    if (shown === this.#live) return;
    this.#live = shown;
    this.#screen.write(`${CLEAR_LINE}${this.#style(DIM, shown)}`);
  }

  /** Announces long work: with a live line on a terminal, elsewhere with a line that stays. */
  step(text: string): void {
    if (this.#screen.isTTY) this.progress(text);
    else this.line(text);
  }

  /** Writes a line that stays. */
  line(text: string, emphasis = false): void {
    this.clear();
    this.#spokenMs = this.#now();
    const plain = harmless(text);
    this.#screen.write(`${emphasis ? this.#style(BOLD, plain) : plain}\n`);
  }

  /** Writes the row of an iteration. */
  iteration(line: IterationLine): void {
    if (!this.#headerShown) this.line(iterationHeader(this.width), true);
    this.#headerShown = true;
    for (const row of [...iterationRows(line, this.width), ...taskRows(line, this.width)]) this.line(row);
    // Once is enough: the rows say that it goes on.
    if (line.noSignalIterations === WARN_AFTER_ITERATIONS)
      this.line(`Warning: ${nothingToLearn(line.noSignalIterations, line.validFraction)}.`);
  }

  clear(): void {
    if (this.#live !== "") this.#screen.write(CLEAR_LINE);
    this.#live = "";
  }

  #style(code: string, text: string): string {
    return this.#screen.isTTY && !this.#env.NO_COLOR ? `${code}${text}${RESET}` : text;
  }
}

function percent(fraction: number): string {
  return `${(fraction * 100).toFixed(1)}%`;
}

function seconds(value: number | null): string {
  return value === null ? "-" : `${value.toFixed(value < 100 ? 2 : 0)} s`;
}

/** @returns the number with `digits` significant digits, without an exponent if that is readable */
export function significant(value: number | null, digits = 5): string {
  if (value === null || !Number.isFinite(value)) return "-";
  if (value === 0) return "0";
  const magnitude = Math.floor(Math.log10(Math.abs(value)));
  if (magnitude < -4 || magnitude >= 9) return value.toExponential(2);
  return value.toFixed(Math.max(0, digits - 1 - magnitude));
}
