import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { parseTrainingRun } from "../../../crds/trainingrun.ts";
import { runOf } from "../run.fixture.ts";
import { desiredConfigMap } from "./config-map.ts";
import { CUSTOM, claim, configOf, SEVERAL } from "./desired.fixture.ts";
import { inputsOf } from "./inputs.ts";
import type { Run } from "./names.ts";

describe("The learner's ConfigMap", () => {
  test("It has a manifest that the learner accepts", () => {
    for (const spec of [
      {},
      { warmStart: { data: { configMap: { name: "corpus" } } } },
      CUSTOM,
      { initFrom: { run: "other" } },
      { model: { policy: "big/model", volume: claim("models") } },
    ]) {
      const data = desiredConfigMap(runOf(spec)).data!;
      parseTrainingRun(data["trainingrun.yaml"]!, "config");
    }
  });

  const IRRELEVANT: object[] = [
    { suspend: true },
    { ttlSecondsAfterFinished: 5 },
    { notifications: { webhook: { url: "https://hooks.test/a" } } },
    { actors: { max: 9, min: 2, scaleDownSeconds: 1, image: "x", podTemplate: { spec: {} }, evictionGraceSeconds: 9 } },
    { learner: { image: "x", resources: { requests: { cpu: "2" } }, storage: { retain: "Never" } } },
  ];
  for (const spec of IRRELEVANT)
    test(`It stays the same with ${JSON.stringify(spec)}, so that the learner does not restart`, () =>
      assert.deepEqual(desiredConfigMap(runOf(spec)).data, desiredConfigMap(runOf()).data));

  test("It changes with the fields that the learner reads", () => {
    for (const spec of [
      { stopping: { iterations: 3 } },
      { actors: { idleSeconds: 5 } },
      { learner: { leaseSeconds: 90 } },
    ])
      assert.notDeepEqual(desiredConfigMap(runOf(spec)).data, desiredConfigMap(runOf()).data);
  });

  test("Its text does not depend on the order of fields", () => {
    const run = runOf();
    const reversed = { ...run, spec: Object.fromEntries(Object.entries(run.spec).reverse()) } as Run;
    assert.deepEqual(desiredConfigMap(reversed).data, desiredConfigMap(run).data);
  });

  test("A custom task has its task.yaml, with the paths of its mounted data", () => {
    const run = runOf(CUSTOM);
    assert.equal(configOf(run).spec.tasks[0].privateData.path, "/tasks/own/prepared/private");
    assert.equal(parse(desiredConfigMap(run).data!["task.yaml"]!).grader.metric, "RMSE");
    assert.equal(desiredConfigMap(runOf()).data!["task.yaml"], undefined);
  });

  test("Each custom task has a task.yaml, and the learner's manifest leaves out the sandbox's image", () => {
    const { data } = desiredConfigMap(runOf(SEVERAL));
    assert.deepEqual(Object.keys(data!).sort(), ["task-other.yaml", "task-own.yaml", "trainingrun.yaml"]);
    const { tasks } = configOf(runOf(SEVERAL)).spec;
    assert.deepEqual(
      tasks.map((task: { weight?: number; sandboxImage?: string }) => [task.weight, task.sandboxImage]),
      [
        [undefined, undefined],
        [undefined, undefined],
        [2, undefined],
      ],
    );
    assert.doesNotThrow(() => parseTrainingRun(data!["trainingrun.yaml"]!, "config"));
  });

  test("warmStart.data becomes the path at which the learner mounts it, and other data is another input", () => {
    const of = (name: string, more = {}) => runOf({ warmStart: { data: { configMap: { name } }, ...more } });
    assert.deepEqual(configOf(of("corpus", { epochs: 5 })).spec.warmStart, {
      data: { path: "/warm-start" },
      epochs: 5,
    });
    assert.notEqual(inputsOf(of("corpus")).learner, inputsOf(of("other")).learner);
    assert.equal(inputsOf(of("corpus")).actor, inputsOf(of("other")).actor);
    assert.equal(configOf(runOf()).spec.warmStart, undefined);
  });

  test("initFrom.run becomes the copy on the run's own volume", () =>
    assert.deepEqual(configOf(runOf({ initFrom: { run: "other" } })).spec.initFrom, { path: "/data/init" }));
});
