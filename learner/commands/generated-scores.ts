/** Grades the baselines of a generated task and judges whether programs of different skill can be told apart on it. */
import { uniforms } from "../engine/index.ts";
import { type Answers, gradeSubmission, predictions } from "../grading/grade.ts";
import type { Task } from "../tasks/task.ts";

export const BASELINES = ["constant", "linear", "boosted"] as const;
export type Baseline = (typeof BASELINES)[number];
export type Scores = Record<Baseline | "known", number>;

/** Times that the test rows are drawn anew to measure the noise of a difference. */
const NOISE_DRAWS = 100;
/** A difference counts if it is more than so many standard deviations of the noise. */
export const NOISE_FACTOR = 2;

export interface Judged {
  scores: Scores;
  /** Each pair's difference in standard deviations of its noise. */
  differences: Record<string, number>;
  /** Why the task is refused; absent: it is not. */
  fault?: string;
}

const PAIRS: readonly (readonly [Baseline, Baseline])[] = [
  ["constant", "linear"],
  ["constant", "boosted"],
  ["linear", "boosted"],
];

/** @param submissions of the baselines and of the known answer */
export function judge(task: Pick<Task, "grader">, answers: Answers, submissions: Record<keyof Scores, Buffer>): Judged {
  const { metric, direction } = task.grader;
  const scores = {} as Scores;
  for (const name of [...BASELINES, "known"] as const) {
    const { valid, scoreRaw, reason, guards } = gradeSubmission(submissions[name], answers);
    // A correlation has no score for a constant.
    if (!valid && !(name === "constant" && reason.code === "undefinedScore"))
      throw new Error(`the grader refuses the ${name} baseline of a ${metric} task: ${reason.message}`);
    scores[name] = scoreRaw ?? 0;
    if (name !== "constant" && guards.length > 0)
      return { scores, differences: {}, fault: `${name} is flagged: ${guards.join(", ")}` };
  }
  const better = (a: keyof Scores, b: keyof Scores) =>
    direction === "Higher" ? scores[a] > scores[b] : scores[a] < scores[b];
  const differences = differencesOf(answers, submissions, scores);
  const same = PAIRS.map((pair) => pair.join("-")).find((pair) => !(differences[pair]! > NOISE_FACTOR));
  const [skilled] = (["linear", "boosted"] as const).toSorted((a, b) => (better(a, b) ? -1 : 1));
  const fault = !better(skilled!, "constant")
    ? "no baseline is better than a constant"
    : better(skilled!, "known")
      ? `${skilled} is better than the known answer`
      : same && `${same.replace("-", " and ")} differ by ${differences[same]!.toFixed(1)} times the noise`;
  return { scores, differences, ...(fault && { fault }) };
}

/** Bootstrap over the test rows, paired: both scores of a difference are of the same rows. */
function differencesOf(
  answers: Answers,
  submissions: Record<Baseline, Buffer>,
  scores: Scores,
): Record<string, number> {
  const { truth, rules, rows } = answers;
  const next = uniforms(0, "noise");
  const columns = Object.fromEntries(
    BASELINES.map((name) => {
      const read = predictions(submissions[name], answers);
      if ("reason" in read) throw new Error(read.reason.message); // it was graded
      return [name, read];
    }),
  ) as Record<Baseline, typeof truth>;
  const draws = Array.from({ length: NOISE_DRAWS }, () => {
    const drawn = Array.from({ length: rows }, () => Math.floor(next() * rows));
    const pick = (values: (typeof truth)[number]) =>
      values instanceof Float64Array
        ? Float64Array.from(drawn, (row) => values[row]!)
        : drawn.map((row) => values[row]!);
    const scoreOf = (name: Baseline) => {
      const score = rules.score(truth.map(pick), columns[name].map(pick));
      return typeof score === "number" && Number.isFinite(score) ? score : 0;
    };
    return Object.fromEntries(BASELINES.map((name) => [name, scoreOf(name)])) as Record<Baseline, number>;
  });
  return Object.fromEntries(
    PAIRS.map(([a, b]) => {
      const values = draws.map((draw) => draw[b] - draw[a]);
      const mean = values.reduce((sum, value) => sum + value, 0) / values.length;
      const deviation = Math.sqrt(values.reduce((sum, value) => sum + (value - mean) ** 2, 0) / (values.length - 1));
      return [`${a}-${b}`, Math.abs(scores[b] - scores[a]) / Math.max(deviation, 1e-12)];
    }),
  );
}
