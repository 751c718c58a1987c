import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { desiredActor } from "../parts/actors/desired.ts";
import { desiredLearner } from "../parts/learner/desired.ts";
import { desiredVolume } from "../parts/volume/desired.ts";
import { runOf } from "../run.fixture.ts";
import { parseRunDefaults, withRunDefaults } from "./run-defaults.ts";
import { DEFAULT_SETTINGS } from "./settings.fixture.ts";

const GPU = { limits: { "nvidia.com/gpu": 1 } };
const TOLERATION = { key: "nvidia.com/gpu", operator: "Exists", effect: "NoSchedule" };
const DEFAULTS = parseRunDefaults(
  `
queueName: team
inheritedMetadata: { labels: { team: ml, cost: "7" }, annotations: { a: b } }
learner:
  resources: ${JSON.stringify(GPU)}
  podTemplate: ${JSON.stringify({ metadata: { annotations: { a: "1" } }, spec: { priorityClassName: "high", tolerations: [TOLERATION] } })}
  storage: { className: fast }
actors:
  runtimeClassName: gvisor
  sandboxResources: { requests: { cpu: "1" } }
`,
  "defaults.yaml",
);

describe("withRunDefaults", () => {
  test("A run without settings gets the defaults", () => {
    const { spec } = withRunDefaults(runOf(), DEFAULTS);
    assert.deepEqual(
      [spec.queueName, spec.learner.resources, spec.actors.runtimeClassName, spec.actors.sandboxResources],
      ["team", GPU, "gvisor", { requests: { cpu: "1" } }],
    );
    assert.deepEqual(spec.actors.resources, runOf().spec.actors.resources);
  });

  test("the settings of a run override the defaults", () => {
    const own = {
      queueName: "mine",
      learner: { resources: { limits: { memory: "1Gi" } } },
      actors: { runtimeClassName: "kata" },
    };
    const { spec } = withRunDefaults(runOf(own), DEFAULTS);
    assert.deepEqual(
      [spec.queueName, spec.learner.resources, spec.actors.runtimeClassName],
      ["mine", own.learner.resources, "kata"],
    );
  });

  test("A run's pod template is laid over the default one", () => {
    const podTemplate = { spec: { priorityClassName: "low", nodeSelector: { disk: "fast" } } };
    const run = withRunDefaults(runOf({ learner: { podTemplate } }), DEFAULTS);
    const inputs = { configHash: "c", claimName: "quick-data", replicas: 1, settings: DEFAULT_SETTINGS } as const;
    const { metadata, spec } = desiredLearner(run, inputs).spec!.template;
    assert.equal(metadata?.annotations?.a, "1");
    assert.deepEqual(
      [spec?.priorityClassName, spec?.nodeSelector, spec?.tolerations],
      ["low", { disk: "fast" }, [TOLERATION]],
    );
  });

  test("Labels and annotations of the default and of the run are joined", () => {
    const { spec } = withRunDefaults(runOf({ inheritedMetadata: { labels: { team: "mine" } } }), DEFAULTS);
    assert.deepEqual(spec.inheritedMetadata, { labels: { team: "mine", cost: "7" }, annotations: { a: "b" } });
  });

  test("An actor's Job has the defaults", () => {
    const job = desiredActor(withRunDefaults(runOf(), DEFAULTS), 0, 0, DEFAULT_SETTINGS);
    assert.equal(job.metadata.labels?.["kueue.x-k8s.io/queue-name"], "team");
    assert.equal(job.spec?.template.spec?.runtimeClassName, "gvisor");
  });

  test("Without defaults a run stays the same", () => {
    const run = runOf();
    assert.equal(withRunDefaults(run, undefined), run);
  });
});

describe("the storage class", () => {
  const classOf = (run: Parameters<typeof desiredVolume>[0], byDefault?: string) =>
    desiredVolume(run, "quick-data", { succeeded: false, defaultClass: byDefault }).spec?.storageClassName;
  const own = runOf({ learner: { storage: { className: "own" } } });
  const CASES: [what: string, found: string | undefined, expected: string | undefined][] = [
    ["the run's own", classOf(own, "fast"), "own"],
    ["the default", classOf(runOf(), "fast"), "fast"],
    ["the cluster's", classOf(runOf()), undefined],
  ];
  for (const [what, found, expected] of CASES) test(what, () => assert.equal(found, expected));
});

test("Kueue's label on the run takes precedence over the default queue", () => {
  const labels = { "kueue.x-k8s.io/queue-name": "mine" };
  const job = desiredActor(withRunDefaults(runOf({}, {}, { labels }), { queueName: "team" }), 0, 0, DEFAULT_SETTINGS);
  assert.equal(job.metadata.labels?.["kueue.x-k8s.io/queue-name"], "mine");
});

describe("parseRunDefaults", () => {
  test("An empty file has no defaults", () => assert.deepEqual(parseRunDefaults("", "f"), {}));
  const REFUSED: [what: string, text: string, message: RegExp][] = [
    [
      "a field that the API server has filled in",
      "learner: { device: CUDA }",
      /f: learner\.device cannot have a default; these can: queueName, /,
    ],
    ["no object", "[1]", /f: the file cannot have a default/],
    ["what no run may say", "actors: { podTemplate: { spec: { hostNetwork: true } } }", /hostNetwork/],
    ["two parts of GPUs", "learner: { resources: { limits: { nvidia.com/gpu.shared: 2 } } }", /gpu/i],
    ["a wrong value", "queueName: Team", /queueName/],
  ];
  for (const [what, text, message] of REFUSED)
    test(`parseRunDefaults refuses ${what}`, () => assert.throws(() => parseRunDefaults(text, "f"), message));
});
