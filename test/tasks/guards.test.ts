/** Guards on each of the twelve tasks, and their way from the grader through the store to metrics and report. */
import assert from "node:assert/strict";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { deflateSync } from "node:zlib";
import { parseTask } from "../../crds/trainingrun.ts";
import { mleBenchTasks } from "../../learner/grading/mlebench-tasks.ts";
import { iterationMetrics } from "../../learner/metrics/iteration.ts";
import { measuredSample } from "../../learner/metrics/measured-sample.ts";
import { LearnerMetrics } from "../../learner/metrics/prometheus.ts";
import { guardSentence } from "../../learner/report/guards.ts";
import { gradeSample } from "../../learner/rollout/grade-sample.ts";
import { newResult, newSample } from "../../learner/store/store.fixture.ts";
import { openStore } from "../../learner/store/store.ts";
import { openTask } from "../../learner/tasks/task.ts";
import { writeStandIn } from "./standins.ts";

const parent = mkdtempSync(join(tmpdir(), "guards-"));
after(() => rmSync(parent, { recursive: true }));

/** Sample submissions whose predictions differ from row to row. */
const varied = ["learning-agency-lab-automated-essay-scoring-2"];

for (const [id, mleBench] of Object.entries(mleBenchTasks()))
  test(`${id}: the guards flag the sample submission and the answers`, () => {
    const folder = writeStandIn(id, parent);
    const task = openTask(folder);
    const sample = readFileSync(join(folder, "prepared/public", mleBench.sample), "utf8");
    const graded = task.grade(Buffer.from(sample));
    if (id.startsWith("us-patent"))
      assert.deepEqual([graded.reason.code, graded.guards], ["undefinedScore", []], "constant: Pearson has no number");
    else assert.deepEqual(graded.guards, ["sampleSubmission", ...(varied.includes(id) ? [] : ["constant"])]);
    const answers = task.grade(readFileSync(join(folder, "prepared/private", mleBench.answers)));
    assert.deepEqual(answers.guards, ["perfect"]);
  });

test("A flag is in the store, the metrics, Prometheus and the report, and the task's cap stays", async () => {
  const id = "tabular-playground-series-dec-2021";
  const folder = writeStandIn(id, join(parent, "path"));
  const store = openStore(join(parent, "store.sqlite"));
  await store.beginLineage(() => true);
  const metrics = new LearnerMetrics();
  const spec = parseTask(`{ name: ${id}, guardedRewardCap: 0 }`, "spec");
  const task = openTask(folder, spec);
  const file = (path: string) => readFileSync(join(folder, "prepared", path), "utf8");
  const sample = file("public/sample_submission.csv").trimEnd().split("\n");
  const reordered = [sample[0], ...sample.slice(1).reverse(), ""].join("\n");
  // Another label in every third row.
  const honest = sample.map((row, index) => (index % 3 === 1 ? row.replace(/,.*/, ",9") : row)).join("\n");
  const constants = { failureReward: -10, markerReward: 0.1 };
  for (const [name, text] of Object.entries({ honest, reordered, answers: file("private/test.csv") })) {
    store.addSamples([newSample(name, { task: id })]);
    const lease = store.leases.takeAll(["actor-0"])[0]!;
    const result = newResult({ submissionBytes: Buffer.byteLength(text) });
    assert.equal(store.leases.accept("actor-0", lease, result, deflateSync(text)), "accepted");
    const grade = gradeSample(store.samples([name])[0]!, store.submission(name), task, constants);
    store.setGrade(name, grade);
    metrics.observeGrade(grade);
  }
  const trained = store.samplesFor("training").map((stored) => measuredSample(stored, 1));
  store.close();
  const line = lineOf(trained);
  assert.deepEqual(line.guards, { sampleSubmission: 1, constant: 1, perfect: 1 });
  assert.deepEqual([line.flagged, line.clampedRewards, line.cappedRewards], [2, 0, 2]);
  assert.equal(trained[0]!.reward, trained[0]!.score, "an unflagged submission earns its score");
  assert.deepEqual([trained[1]!.reward, trained[2]!.reward], [0, 0]);
  const scraped = await metrics.registry.metrics();
  assert.deepEqual(
    scraped.split("\n").filter((row) => row.startsWith("longrun_grading_events_total")),
    ["sampleSubmission 1", "constant 1", "perfect 1", "clamped 0", "capped 2"].map((event) => {
      const [label, value] = event.split(" ");
      return `longrun_grading_events_total{event="${label}"} ${value}`;
    }),
  );
  assert.equal(
    guardSentence([line]),
    "Guards flagged 2 of 3 valid submissions (67 %), in the last iteration 2 of 3, because they look as if no model had made them: copy of " +
      "the sample submission 1, one prediction throughout 1, perfect score 1. guardedRewardCap lowered the reward of 2. A perfect score on real " +
      "data means that answers were found, not predicted: read those programs.",
  );
  // The cap of a task.yaml counts where the TrainingRun has none.
  writeFileSync(join(folder, "task.yaml"), `name: ${id}\nguardedRewardCap: 0.25\n`);
  assert.equal(openTask(folder, parseTask(`name: ${id}`, "spec")).rewardRules.guardedRewardCap, 0.25);
  assert.equal(openTask(folder, spec).rewardRules.guardedRewardCap, 0);
});

function lineOf(trained: Parameters<typeof iterationMetrics>[0]["trained"]) {
  return iterationMetrics({
    ...{ iteration: 1, lineage: 1, trained, markerNames: [], launchedSeconds: [], durationWeights: [] },
    tasks: [{ name: "tabular-playground-series-dec-2021", direction: "Higher" }],
    ...{ kl: 0, klCoefficient: 0, entropy: 0, learningRate: 0, criticLearningRate: null },
    importanceMaxDeviation: null,
    importanceDeviates: false,
    importanceMean: 1,
    importanceCappedShare: 0,
    policySteps: [],
    criticSteps: [],
    improvePrompts: { shown: 0, noPrevious: 0, tooLong: 0 },
    debugPrompts: { shown: 0, noFailure: 0, tooLong: 0 },
    ...{ tokensGenerated: 0, secondsByPhase: {}, seconds: 1, elapsedSeconds: 1 },
    actors: { busySeconds: 0, aliveSeconds: 0 },
    executions: { queued: 0, running: 0, lost: 0, retried: 0 },
    ...{ verificationFailures: 0, instrumenterFaults: [], staleDropped: 0, staleWaited: 0 },
    ...{ zeroSpreadShare: null, noSignal: false, groupDropped: 0, zeroSignalDropped: 0, wallTime: new Date(0) },
  });
}
