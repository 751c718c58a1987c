/** Section 4.1: how good a policy is, from programs that the same actors execute; nothing is trained on. */
import { join } from "node:path";
import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import { replaceFile } from "../metrics/files.ts";
import type { EvaluatedBetween, Evaluation, EvaluationSettings, RunSummary, When } from "../metrics/summary.ts";
import type { Rollout } from "../rollout/rollout.ts";
import type { LearnerServer } from "../server/server.ts";
import type { WaitOptions } from "../server/waiting.ts";
import type { Store } from "../store/store.ts";
import type { Sample } from "../store/types.ts";
import type { Task } from "../tasks/task.ts";
import { bestSampleOf, writeBest } from "./best.ts";
import { CONFIDENCE } from "./bootstrap.ts";
import { bestProgram, changeOf, type EvaluatedProgram, type Scale, summarize } from "./figures.ts";
import { armsOf } from "./protocol.ts";
import { evaluationMarkdown, evaluationSentence } from "./rows.ts";

/** What an evaluation uses of a run. */
export interface Evaluating {
  directory: string;
  spec: TrainingRunSpec;
  task: Task;
  store: Store;
  rollout: Pick<Rollout, "launchScratch" | "launchImprovements">;
  server: Pick<LearnerServer, "waitForFinished">;
  waiting: WaitOptions;
  /** Batches of another run: then nothing is executed, and nothing evaluated. */
  recorded?: unknown;
  /** `state.iteration`: iterations that the policy has behind it. */
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
    tell(text: string): void;
  };
}

/** `during`: between two iterations. */
type Moment = When | "during";

/**
 * Returns whether `evaluation.everyIterations` asks for an evaluation before the next iteration. It is a function of the number of
 * iterations alone, so that a run that goes on keeps the rhythm. The last policy is left to `evaluation.after`.
 */
export function isEvaluationDue({ spec, progress }: Pick<Evaluating, "spec" | "progress">): boolean {
  const { everyIterations } = spec.evaluation;
  const { iteration } = progress.state;
  return everyIterations !== undefined && iteration > 0 && iteration % everyIterations === 0;
}

/**
 * Programs from scratch, then improvements of the valid ones, but none that was launched before a restart. Numbers go
 * to `summary.json` and `evaluation.md`, the best program of each kind before and after training to `programs/<when>-<kind>/`.
 */
export async function evaluatePolicy(run: Evaluating, when: Moment): Promise<void> {
  if (run.recorded || isKnown(run, when)) return;
  const { iteration } = run.progress.state;
  const { store, rollout, spec, phases } = run;
  const purpose = purposeOf(run, when);
  const { scratch, improve } = armsOf(spec);
  const launched = (kind: Sample["kind"]) => store.samplesFor(purpose).filter((sample) => sample.kind === kind);

  phases.enter("evaluatePolicy", scratch + improve, store.counts(purpose).completed);
  const showProgress = () => phases.show(store.counts(purpose).completed, saidOf(when, iteration));
  showProgress();
  store.events.on("finished", showProgress);
  try {
    await rollout.launchScratch({ count: scratch, there: launched("scratch") }, iteration, purpose);
    await allFinished(run, purpose);
    const valid = launched("scratch").filter(({ grade }) => grade?.valid);
    const there = launched("improve");
    await rollout.launchImprovements({ count: improve, there }, valid, iteration, purpose);
    await allFinished(run, purpose);
  } finally {
    store.events.off("finished", showProgress);
  }
  await record(run, when, purpose);
}

function isKnown(run: Evaluating, when: Moment): boolean {
  const { iteration } = run.progress.state;
  const { evaluation } = run.files.summary;
  const isThis = (known: EvaluatedBetween) => known.iteration === iteration && known.lineage === trainedBy(run);
  if (when === "during") return (evaluation.during ?? []).some(isThis);
  const known = evaluation[when];
  // A run that goes on after its end has another policy at its next end.
  return known !== undefined && (when !== "after" || known.iteration === iteration);
}

/** Returns the lineage whose training made the weights: after a restart an iteration can come again, with other weights. */
const trainedBy = ({ store, progress }: Pick<Evaluating, "store" | "progress">): number =>
  store.originOf({ lineage: store.lineage, iteration: progress.state.iteration });

async function allFinished(run: Evaluating, purpose: string): Promise<void> {
  const { store, server, spec, phases, grades, waiting } = run;
  const { scratch, improve } = armsOf(spec);
  for (;;) {
    const { queued, running, completed } = store.counts(purpose);
    phases.enter("evaluatePolicy", scratch + improve, completed);
    if (queued + running === 0) break;
    await server.waitForFinished(completed + 1, { ...waiting, purpose });
  }
  grades.gradeFinished();
}

async function record(run: Evaluating, when: Moment, purpose: string): Promise<void> {
  const { store, directory, files } = run;
  const { iteration } = run.progress.state;
  const { seed } = run.spec;
  const scale = scaleOf(run);
  const programs = programsOf(run, purpose);
  const found = summarize(programs, scale, { iteration, lost: store.counts(purpose).lost, seed });
  const known = files.summary.evaluation;
  // Between iterations those of later ones go: their weights were left by a restart.
  const earlier = (known.during ?? []).filter((policy) => policy.iteration < iteration);
  const evaluation: Evaluation = {
    ...known,
    settings: settingsOf(run),
    ...(when === "during" ? { during: [...earlier, { ...found, lineage: trainedBy(run) }] } : { [when]: found }),
  };
  // Its programs are gone where the run was evaluated by an older longrun.
  const before = when === "after" ? programsOf(run, purposeOf(run, "before")) : [];
  if (before.length > 0) evaluation.change = changeOf(before, programs, scale, seed);
  if (when !== "during") await writePrograms(run, when, programs);
  await files.updateSummary({ evaluation });
  files.announceEvaluation(evaluation);
  await replaceFile(join(directory, "evaluation.md"), evaluationMarkdown(evaluation));
  if (when === "during") files.tell(evaluationSentence(found, run.task.grader.metric));
}

/** What stayed lost says nothing of the policy, and is left out. */
function programsOf(run: Evaluating, purpose: string): EvaluatedProgram[] {
  return run.store
    .samplesFor(purpose)
    .filter(({ state }) => state === "finished" || state === "notExecuted")
    .map((sample): EvaluatedProgram => {
      const { id, kind, previous, grade: { valid = false, score, reward } = {}, result } = sample;
      const reported = valid ? reportedScore(run, sample) : undefined;
      return { id, kind, previous, valid, score, reported, reward, durationSeconds: result?.durationSeconds };
    });
}

/** With `rewardSplit: Half` the score on the rows that no reward has seen, which is taken here for the first time. */
function reportedScore({ task, store }: Evaluating, { id, grade }: Sample): number | undefined {
  if (task.spec.rewardSplit === "Full") return grade?.score;
  const submission = store.submission(id);
  const reported = submission && task.grade(submission).reportedScore;
  return Number.isFinite(reported) ? reported : undefined;
}

async function writePrograms(run: Evaluating, when: When, programs: readonly EvaluatedProgram[]): Promise<void> {
  const { store, task, directory } = run;
  for (const [kind, ofKind] of Map.groupBy(programs, (program) => program.kind)) {
    const best = bestProgram(ofKind, task.grader.direction);
    if (best === undefined) continue;
    const [sample] = store.samples([best.id]);
    const kept = bestSampleOf(sample!, store.submission(best.id), task.grader.metric);
    const reportedScore = task.spec.rewardSplit === "Half" ? best.reported : undefined;
    if (kept) await writeBest(join(directory, "programs", `${when}-${kind}`), { ...kept, reportedScore });
  }
}

function settingsOf({ task, spec }: Evaluating): EvaluationSettings {
  const { metric, direction } = task.grader;
  return {
    ...{ task: task.name, metric, direction, rewardSplit: task.spec.rewardSplit },
    ...{ protocol: armsOf(spec).protocol, samples: spec.evaluation.samples },
    ...{ temperature: spec.model.temperature, seed: spec.seed, confidence: CONFIDENCE },
  };
}

/** Medals are won on the whole hidden test alone. */
function scaleOf({ task }: Evaluating): Scale {
  const { direction, rewardRange } = task.grader;
  const ranked = task.spec.rewardSplit === "Full";
  return { direction, rewardRange, leaderboard: ranked ? task.mleBench?.leaderboard : undefined };
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
