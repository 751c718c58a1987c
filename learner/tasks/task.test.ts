import assert from "node:assert/strict";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { stringify } from "yaml";
import type { Task as TaskSpec } from "../../crds/trainingrun.ts";
import { TaskError } from "./errors.ts";
import { openTask, submissionLimit } from "./task.ts";
import { grader, writeTaskFolder } from "./task-folder.fixture.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-task-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const taskFolder = (name: string, changes?: Record<string, string | undefined>): string =>
  writeTaskFolder(join(folder, name), changes);

test("a task folder gives statement, grader and files", () => {
  const directory = taskFolder("whole");
  const task = openTask(directory);
  assert.equal(task.name, "small");
  assert.deepEqual(task.grader, grader);
  assert.equal(task.spec.executionTimeoutSeconds, 7);
  assert.equal(task.spec.outputBytes, 4194304);
  assert.equal(task.description, "# Small\n");
  assert.equal(task.publicDirectory, join(directory, "prepared/public"));
  assert.equal(task.grade(Buffer.from("id,y\n0,1\n1,4\n")).score, 1);
  assert.deepEqual(task.grade(Buffer.from("id,y\n0,0\n1,0\n")).guards, ["sampleSubmission", "constant"]);
});

test("the largest submission follows from the task's files unless the manifest gives it", () => {
  const MIB = 2 ** 20;
  const cases: [number, number, number][] = [
    [0, 0, MIB],
    [50_000, 40_000, MIB],
    [50_000, 100_000, 2 * MIB],
    [10 * MIB, 9 * MIB, 256 * MIB],
    [100 * MIB, 90 * MIB, 256 * MIB],
    [200 * MIB, 90 * MIB, 512 * MIB],
  ];
  for (const [sample, answers, limit] of cases) assert.equal(submissionLimit(sample, answers), limit);
  const task = openTask(taskFolder("sized"));
  assert.equal(task.submissionBytes, MIB);
  assert.equal(openTask(task.directory, { ...task.spec, submissionBytes: 5000 }).submissionBytes, 5000);
});

test("the TrainingRun's settings of a task override the folder's", () => {
  const directory = taskFolder("overridden");
  const spec: TaskSpec = { ...openTask(directory).spec, executionTimeoutSeconds: 99 };
  const { grader: _, ...withoutGrader } = spec;
  assert.deepEqual(openTask(directory, withoutGrader as TaskSpec).grader, grader);
  assert.equal(openTask(directory, spec).spec.executionTimeoutSeconds, 99);
  assert.equal(openTask(directory, { ...spec, description: "Other" }).description, "Other");
  const rmse: TaskSpec = { ...spec, grader: { ...grader, metric: "RMSE" } };
  assert.equal(openTask(directory, rmse).grader.metric, "RMSE");
  const half = openTask(directory, { ...spec, rewardSplit: "Half" });
  assert.deepEqual(half.privateScore(Buffer.from("id,y\n0,1\n1,4\n")), { score: 2, reason: "valid" });
  assert.equal(half.privateRows, 1);
  assert.throws(() => openTask(directory, { ...spec, privateShare: 0.5 }), {
    code: "answers",
    message:
      /privateShare 0\.5 leaves 1 of 2 rows in the public part, fewer than 10; give more answers, or set privateShare to 0$/,
  });
});

test("a grader without a rewardRange gets an estimated one, unless the run began without", () => {
  const { rewardRange: _, ...plain } = grader;
  const files = { "task.yaml": stringify({ name: "small", grader: plain }) };
  const directory = taskFolder("no-range", { ...files, "prepared/private/answers.csv": "id,y\n0,1\n1,5\n" });
  const task = openTask(directory);
  assert.deepEqual(task.grader, { ...plain, rewardRange: { worst: 2, best: 0 } });
  assert.deepEqual(task.rewardRules.rewardRange, { worst: 2, best: 0 });
  assert.match(task.rewardRangeFrom!, /best constant prediction/);
  const old = openTask(directory, undefined, { estimateRange: false });
  assert.deepEqual([old.grader, old.rewardRules.rewardRange, old.rewardRangeFrom], [plain, undefined, undefined]);
  const given = openTask(taskFolder("range"));
  assert.deepEqual([given.grader, given.rewardRangeFrom], [grader, undefined]);
});

test("a folder of mlebench has its answers in test.csv and its grader in the TrainingRun", () => {
  const directory = taskFolder("mlebench", {
    "task.yaml": undefined,
    "prepared/private/answers.csv": undefined,
    "prepared/private/test.csv": "id,y\n0,1\n1,2\n",
  });
  const spec = openTask(taskFolder("other")).spec;
  assert.equal(openTask(directory, spec).grade(Buffer.from("id,y\n0,1\n1,2\n")).score, 0);
});

test("an invalid folder is refused in one line", async (t) => {
  const yaml = (change: object) => stringify({ name: "small", grader: { ...grader, ...change } });
  const table: [string, Record<string, string | undefined>, string, RegExp][] = [
    [
      "no answers",
      { "prepared/private/answers.csv": undefined },
      "answers",
      /has no answers.csv and no test.csv; prepare the task again/,
    ],
    [
      "answers without target",
      { "prepared/private/answers.csv": "id,x\n0,1\n" },
      "answers",
      /does not fit the grader: missing column y/,
    ],
    ["no grader", { "task.yaml": undefined }, "folder", /does not say how it is graded; give spec.tasks/],
    ["unknown metric", { "task.yaml": yaml({ metric: "Luck" }) }, "folder", /metric.*Luck/],
    ["wrong direction", { "task.yaml": yaml({ direction: "Higher" }) }, "folder", /direction/],
    ["task.yaml is no YAML", { "task.yaml": "a: [" }, "folder", /not valid YAML/],
    ["no description", { "prepared/public/description.md": undefined }, "folder", /has no description.md/],
  ];
  for (const [name, changes, code, message] of table)
    await t.test(name, () => {
      const directory = taskFolder(name.replaceAll(" ", "-"), changes);
      assert.throws(
        () => openTask(directory),
        (error) => {
          assert.ok(error instanceof TaskError, String(error));
          assert.equal(error.code, code);
          assert.match(error.message, message);
          return true;
        },
      );
    });
  await t.test("a missing folder is refused", () =>
    assert.throws(() => openTask(join(folder, "none")), /no task folder/),
  );
});

test("an MLE-bench task has a bundled grader, by its own name or its folder's", () => {
  const id = "random-acts-of-pizza";
  const files = {
    "task.yaml": undefined,
    "prepared/public/sample_submission.csv": undefined,
    "prepared/public/sampleSubmission.csv": "request_id,requester_received_pizza\na,0\nb,0\nc,0\n",
    "prepared/private/answers.csv": undefined,
    "prepared/private/test.csv": "request_id,requester_received_pizza\na,0\nb,1\nc,0\n",
  };
  const submission = Buffer.from("request_id,requester_received_pizza\nc,0.5\na,0.5\nb,0.5\n");
  const named: TaskSpec = { ...openTask(taskFolder("limits")).spec, name: id };
  delete named.grader;
  for (const task of [openTask(taskFolder(id, files)), openTask(taskFolder("pizza", files), named)]) {
    assert.equal(task.name, id);
    assert.equal(task.mleBench?.leaderboard.gold, 0.97908);
    assert.deepEqual([task.grader.metric, task.grader.rewardFloor], ["RocAuc", -9]);
    assert.equal(task.grader.rewardRange, undefined, "its rewards are the paper's: scores as they are");
    const graded = task.grade(submission);
    assert.deepEqual([graded.score, graded.guards], [0.5, ["constant"]]);
    assert.deepEqual(task.grade(Buffer.from("request_id,requester_received_pizza\na,0\nb,0\nc,0\n")).guards, [
      "sampleSubmission",
      "constant",
    ]);
  }
  const own = openTask(taskFolder("own-grader"), { ...named, grader });
  assert.equal(own.mleBench, undefined, "a grader that is given wins");
  assert.throws(
    () => openTask(taskFolder(id, { ...files, "prepared/private/test.csv": "request_id\na\n" })),
    /test.csv does not fit the grader: missing column requester_received_pizza/,
  );
});
