import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { MINIMAL, problems } from "./manifest.fixture.ts";
import { parseTrainingRun } from "./trainingrun.ts";

describe("--set", () => {
  const value = (override: string, read: (run: ReturnType<typeof parseTrainingRun>) => unknown): unknown =>
    read(parseTrainingRun(MINIMAL, "run.yaml", [override]));
  const good: [override: string, read: (run: ReturnType<typeof parseTrainingRun>) => unknown, expected: unknown][] = [
    ["algorithm.batchSize=256", ({ spec }) => spec.algorithm.batchSize, 256],
    ["spec.algorithm.batchSize=256", ({ spec }) => spec.algorithm.batchSize, 256],
    ["metadata.name=other", ({ metadata }) => metadata.name, "other"],
    ["tasks[0].name=wage", ({ spec }) => spec.tasks[0]!.name, "wage"],
    ["tasks.0.name=wage", ({ spec }) => spec.tasks[0]!.name, "wage"],
    ["tasks=[{name: wage}]", ({ spec }) => spec.tasks[0]!.name, "wage"],
    ["algorithm.learningRate=3e-4", ({ spec }) => spec.algorithm.learningRate, 3e-4],
    ["evaluation.before=false", ({ spec }) => spec.evaluation.before, false],
    ["tasks[0].description=a = b", ({ spec }) => spec.tasks[0]!.description, "a = b"],
    ['tasks[0].description="12"', ({ spec }) => spec.tasks[0]!.description, "12"],
    ["algorithm.durationWeighting=Off", ({ spec }) => spec.algorithm.durationWeighting, "Off"],
    ["stopping.deadlineSeconds=null", ({ spec }) => spec.stopping.deadlineSeconds, undefined],
    ["model.source={huggingFace: {repo: a/b}}", ({ spec }) => spec.model.policy, undefined], // which the manifest names
    ["model.policy=./other", ({ spec }) => [spec.model.policy, spec.model.source], ["./other", undefined]],
    [
      "learner.resources.limits={cpu: 2, memory: 4Gi}",
      ({ spec }) => spec.learner.resources.limits,
      { cpu: 2, memory: "4Gi" },
    ],
  ];
  for (const [override, read, expected] of good)
    test(override, () => assert.deepEqual(value(override, read), expected));

  const bad: [override: string, expected: string][] = [
    [
      "algorithm.batchSize",
      "--set algorithm.batchSize: write it as path=value, for example algorithm.batchSize=32 or tasks[0].name=wage",
    ],
    ["=3", "--set =3: write it as path=value, for example algorithm.batchSize=32 or tasks[0].name=wage"],
    ["a..b=3", "--set a..b=3: write it as path=value, for example algorithm.batchSize=32 or tasks[0].name=wage"],
    [
      "__proto__.x=3",
      "--set __proto__.x=3: write it as path=value, for example algorithm.batchSize=32 or tasks[0].name=wage",
    ],
    ["tasks[5].name=x", "--set tasks[5].name=x: spec.tasks is a list of 1; give an index from 0 to 1"],
    ["tasks.name=x", "--set tasks.name=x: spec.tasks is a list of 1; give an index from 0 to 1"],
    ["metadata.name.x=3", "--set metadata.name.x=3: metadata.name has no fields"],
    ["seed=[1", "--set seed=[1: the value is not valid YAML; quote it"],
    [
      "algorithm.batchSize=many",
      '--set algorithm.batchSize=many: spec.algorithm.batchSize is "many"; give a whole number from 1 to 65536',
    ],
    [
      "algorithm.batchSizes=3",
      "--set algorithm.batchSizes=3: spec.algorithm.batchSizes is unknown; did you mean batchSize?",
    ],
    [
      "batchSize=3",
      "--set batchSize=3: spec.batchSize is unknown; did you mean spec.algorithm.batchSize or spec.warmStart.batchSize?",
    ],
    [
      "constructor=3",
      "--set constructor=3: spec.constructor is unknown; remove it (spec has tasks, model, prompts, algorithm, learner, actors, generation, evaluation, stopping, failurePolicy, restart, seed, suspend, initFrom, warmStart, results, notifications, ttlSecondsAfterFinished, queueName, controllerClass, runtimeRef, inheritedMetadata, env, caBundle, managedBy, upgradePolicy)",
    ],
  ];
  for (const [override, expected] of bad)
    test(`refuses ${override}`, () => assert.deepEqual(problems(MINIMAL, [override]), [expected]));

  test("The last of two values wins", () => {
    const run = parseTrainingRun(MINIMAL, "run.yaml", ["seed=1", "seed=2"]);
    assert.equal(run.spec.seed, 2);
  });
});
