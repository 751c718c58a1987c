/**
 * Writes the run folder of a run that never happened, for tests of the report alone. Every number in it is made up by
 * a seeded generator; none was measured, and none may be shown as a result.
 */
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { uniforms } from "../engine/model/random.ts";
import { changeOf, type EvaluatedProgram, summarize } from "../evaluation/figures.ts";
import type { PrivateFacts } from "../evaluation/private-score.ts";
import { type IterationMetrics, iterationMetrics, type TaskScale } from "../metrics/iteration.ts";
import type { MeasuredSample } from "../metrics/measured-sample.ts";
import type { Evaluation, RunSummary } from "../metrics/summary.ts";
import { writeSummary } from "../metrics/summary.ts";

export interface MadeUpRun {
  iterations: number;
  finished: number;
  state: "running" | "succeeded" | "failed" | "stopped";
  weighting?: string;
  collection?: string;
  /** Chance that a program is valid at the start; 0 never becomes valid. */
  validAtStart?: number;
  tasks?: readonly string[];
  batch?: number;
  /** Slow programs are thrown away. */
  losesSlow?: boolean;
  seed?: number;
  /** Why the engine idles most. [idleActors] `unmeasured`: lines as an earlier longrun wrote them. */
  engine?: "idleActors" | "idlePrograms" | "idleStaleness" | "idleOther" | "busy" | "unmeasured";
  /** Guards that flag every tenth valid submission. */
  guards?: readonly string[];
  /** Why no program was valid. */
  /** `evaluation.everyIterations`. */
  evaluatedEvery?: number;
  commonErrors?: RunSummary["commonErrors"];
  /** About the best programs' private scores. */
  privateFacts?: Partial<PrivateFacts>;
  /** Every valid reward was raised to the grader's rewardFloor. */
  clamped?: boolean;
  /** The manifest only names the task, as it would name a bundled one. */
  bundled?: boolean;
}

const MARKER_NAMES = [
  "imported packages",
  "loaded data",
  "defined model",
  "training loss",
  "trained model",
  "testing loss",
  "predicted test labels",
];

const FAMILIES = [
  "linear",
  "ridge",
  "tree",
  "random forest",
  "extra trees",
  "boosting",
  "kNN",
  "MLP",
  "ensemble",
  "SVM",
  "mean",
];

export async function writeMadeUpRun(directory: string, run: MadeUpRun): Promise<void> {
  const tasks = (run.tasks ?? ["diamonds"]).map(
    (name): TaskScale => ({ name, metric: "MAE", direction: "Lower", worst: 3000, best: 260 }),
  );
  await mkdir(join(directory, "best"), { recursive: true });
  await writeFile(join(directory, "trainingrun.yaml"), manifest(run, tasks));
  const lines: IterationMetrics[] = [];
  for (let iteration = 1; iteration <= run.finished; iteration++)
    lines.push(madeUpLine(run, tasks, iteration, lines.at(-1)));
  await writeFile(join(directory, "metrics.jsonl"), lines.map((line) => `${JSON.stringify(line)}\n`).join(""));
  await writeSummary(directory, {
    state: run.state,
    message: run.state === "failed" ? "made up: actor-0 could not be started; see logs/actor-0.log" : "",
    startedAt: "2000-01-01T00:00:00.000Z",
    updatedAt: "2000-01-01T00:10:00.000Z",
    iterations: run.finished,
    elapsedSeconds: lines.at(-1)?.elapsedSeconds ?? 3,
    evaluation: lines[0] ? madeUpEvaluation(run, lines) : {},
    corpus: { programs: 12_000, bestScore: 291.2, bestProgram: "made up: boosting" },
    versions: {
      longrun: "0.0.0",
      node: "v24.0.0",
      "onnxruntime-node": "1.0.0",
      python: "3.11",
      numpy: "2.4",
      pandas: "3.1",
    },
    isolationLevel: "namespaces",
    ...(run.commonErrors && { commonErrors: run.commonErrors }),
  });
  const best = lines.at(-1)?.bestScoreSoFar;
  if (best === null || best === undefined) return;
  for (const name of ["before-scratch", "after-improve"])
    await writeProgram(join(directory, "programs", name), run, best);
  await writeProgram(join(directory, "best"), run, best);
}

async function writeProgram(directory: string, run: MadeUpRun, best: number): Promise<void> {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, "program.py"), PROGRAM);
  await writeFile(join(directory, "output.txt"), OUTPUT);
  const facts = {
    score: best,
    metric: "MAE",
    iteration: run.finished,
    durationSeconds: 3.21,
    family: "boosting",
    guards: run.guards ?? [],
    plan: "Made up: encode the grades in order, fit boosted trees to the log of the price.",
    ...run.privateFacts,
  };
  await writeFile(join(directory, "score.json"), JSON.stringify(facts));
}

/** 64 programs from scratch and as many improvements, about as good as the line's programs. */
function madeUpPrograms({ iteration, validFraction, meanScore }: IterationMetrics): EvaluatedProgram[] {
  const uniform = uniforms(1, "made up evaluation", iteration);
  return Array.from({ length: 128 }, (_, index) => {
    const valid = uniform() < validFraction;
    const score = (meanScore ?? 500) * (0.6 + 0.8 * uniform());
    const kind = index < 64 ? "scratch" : "improve";
    const previous = kind === "improve" ? `s${index - 64}` : undefined;
    return {
      ...{ id: `s${index}`, kind, previous, valid, reward: valid ? -score / 1000 : -10, durationSeconds: uniform() },
      ...(valid && { score, reported: score }),
    };
  });
}

function madeUpEvaluation(run: MadeUpRun, lines: readonly IterationMetrics[]): Evaluation {
  const scale = { direction: "Lower", rewardRange: { worst: 3000, best: 260 } } as const;
  const [before, after] = [madeUpPrograms(lines[0]!), madeUpPrograms(lines.at(-1)!)];
  const of = (programs: EvaluatedProgram[], iteration: number) =>
    summarize(programs, scale, { iteration, lost: 0, seed: 0 });
  const every = run.evaluatedEvery;
  const during = every ? lines.filter(({ iteration }) => iteration % every === 0) : [];
  return {
    settings: {
      task: run.tasks?.[0] ?? "diamonds",
      metric: "MAE",
      direction: "Lower",
      rewardSplit: "Full",
      protocol: "Paper",
      ...{ samples: 64, temperature: 0.7, seed: 0, confidence: 0.95 },
    },
    before: of(before, 0),
    ...(every && { during: during.map((line) => ({ ...of(madeUpPrograms(line), line.iteration), lineage: 1 })) }),
    ...(run.state === "succeeded" && { after: of(after, run.finished), change: changeOf(before, after, scale, 0) }),
  };
}

function madeUpLine(
  run: MadeUpRun,
  tasks: TaskScale[],
  iteration: number,
  previous?: IterationMetrics,
): IterationMetrics {
  const uniform = uniforms(run.seed ?? 1, "made up", iteration);
  const progress = (iteration - 1) / Math.max(1, run.iterations - 1);
  const start = run.validAtStart ?? 0.55;
  const validChance = start === 0 ? 0 : start + (0.93 - start) * (1 - Math.exp(-3 * progress));
  const batch = run.batch ?? 48;
  const ended = Array.from({ length: run.losesSlow ? Math.round(batch * 1.5) : batch }, () =>
    madeUpSample(uniform, validChance, progress, tasks, iteration),
  )
    .map((sample, i) => (run.guards && sample.valid && i % 10 === 0 ? { ...sample, guards: run.guards } : sample))
    .map((sample) => (run.clamped && sample.valid ? { ...sample, clamped: true } : sample));
  const trained = run.losesSlow
    ? [...ended].sort((a, b) => (a.durationSeconds ?? 0) - (b.durationSeconds ?? 0)).slice(0, batch)
    : ended;
  const dt = trained.map((sample) => 1 + (sample.durationSeconds ?? 0));
  const meanDt = dt.reduce((sum, value) => sum + value, 0) / dt.length;
  const secondsByPhase = {
    generate: 3 + uniform(),
    execute: 14 + 9 * uniform(),
    evaluate: 1.6 + 0.4 * uniform(),
    train: 6 + uniform(),
    checkpoint: 0.3 + 0.2 * uniform(),
  };
  const seconds = Object.values(secondsByPhase).reduce((sum, value) => sum + value, 0.6);
  const step = {
    loss: -0.02 * uniform(),
    kl: 0.002 * uniform(),
    ratioMax: 1.3 + 0.6 * uniform(),
    ratioMean: 1,
    clipFraction: 0.02 + 0.06 * uniform(),
    entropy: 0.9 - 0.4 * progress,
    gradientNorm: 0.5 + uniform(),
    skipped: false,
  };
  const elapsedSeconds = (previous?.elapsedSeconds ?? 8) + seconds;
  return iterationMetrics({
    iteration,
    lineage: 1,
    tasks,
    markerNames: MARKER_NAMES,
    trained,
    launchedSeconds: ended.flatMap((sample) => sample.durationSeconds ?? []),
    durationWeights: run.weighting === "Off" ? dt.map(() => 1) : dt.map((value) => value / meanDt),
    kl: 0.09 * progress ** 1.4 + 0.003 * uniform(),
    klCoefficient: 0.001,
    entropy: 0.9 - 0.45 * progress + 0.04 * uniform(),
    importanceMaxDeviation: 1e-4 * uniform(),
    importanceDeviates: false,
    importanceMean: 1,
    learningRate: 3e-4,
    criticLearningRate: null,
    importanceCappedShare: 0,
    policySteps: Array.from({ length: 8 }, () => step),
    criticSteps: [
      {
        loss: 3 - 2 * progress,
        explainedVariance: 0.02 + 0.3 * progress + 0.1 * uniform(),
        gradientNorm: 2,
        skipped: false,
      },
    ],
    tokensGenerated: 6400,
    secondsByPhase,
    engineSeconds: madeUpEngine(run, seconds, progress),
    seconds,
    elapsedSeconds,
    actors: { busySeconds: (0.82 + 0.14 * uniform()) * seconds, aliveSeconds: seconds },
    executions: { queued: 4, running: 1, lost: 0, retried: 0 },
    improvePrompts: { shown: 3, noPrevious: 0, tooLong: 2 },
    debugPrompts: { shown: 0, noFailure: 0, tooLong: 0 },
    verificationFailures: 0,
    instrumenterFaults: [],
    staleDropped: 0,
    staleWaited: 0,
    zeroSpreadShare: null,
    noSignal: false,
    groupDropped: 0,
    zeroSignalDropped: 0,
    checkpoint: { seconds: 0.3, bytes: 12_600_000 },
    previous,
    wallTime: new Date(Date.UTC(2000, 0, 1) + elapsedSeconds * 1000),
  });
}

/** The engine comes to idle less. */
function madeUpEngine({ engine = "idleActors" }: MadeUpRun, seconds: number, progress: number) {
  if (engine === "unmeasured") return undefined;
  const idle = engine === "busy" ? 0.04 : 0.5 - 0.35 * progress;
  const shares = { idleActors: 0.1, idlePrograms: 0.1, idleStaleness: 0.1, idleOther: 0.1 };
  shares[engine === "busy" ? "idleOther" : engine] += 0.6;
  const idleSeconds = mapped(shares, (share) => share * idle * seconds);
  return { generating: 0.6 * (1 - idle) * seconds, updating: 0.4 * (1 - idle) * seconds, ...idleSeconds };
}

const mapped = <Name extends string>(record: Record<Name, number>, to: (value: number) => number) =>
  Object.fromEntries(Object.entries<number>(record).map(([name, value]) => [name, to(value)])) as Record<Name, number>;

function madeUpSample(
  uniform: () => number,
  validChance: number,
  progress: number,
  tasks: TaskScale[],
  iteration: number,
): MeasuredSample {
  const task = tasks[Math.floor(uniform() * tasks.length)]!;
  const tokens = { promptTokens: { length: 60 }, responseTokens: { length: 110 + Math.floor(30 * uniform()) } };
  const truncated = tokens.responseTokens.length > 130;
  const kind = uniform() < 0.5 && iteration > 1 ? "improve" : "scratch";
  const base = { task: task.name, kind, lag: uniform() < 0.2 ? 1 : 0, truncated, ...tokens } as const;
  if (uniform() < 0.05 * (1 - progress)) return { ...base, valid: false, reward: -10 };
  const skew = Math.floor(FAMILIES.length * uniform() ** (1 + 2 * progress));
  const family = FAMILIES[(skew + 5) % FAMILIES.length]!;
  const durationSeconds = Math.exp(-1.2 + 2.4 * progress + 1.1 * (uniform() + uniform() - 1) * 1.6);
  const valid = uniform() < validChance;
  const reached = valid ? 7 : Math.floor(7 * uniform());
  const bad = uniform();
  const outcome = valid
    ? "completed"
    : bad < 0.75
      ? "failed"
      : bad < 0.85
        ? "timedOut"
        : bad < 0.92
          ? "outOfMemory"
          : "completed";
  const score = 280 + 900 * (1 - 0.75 * progress) * uniform() ** 2;
  return {
    ...base,
    outcome,
    durationSeconds,
    family,
    instrumenter: "Syntax",
    valid,
    ...(valid && { score, verbatim: uniform() < 0.06 }),
    reward: valid ? -score / 1000 : -10 + reached * 0.1,
    markers: MARKER_NAMES.slice(0, reached).map((name) => ({ name })),
    forgedMarkers: 0,
  };
}

function manifest(run: MadeUpRun, tasks: TaskScale[]): string {
  const grader = "      grader: { metric: MAE, idColumn: id, targetColumns: [price], direction: Lower }\n";
  const items = tasks.map(({ name }) => {
    return `    - name: ${name}\n${run.bundled ? "" : grader}      executionTimeoutSeconds: 20`;
  });
  return `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: { name: made-up-run }
spec:
  seed: 0
  suspend: false
  tasks:
${items.join("\n")}
  model: { policy: policy, adaptation: { type: Full }, instrumenter: Syntax, temperature: 0.8, topP: 1, maxPromptTokens: 512, maxResponseTokens: 256 }
  algorithm: { batchSize: ${run.batch ?? 48}, oversampling: 1.25, collection: ${run.collection ?? "CarryOver"}, maxStaleness: 2, ppoEpochs: 1, miniBatchSize: 8, learningRate: 0.0003, criticLearningRate: 0.0003, clipRatio: 0.2, durationWeighting: ${run.weighting ?? "Paper"}, startupSeconds: 1, validScoreWeight: 0.5 }
  actors: { min: 1, max: 1, slots: 1, autoscaling: Demand }
  stopping: { iterations: ${run.iterations} }
`;
}

const PROGRAM = `"""Made up for tests: no run wrote this program."""
import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor

train = pd.read_csv("input/train.csv")
test = pd.read_csv("input/test.csv")
grades = {"Fair": 0, "Good": 1, "Very Good": 2, "Premium": 3, "Ideal": 4}
for frame in (train, test):
    frame["cut"] = frame["cut"].map(grades)  # ordered, so that a tree can split on it
    frame["volume"] = frame["x"] * frame["y"] * frame["z"]
features = [c for c in train.columns if c not in ("id", "price") and train[c].dtype != "str"]
model = HistGradientBoostingRegressor(max_iter=300, learning_rate=0.08, random_state=0)
model.fit(train[features], np.log(train["price"]))
if len(test) > 0 and "<script>alert('escaped?')</script>":
    prediction = np.exp(model.predict(test[features]))
pd.DataFrame({"id": test["id"], "price": prediction}).to_csv("submission.csv", index=False)
`;

const OUTPUT = `imported packages
loaded data
defined model
\u001b[32mtraining loss 0.081\u001b[0m
progress 10 %\rprogress 100 %
trained model
testing loss 0.094
<script>alert('escaped?')</script> & <b>bold</b>
predicted test labels
`;
