/** Section 4.1: how good a policy is, from programs that the same actors execute; nothing is trained on. */
import { join } from "node:path";
import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import { replaceFile } from "../metrics/files.ts";
import {
  type EvaluatedBetween,
  type Evaluation,
  type EvaluationSettings,
  evaluationOf,
  evaluationsOf,
  type RunSummary,
  type When,
  withEvaluation,
} from "../metrics/summary.ts";
import type { Rollout } from "../rollout/rollout.ts";
import type { LearnerServer } from "../server/server.ts";
import type { WaitOptions } from "../server/waiting.ts";
import type { Store } from "../store/store.ts";
import type { Sample } from "../store/types.ts";
import type { Task } from "../tasks/task.ts";
import type { Tasks } from "../tasks/tasks.ts";
import { bestSampleOf, writeBest } from "./best.ts";
import { CONFIDENCE } from "./bootstrap.ts";
import { bestProgram, changeOf, type EvaluatedProgram, type Scale, summarize } from "./figures.ts";
import { privateFactsOf } from "./private-score.ts";
import { armsOf } from "./protocol.ts";
import { evaluationMarkdown, evaluationSentence } from "./rows.ts";

/** The parts of a run that an evaluation uses. */
export interface Evaluating {
  directory: string;
  spec: TrainingRunSpec;
  tasks: Tasks;
  store: Store;
  rollout: Pick<Rollout, "launchScratch" | "launchImprovements">;
  server: Pick<LearnerServer, "waitForFinished">;
  waiting: WaitOptions;
  /** The batches of a replayed run; if present, nothing is executed or evaluated. */
  recorded?: unknown;
  /** `state.iteration`: number of finished iterations. */
  progress: { state: { iteration: number } };
  phases: {
    enter(name: "evaluatePolicy", total: number, done?: number): void;
    show(done: number, message: string): void;
  };
  grades: { gradeFinished(): void };
  files: {
    readonly summary: Pick<RunSummary, "evaluation">;
    updateSummary(change: Pick<RunSummary, "evaluation">): Promise<void>;
    announceEvaluation(evaluation: Evaluation): void;
    notice(text: string): void;
  };
}

/** `during`: between two iterations. */
type Moment = When | "during";

/**
 * Returns whether `evaluation.everyIterations` asks for an evaluation before the next iteration. It is a function of the number of
 * iterations alone, so that a resumed run evaluates after the same iterations. `evaluation.after` evaluates the last policy.
 */
export function isEvaluationDue({ spec, progress }: Pick<Evaluating, "spec" | "progress">): boolean {
  const { everyIterations } = spec.evaluation;
  const { iteration } = progress.state;
  return everyIterations !== undefined && iteration > 0 && iteration % everyIterations === 0;
}

/**
 * Asks each task for programs from scratch, then for improvements of the valid ones, but for none that was launched before a restart.
 * Numbers go to `summary.json` and `evaluation.md`, the best program of each kind before and after training to
 * `programs/<when>-<kind>/`, or to `programs/<task>/<when>-<kind>/` if there are several tasks.
 */
export async function evaluatePolicy(run: Evaluating, when: Moment): Promise<void> {
  const tasks = run.tasks.all.filter((task) => !isKnown(run, task, when));
  if (run.recorded || tasks.length === 0) return;
  const { iteration } = run.progress.state;
  const { store, rollout, spec, phases } = run;
  const purpose = purposeOf(run, when);
  const { scratch, improve } = armsOf(spec);
  const total = tasks.length * (scratch + improve);
  // Programs of a task that was removed in between and came back are launched anew.
  const launched = (task: Task, kind: Sample["kind"]) =>
    samplesOf(run, task, purpose, iteration).filter((sample) => sample.kind === kind && sample.state !== "discarded");
  const completed = () => store.counts(purpose).completed;
  const own = tasks.flatMap((task) => samplesOf(run, task, purpose, iteration).filter(isCompleted)).length;
  // of tasks that were evaluated earlier, or by another policy
  const others = completed() - own;
  const enter = () => phases.enter("evaluatePolicy", total, completed() - others);

  enter();
  const showProgress = () => phases.show(completed() - others, saidOf(when, iteration));
  showProgress();
  store.events.on("finished", showProgress);
  try {
    for (const task of tasks) {
      const existing = launched(task, "scratch");
      await rollout.launchScratch(task.name, { count: scratch, existing }, iteration, purpose);
    }
    await allFinished(run, purpose, enter);
    for (const task of tasks) {
      const valid = launched(task, "scratch").filter(({ grade }) => grade?.valid);
      const existing = launched(task, "improve");
      await rollout.launchImprovements(task.name, { count: improve, existing }, valid, iteration, purpose);
    }
    await allFinished(run, purpose, enter);
  } finally {
    store.events.off("finished", showProgress);
  }
  for (const task of tasks) await record(run, task, when, purpose);
}

function isKnown(run: Evaluating, { name }: Task, when: Moment): boolean {
  const { iteration } = run.progress.state;
  const evaluation = evaluationOf(run.files.summary.evaluation, name);
  const isThis = (known: EvaluatedBetween) => known.iteration === iteration && known.lineage === trainedBy(run);
  if (when === "during") return (evaluation.during ?? []).some(isThis);
  const known = evaluation[when];
  // A finished run that is continued ends with another policy.
  return known !== undefined && (when !== "after" || known.iteration === iteration);
}

/** Returns the lineage whose training made the weights: after a restart an iteration can be trained again, with other weights. */
const trainedBy = ({ store, progress }: Pick<Evaluating, "store" | "progress">): number =>
  store.originOf({ lineage: store.lineage, iteration: progress.state.iteration });

async function allFinished(run: Evaluating, purpose: string, enter: () => void): Promise<void> {
  const { store, server, grades, waiting } = run;
  for (;;) {
    const { queued, running, completed } = store.counts(purpose);
    enter();
    if (queued + running === 0) break;
    await server.waitForFinished(completed + 1, { ...waiting, purpose });
  }
  grades.gradeFinished();
}

async function record(run: Evaluating, task: Task, when: Moment, purpose: string): Promise<void> {
  const { directory, files } = run;
  const { iteration } = run.progress.state;
  const { seed } = run.spec;
  const scale = scaleOf(task);
  const programs = programsOf(run, task, purpose, iteration);
  const lost = samplesOf(run, task, purpose, iteration).filter(({ state }) => state === "lost").length;
  const found = summarize(programs, scale, { iteration, lost, seed });
  const { evaluation: all } = files.summary;
  const known = evaluationOf(all, task.name);
  // Drops evaluations of later iterations: a restart has discarded their weights.
  const earlier = (known.during ?? []).filter((policy) => policy.iteration < iteration);
  const own: Evaluation = {
    ...known,
    settings: settingsOf(run, task),
    ...(when === "during" ? { during: [...earlier, { ...found, lineage: trainedBy(run) }] } : { [when]: found }),
  };
  // An older longrun did not keep the evaluation's programs.
  const before =
    when === "after" && known.before ? programsOf(run, task, purposeOf(run, "before"), known.before.iteration) : [];
  if (before.length > 0) own.change = changeOf(before, programs, scale, seed);
  const evaluation = withEvaluation(all, own, run.tasks.areSeveral);
  if (when !== "during") await writePrograms(run, task, when, programs, evaluation.tasks ? [task.name] : []);
  await files.updateSummary({ evaluation });
  files.announceEvaluation(evaluation);
  const pages = evaluationsOf(evaluation).map((each) => evaluationMarkdown(each, evaluation.tasks !== undefined));
  await replaceFile(join(directory, "evaluation.md"), pages.join("\n"));
  const label = run.tasks.areSeveral ? `${task.name}: ` : "";
  if (when === "during") files.notice(label + evaluationSentence(found, own.settings));
}

/** Returns a task's samples of one policy. `evaluation-before` may have samples of an earlier policy, if the task was added again. */
const samplesOf = ({ store }: Evaluating, { name }: Task, purpose: string, iteration: number): Sample[] =>
  store.samplesFor(purpose).filter((sample) => sample.task === name && sample.iteration === iteration);

const isCompleted = ({ state }: Sample): boolean => state === "finished" || state === "notExecuted";

/** Returns the evaluated programs without the lost ones, which say nothing about the policy. */
function programsOf(run: Evaluating, task: Task, purpose: string, iteration: number): EvaluatedProgram[] {
  return samplesOf(run, task, purpose, iteration)
    .filter(isCompleted)
    .map((sample): EvaluatedProgram => {
      const { id, kind, previous, grade: { valid = false, score, reward } = {}, result } = sample;
      const reported = valid ? reportedScore(run, task, sample) : undefined;
      return {
        id,
        kind: kind === "improve" ? kind : "scratch",
        previous,
        valid,
        score,
        reported,
        reward,
        durationSeconds: result?.durationSeconds,
      };
    });
}

/** With a private part the score on it. An older longrun did not store it. */
function reportedScore({ store }: Evaluating, task: Task, { id, grade }: Sample): number | undefined {
  if (task.privateRows === undefined) return grade?.score;
  const known = store.privateScore(id);
  if (known) return known.score;
  const submission = store.submission(id);
  return submission && task.privateScore(submission)?.score;
}

async function writePrograms(
  { store, directory, spec }: Evaluating,
  task: Task,
  when: When,
  programs: readonly EvaluatedProgram[],
  below: string[],
): Promise<void> {
  for (const [kind, ofKind] of Map.groupBy(programs, (program) => program.kind)) {
    const best = bestProgram(ofKind, task.grader.direction);
    if (best === undefined) continue;
    const [sample] = store.samples([best.id]);
    const submission = store.submission(best.id);
    const kept = bestSampleOf(sample!, submission, task.grader.metric);
    const folder = join(directory, "programs", ...below, `${when}-${kind}`);
    const gaps = ofKind.flatMap(({ score, reported }) =>
      score === undefined || reported === undefined ? [] : [score - reported],
    );
    const privateFacts =
      kept && (await privateFactsOf(task, submission!, { score: kept.score, gaps, seed: spec.seed }));
    if (kept) await writeBest(folder, { ...kept, ...privateFacts });
  }
}

function settingsOf({ spec }: Evaluating, task: Task): EvaluationSettings {
  const { metric, direction } = task.grader;
  return {
    task: task.name,
    metric,
    direction,
    rewardSplit: task.spec.rewardSplit,
    privateShare: task.spec.privateShare,
    protocol: armsOf(spec).protocol,
    samples: spec.evaluation.samples,
    temperature: spec.model.temperature,
    seed: spec.seed,
    confidence: CONFIDENCE,
  };
}

/** Medals are won on the whole hidden test alone. */
function scaleOf(task: Task): Scale {
  const { direction, rewardRange } = task.grader;
  const isSplit = task.privateRows !== undefined;
  return { direction, rewardRange, isSplit, leaderboard: isSplit ? undefined : task.mleBench?.leaderboard };
}

const SAID: Record<When, string> = { before: "before training", after: "after training", model: "" };
const saidOf = (when: Moment, iteration: number): string =>
  when === "during" ? `after iteration ${iteration}` : SAID[when];

/** Names the samples of one policy's evaluation. The store knows `evaluation-during-`. */
function purposeOf(run: Evaluating, when: Moment): string {
  const { iteration } = run.progress.state;
  if (when === "during") return `evaluation-during-${iteration}-${trainedBy(run)}`;
  return when === "after" ? `evaluation-after-${iteration}` : `evaluation-${when}`;
}
