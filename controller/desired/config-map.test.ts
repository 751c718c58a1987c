import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { parse } from "yaml";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { runOf } from "../run.fixture.ts";
import { desiredConfigMap } from "./config-map.ts";
import { CUSTOM, claim, configOf, SEVERAL } from "./desired.fixture.ts";
import type { Run } from "./names.ts";

describe("configuration", () => {
  test("is a manifest that the learner accepts", () => {
    for (const spec of [
      {},
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
    test(`does not change with ${JSON.stringify(spec)}: the learner is not restarted`, () =>
      assert.deepEqual(desiredConfigMap(runOf(spec)).data, desiredConfigMap(runOf()).data));

  test("changes with what the learner reads", () => {
    for (const spec of [
      { stopping: { iterations: 3 } },
      { actors: { idleSeconds: 5 } },
      { learner: { leaseSeconds: 90 } },
    ])
      assert.notDeepEqual(desiredConfigMap(runOf(spec)).data, desiredConfigMap(runOf()).data);
  });

  test("is the same text whatever order the fields come in", () => {
    const run = runOf();
    const reversed = { ...run, spec: Object.fromEntries(Object.entries(run.spec).reverse()) } as Run;
    assert.deepEqual(desiredConfigMap(reversed).data, desiredConfigMap(run).data);
  });

  test("a custom task brings its task.yaml and finds its data where it is mounted", () => {
    const run = runOf(CUSTOM);
    assert.equal(configOf(run).spec.tasks[0].privateData.path, "/tasks/own/prepared/private");
    assert.equal(parse(desiredConfigMap(run).data!["task.yaml"]!).grader.metric, "RMSE");
    assert.equal(desiredConfigMap(runOf()).data!["task.yaml"], undefined);
  });

  test("each custom task has a task.yaml, and the learner's manifest leaves out the sandbox's image", () => {
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

  test("initFrom.run is the copy on the run's own volume", () =>
    assert.deepEqual(configOf(runOf({ initFrom: { run: "other" } })).spec.initFrom, { path: "/data/init" }));
});
