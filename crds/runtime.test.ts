import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { describe, test } from "node:test";
import { stringify } from "yaml";
import { MINIMAL } from "./manifest.fixture.ts";
import { parseRuntime, type RuntimeSpec, runtimeProblems, withRuntime } from "./runtime.ts";
import { RUNTIME_FIELDS } from "./runtime-fields.ts";
import { matches } from "./runtime-limits.ts";
import { runtimeSchema } from "./runtime-schema.ts";
import { readSchema } from "./schema.ts";
import { ManifestError, parseTrainingRun } from "./trainingrun.ts";

const runOf = (...set: string[]) => parseTrainingRun(MINIMAL, "run.yaml", set);
const runtimeOf = (spec: object) =>
  parseRuntime(
    stringify({ apiVersion: "longrun.dev/v1alpha1", kind: "TrainingRuntime", metadata: { name: "gpu" }, spec }),
    "runtime.yaml",
  );

const GPU = { limits: { "nvidia.com/gpu": 1 } };
const TOLERATION = { key: "nvidia.com/gpu", operator: "Exists" as const, effect: "NoSchedule" as const };
const CLAIM = { name: "gpu", resourceClaimTemplateName: "one" };
const USES = { claims: [{ name: "gpu" }] };
const RUNTIME: RuntimeSpec = {
  queueName: "team",
  inheritedMetadata: { labels: { team: "ml", cost: "7" }, annotations: { a: "b" } },
  env: [{ name: "A", value: "1" }],
  learner: {
    ...{ device: "CUDA", resources: GPU },
    podTemplate: { spec: { priorityClassName: "high", tolerations: [TOLERATION] } },
    storage: { className: "fast", retain: "Never" },
  },
  actors: { min: 2, max: 4, slots: 2, sandboxResources: { requests: { cpu: "1" } } },
  generation: { image: "vllm" },
};

describe("withRuntime", () => {
  test("A run without settings gets the runtime's", () => {
    const { spec } = withRuntime(runOf(), RUNTIME);
    assert.deepEqual(
      [spec.queueName, spec.learner.device, spec.learner.resources, spec.learner.storage.retain, spec.env],
      ["team", "CUDA", GPU, "Never", [{ name: "A", value: "1" }]],
    );
    assert.deepEqual([spec.actors.min, spec.actors.max, spec.actors.slots], [2, 4, 2]);
    assert.equal(spec.generation, undefined, "a runtime adds no generators");
    assert.equal(withRuntime(runOf("generation={}"), RUNTIME).spec.generation!.image, "vllm");
  });

  const OWN: [what: string, set: string[], read: (spec: ReturnType<typeof runOf>["spec"]) => unknown, own: unknown][] =
    [
      ["queue", ["queueName=mine"], ({ queueName }) => queueName, "mine"],
      ["number of actors", ["actors.min=3", "actors.max=9"], ({ actors }) => [actors.min, actors.max], [3, 9]],
      [
        "resources, as a whole",
        ["learner.resources={limits: {memory: 1Gi}}"],
        ({ learner }) => learner.resources,
        { limits: { memory: "1Gi" } },
      ],
      [
        "pod template, field by field",
        ["learner.podTemplate={spec: {priorityClassName: low, nodeSelector: {a: b}}}"],
        ({ learner }) => learner.podTemplate!.spec,
        { priorityClassName: "low", tolerations: [TOLERATION], nodeSelector: { a: "b" } },
      ],
      [
        "labels, joined",
        ["inheritedMetadata={labels: {team: mine}}"],
        ({ inheritedMetadata }) => inheritedMetadata,
        { labels: { team: "mine", cost: "7" }, annotations: { a: "b" } },
      ],
      [
        "variables, by name",
        ["env=[{name: A, value: '2'}, {name: B, value: '3'}]"],
        ({ env }) => env,
        [
          { name: "A", value: "2" },
          { name: "B", value: "3" },
        ],
      ],
    ];
  for (const [what, set, read, own] of OWN)
    test(`A run's own ${what} has precedence`, () =>
      assert.deepEqual(read(withRuntime(runOf(...set), RUNTIME).spec), own));

  test("A value that equals the schema's default counts as left out, because the API server fills it in", () => {
    assert.equal(withRuntime(runOf("actors.max=1", "learner.device=Auto"), RUNTIME).spec.actors.max, 4);
  });

  test("Each run copies its results into a folder of its own below the runtime's prefix; a run's own destination stays", () => {
    const s3 = { bucket: "results", prefix: "team" };
    const results = { s3, deadlineSeconds: 1, intervalSeconds: 1, keepLast: 1 } as never;
    const run = { ...runOf(), metadata: { name: "r", namespace: "n" } };
    assert.deepEqual(withRuntime(run, { results }).spec.results!.s3, { bucket: "results", prefix: "team/n/r" });
    const own = runOf("results={s3: {bucket: mine, prefix: a}}");
    assert.equal(withRuntime(own, { results }).spec.results!.s3.prefix, "a");
  });

  test("Kueue's label on the run takes precedence over the runtime's queue", () => {
    const run = { ...runOf(), metadata: { name: "r", labels: { "kueue.x-k8s.io/queue-name": "mine" } } };
    assert.equal(withRuntime(run, RUNTIME).spec.queueName, undefined);
  });

  test("Neither run nor runtime is changed, and without a runtime the run stays the same", () => {
    const [run, runtime] = [runOf("inheritedMetadata={labels: {x: y}}"), structuredClone(RUNTIME)];
    const before = structuredClone(run);
    withRuntime(run, runtime);
    assert.deepEqual([run, runtime], [before, RUNTIME]);
    assert.equal(withRuntime(run, undefined), run);
  });
});

describe("runtimeProblems", () => {
  const problems = (spec: RuntimeSpec, ...set: string[]) => {
    const run = runOf(...set);
    return runtimeProblems(run, withRuntime(run, spec), spec, { cluster: true }).join("\n");
  };
  const MIG = "learner.resources={limits: {nvidia.com/mig-1g.10gb: 1}}";
  const CASES: [what: string, spec: RuntimeSpec, set: string[], expected: RegExp][] = [
    ["nothing", { limits: {} }, ["actors.max=900"], /^$/],
    ["as many GPUs", { limits: { gpus: 1 } }, [MIG], /^$/],
    [
      "none",
      { limits: { gpus: 0 } },
      [MIG],
      /^spec\.learner\.resources\.limits: the run takes 1 GPUs; limits\.gpus is 0$/,
    ],
    [
      "GPUs in thousandths, which Kubernetes takes too",
      { limits: { gpus: 1 } },
      ["actors.resources={limits: {nvidia.com/gpu: 8000m}}"],
      /^spec\.actors \(resources\.limits times max\): the run takes 8 GPUs; limits\.gpus is 1$/,
    ],
    [
      "devices of a class as an extended resource",
      { limits: { gpus: 1 } },
      ["actors={sandboxResources: {limits: {deviceclass.resource.kubernetes.io/gpu.nvidia.com: 8}}}"],
      /^spec\.actors\.sandboxResources\.limits has deviceclass\.resource\.kubernetes\.io\/gpu\.nvidia\.com; limits\.gpus cannot count/,
    ],
    [
      "GPUs of generators",
      { limits: { gpus: 4 }, generation: { resources: GPU } },
      ["generation={replicas: {max: 5}}"],
      /spec\.generation \(resources\.limits times replicas\.max\): the run takes 5 GPUs; limits\.gpus is 4/,
    ],
    [
      "GPUs of sandboxes",
      { limits: { gpus: 5 }, actors: { slots: 2 } },
      ["actors={max: 3, sandboxResources: {limits: {nvidia.com/gpu: 1}}}"],
      /^spec\.actors \(sandboxResources\.limits times slots and max\): the run takes 6 GPUs; limits\.gpus is 5$/,
    ],
    [
      "a claim of devices of its own",
      { limits: { gpus: 5 } },
      [
        "learner={resources: {claims: [{name: gpu}]}, podTemplate: {spec: {resourceClaims: [{name: gpu, resourceClaimTemplateName: eight}]}}}",
      ],
      /^spec\.learner\.podTemplate\.spec\.resourceClaims has gpu; limits\.gpus cannot count what a run's own claims hold/,
    ],
    [
      "a claim of devices of the runtime",
      {
        ...{ limits: { gpus: 0 }, learner: { podTemplate: { spec: { resourceClaims: [CLAIM] } }, resources: USES } },
      },
      [],
      /^$/,
    ],
    [
      "replicas of kubectl scale",
      { limits: { actors: 2 } },
      ["actors={max: 2, autoscaling: External, replicas: 3}"],
      /^spec\.actors\.replicas is 3; limits\.actors is 2$/,
    ],
    ["the runtime's own image", { learner: { image: "other:1" }, limits: { images: ["good/*"] } }, [], /^$/],
    [
      "an image volume",
      { limits: { images: ["good/*"] } },
      ["model={policy: a, volume: {image: {reference: bad/model}}}"],
      /^spec\.model\.volume\.image\.reference is bad\/model; limits\.images allows good\/\*$/,
    ],
    [
      "a class where none is allowed",
      { limits: { storageClassNames: [] } },
      ["learner.storage.className=slow"],
      /limits\.storageClassNames allows none/,
    ],
    [
      "a combination that no run may have",
      { actors: { isolation: "Pod" } },
      ["actors.slots=2"],
      /^spec\.actors\S* does not fit: actors\.isolation Pod runs one execution per pod/,
    ],
    [
      "more volumes than a pod template has room for",
      { learner: { podTemplate: { spec: { volumes: volumes(32, "a") } } } },
      [`learner.podTemplate=${JSON.stringify({ spec: { volumes: volumes(1, "b") } })}`],
      /^spec\.learner\.podTemplate\.spec\.volumes is \[.*; give a list of 0 to 32 items$/,
    ],
  ];
  for (const [what, spec, set, expected] of CASES)
    test(`It judges a run with ${what}`, () => assert.match(problems(spec, ...set), expected));

  const PATTERNS: [pattern: string, image: string, fits: boolean][] = [
    ["a/b:1", "a/b:1", true],
    ["a/b:1", "a/b:12", false],
    ["registry.example.com/*", "registry.example.com/a/b@sha256:0", true],
    ["registry.example.com/*", "registry.example.com.evil.org/a", false],
    ["registry.example.com/*", "evil.org/registry.example.com/a", false],
    ["*/learner:*", "r/learner:2", true],
    ["a*a", "a", false],
    ["a*b*c", "axbxc", true],
    ["a*b*c", "axc", false],
    ["a.c", "abc", false],
    ["*", "", true],
  ];
  for (const [pattern, image, fits] of PATTERNS)
    test(`${pattern} ${fits ? "fits" : "does not fit"} ${image}`, () => assert.equal(matches(pattern, image), fits));
});

function volumes(count: number, name: string) {
  return Array.from({ length: count }, (_, index) => ({ name: `${name}-${index}`, emptyDir: {} }));
}

describe("parseRuntime", () => {
  test("A manifest with other objects gives its runtime", () => {
    assert.deepEqual(runtimeOf({ limits: { gpus: 2 } }).spec, { limits: { gpus: 2 } });
  });

  const REFUSED: [what: string, spec: object, message: RegExp][] = [
    ["an author's field", { algorithm: { batchSize: 8 } }, /runtime\.yaml:\d+: spec\.algorithm is unknown/],
    ["an unknown limit", { limits: { gpu: 1 } }, /spec\.limits\.gpu is unknown; did you mean gpus\?/],
    ["what no run may say", { actors: { podTemplate: { spec: { hostNetwork: true } } } }, /hostNetwork is unknown/],
    ["a wrong value", { queueName: "Team" }, /queueName does not fit/],
  ];
  for (const [what, spec, message] of REFUSED)
    test(`It refuses ${what}`, () => assert.throws(() => runtimeOf(spec), message));

  test("A file without a runtime is refused", () =>
    assert.throws(
      () => parseRuntime(MINIMAL, "run.yaml"),
      (error: unknown) => {
        assert.ok(error instanceof ManifestError);
        assert.match(error.message, /^run\.yaml: has 0 TrainingRuntimes; give a file with one object/);
        return true;
      },
    ));
});

describe("manifests/examples", () => {
  const read = (file: string) => readFileSync(new URL(`../manifests/examples/${file}`, import.meta.url), "utf8");

  test("An author's first manifest with a runtime has at most 25 lines and fits the runtime of the example", () => {
    const text = read("with-runtime.yaml");
    assert.ok(text.trimEnd().split("\n").length <= 25);
    const run = parseTrainingRun(text, "with-runtime.yaml", [], { cluster: true });
    const { metadata, spec } = parseRuntime(read("runtime.yaml"), "runtime.yaml");
    assert.equal(run.spec.runtimeRef!.name, metadata.name);
    const merged = withRuntime(run, spec);
    assert.deepEqual(runtimeProblems(run, merged, spec, { cluster: true }), []);
    assert.deepEqual([merged.spec.learner.device, merged.spec.actors.max], ["CUDA", 32]);
    const more = runtimeProblems(
      { ...run, spec: { ...run.spec, learner: { ...run.spec.learner, image: "a" } } },
      merged,
      spec,
    );
    assert.match(more.join(), /spec\.learner\.image is a; limits\.images allows/);
  });
});

describe("The schema of TrainingRuntime", () => {
  const schema = runtimeSchema(readSchema());
  const text = JSON.stringify(schema);

  test("It has a field for each of the table, without default, and no rule of changes", () => {
    for (const [path, names] of Object.entries(RUNTIME_FIELDS))
      for (const name of names) {
        const steps = [...(path === "" ? [] : path.split(".")), name];
        const field = steps.reduce((part, step) => part.properties![step]!, schema.properties!.spec!);
        assert.ok(field.description, steps.join("."));
        assert.equal(field.default, undefined, steps.join("."));
      }
    assert.doesNotMatch(text, /oldSelf|Cannot change/);
  });
});
