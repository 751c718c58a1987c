import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { stringify } from "yaml";
import { readSchema, type Schema } from "./schema.ts";
import { ManifestError, parseEarlier, parseResolved, parseTask, parseTrainingRun } from "./trainingrun.ts";

const MINIMAL = `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata:
  name: test
spec:
  tasks:
    - name: diamonds
  model:
    policy: ./policy
`;

function problems(text: string, overrides: string[] = []): string[] {
  try {
    parseTrainingRun(text, "run.yaml", overrides);
    return [];
  } catch (error) {
    assert.ok(error instanceof ManifestError, String(error));
    assert.equal(error.code, "manifest");
    return error.problems;
  }
}

describe("defaults", () => {
  const { spec } = parseTrainingRun(MINIMAL, "run.yaml");

  test("are the paper's Table 3", () => {
    const { algorithm, model, stopping } = spec;
    assert.deepEqual(
      {
        ...{ max_prompt_length: model.maxPromptTokens, max_response_length: model.maxResponseTokens },
        ...{ train_batch_size: algorithm.batchSize, total_epochs: stopping.iterations },
        ...{ ppo_mini_batch_size: algorithm.miniBatchSize, ppo_micro_batch_size: algorithm.microBatchSize },
        ...{
          grad_clip: algorithm.gradientClip,
          clip_ratio: algorithm.clipRatio,
          entropy: algorithm.entropyCoefficient,
        },
        ...{ learning_rate: algorithm.learningRate, critic_learning_rate: algorithm.criticLearningRate },
        ...{ temperature: model.temperature, top_p: model.topP, cliprange_value: algorithm.valueClip },
        ...{ gamma: algorithm.gamma, lam: algorithm.lambda, kl_coef: algorithm.klCoefficient },
      },
      {
        ...{ max_prompt_length: 1024, max_response_length: 1024, train_batch_size: 128, total_epochs: 100 },
        ...{ ppo_mini_batch_size: 128, ppo_micro_batch_size: 8, grad_clip: 1, clip_ratio: 0.2, entropy: 0.001 },
        ...{ learning_rate: 1e-5, critic_learning_rate: 1e-5, temperature: 0.7, top_p: 1, cliprange_value: 0.5 },
        ...{ gamma: 1, lam: 1, kl_coef: 0.001 },
      },
    );
    assert.equal(algorithm.ppoEpochs, 1, "the stated exception");
  });

  test("fill in objects that are not there", () => {
    assert.equal(spec.learner.checkpoint.keepLast, 3);
    assert.equal(spec.model.adaptation.type, "Full");
    assert.equal(spec.tasks[0]!.executionTimeoutSeconds, 600);
  });

  test("leave what resolves already as it is", () => {
    const run = parseTrainingRun(MINIMAL, "run.yaml", ["algorithm.batchSize=256"]);
    assert.deepEqual(parseTrainingRun(stringify(run), "again.yaml"), run);
  });
});

describe("a wrong manifest is refused with place, value and remedy", () => {
  const spec = (text: string): string => MINIMAL + text;
  const algorithm = (text: string): string => `${MINIMAL}  algorithm:\n    ${text}\n`;
  const grader = "metric: MAE, idColumn: id, targetColumns: [price], direction: Lower";
  const task = (text: string): string => MINIMAL.replace("- name: diamonds", `- { name: diamonds, ${text} }`);
  const cases: [name: string, text: string, expected: string][] = [
    ["empty", "", "run.yaml:1: holds no object; write apiVersion, kind, metadata and spec as in manifests/quickstart"],
    [
      "a list",
      "- a",
      "run.yaml:1: holds no object; write apiVersion, kind, metadata and spec as in manifests/quickstart",
    ],
    [
      "broken YAML",
      "spec:\n  a: [1",
      "run.yaml:2: not valid YAML: Flow sequence in block collection must be sufficiently indented and end with a ]",
    ],
    [
      "two runs",
      `${MINIMAL}---\n${MINIMAL}`,
      "run.yaml: holds 2 TrainingRuns (test in line 1, test in line 11); put each into a file of its own",
    ],
    ["a key twice", `${MINIMAL}kind: Again\n`, "run.yaml:10: not valid YAML: Map keys must be unique"],
    ["another kind", MINIMAL.replace("kind: TrainingRun", "kind: Pod"), 'run.yaml:2: kind is "Pod"; give TrainingRun'],
    [
      "another version",
      MINIMAL.replace("v1alpha1", "v2"),
      'run.yaml:1: apiVersion is "longrun.dev/v2"; give longrun.dev/v1alpha1',
    ],
    ["no kind", MINIMAL.replace("kind: TrainingRun\n", ""), "run.yaml:1: kind is missing; give TrainingRun"],
    [
      "a bad name",
      MINIMAL.replace("name: test", "name: Test_1"),
      'run.yaml:4: metadata.name does not fit: names of pods and of a Service are made from metadata.name: give at most 40 lower-case letters, digits and hyphens, with a letter first and a letter or digit last (metadata.name is "Test_1")',
    ],
    [
      "no policy",
      MINIMAL.replace("policy: ./policy", "temperature: 1"),
      "run.yaml:8: spec.model does not fit: give exactly one of model.policy and model.source",
    ],
    [
      "no tasks",
      MINIMAL.replace("    - name: diamonds", "    []"),
      "run.yaml:6: spec.tasks is []; give a list of 1 to 16 items",
    ],
    [
      "a task that needs another image",
      MINIMAL.replace("    - name: diamonds", "    - name: diamonds\n    - {name: wage, sandboxImage: other}"),
      "run.yaml:6: spec.tasks does not fit: all tasks of a run share one sandbox, and tasks[].sandboxImage is not " +
        "actors.sandboxImage: make them the same, or train that task in a TrainingRun of its own",
    ],
    [
      "a misspelt field",
      algorithm("batchsize: 8"),
      "run.yaml:11: spec.algorithm.batchsize is unknown; did you mean batchSize?",
    ],
    [
      "a field elsewhere",
      spec("  temperature: 1\n"),
      "run.yaml:10: spec.temperature is unknown; did you mean spec.model.temperature?",
    ],
    [
      "an unknown field",
      spec("  prompts: { zzz: 1 }\n"),
      "run.yaml:10: spec.prompts.zzz is unknown; remove it (spec.prompts has style, improveProbability, previousSolutions, dataSnippetRows, packages, outputTailBytes)",
    ],
    [
      "a removed field",
      spec("  model: { policy: a, precision: Float32 }\n").replace("  model:\n    policy: ./policy\n", ""),
      'run.yaml:8: spec.model.precision is "Float32", a removed field: learner.compute says what matrix products are computed in; remove it',
    ],
    [
      "a removed field with a value that is gone",
      algorithm("klController: Adaptive"),
      'run.yaml:11: spec.algorithm.klController is "Adaptive", a removed field: klCoefficient is used as given; remove it, and for a run that began with Adaptive create a new one with initFrom',
    ],
    [
      "a removed field of a number",
      algorithm("klTarget: 0.3"),
      "run.yaml:11: spec.algorithm.klTarget is 0.3, a removed field: only klController Adaptive read it; remove it",
    ],
    [
      "another",
      algorithm("klHorizon: 9"),
      "run.yaml:11: spec.algorithm.klHorizon is 9, a removed field: only klController Adaptive read it; remove it",
    ],
    [
      "a removed value",
      algorithm("stalenessPolicy: Mask"),
      'run.yaml:11: spec.algorithm.stalenessPolicy is "Mask", a removed value; give one of Wait, Drop',
    ],
    [
      "a removed value of whitening",
      algorithm("whitening: Weighted"),
      'run.yaml:11: spec.algorithm.whitening is "Weighted", a removed value; give one of Auto, Plain, Off',
    ],
    [
      "a removed value of timeoutWeight",
      algorithm("timeoutWeight: Exclude"),
      'run.yaml:11: spec.algorithm.timeoutWeight is "Exclude", a removed value; give one of Full, One',
    ],
    [
      "text for a number",
      algorithm("clipRatio: high"),
      'run.yaml:11: spec.algorithm.clipRatio is "high"; give a number from 0 to 1',
    ],
    [
      "quotes around a number",
      algorithm('batchSize: "128"'),
      'run.yaml:11: spec.algorithm.batchSize is "128"; give a whole number from 1 to 65536',
    ],
    [
      "a fraction",
      algorithm("batchSize: 1.5"),
      "run.yaml:11: spec.algorithm.batchSize is 1.5; give a whole number from 1 to 65536",
    ],
    [
      "null",
      algorithm("batchSize:"),
      "run.yaml:11: spec.algorithm.batchSize is null; give a whole number from 1 to 65536",
    ],
    ["not a number", algorithm("gamma: .nan"), "run.yaml:11: spec.algorithm.gamma is null; give a number from 0 to 1"],
    [
      "too small",
      algorithm("batchSize: 0"),
      "run.yaml:11: spec.algorithm.batchSize is 0; give a whole number from 1 to 65536",
    ],
    ["too large", algorithm("gamma: 1.01"), "run.yaml:11: spec.algorithm.gamma is 1.01; give a number from 0 to 1"],
    [
      "a field of a pod that longrun has elsewhere",
      `${MINIMAL}  learner: {podTemplate: {spec: {containers: [{name: learner, image: a}]}}}\n`,
      "run.yaml:10: spec.learner.podTemplate.spec.containers[0].image is unknown; did you mean spec.learner.image?",
    ],
    [
      "a misspelt choice",
      algorithm("collection: carryover"),
      'run.yaml:11: spec.algorithm.collection is "carryover"; give one of CarryOver, Discard, WaitAll (did you mean CarryOver?)',
    ],
    [
      "two letters in the wrong order",
      algorithm("gamam: 1"),
      "run.yaml:11: spec.algorithm.gamam is unknown; did you mean gamma?",
    ],
    ["YAML 1.1 booleans", spec("  suspend: yes\n"), 'run.yaml:10: spec.suspend is "yes"; give true or false'],
    [
      "a list for an object",
      spec("  actors: [1]\n"),
      "run.yaml:10: spec.actors is [1]; give an object with min, max, slots, autoscaling, replicas, scaleDownSeconds, …",
    ],
    [
      "a wrong quantity",
      spec("  learner: { resources: { limits: { cpu: lots } } }\n"),
      'run.yaml:10: spec.learner.resources.limits.cpu is "lots"; give a whole number or text such as 500m or 4Gi',
    ],
    [
      "mini-batch that does not divide",
      algorithm("batchSize: 100"),
      "run.yaml:10: spec.algorithm.miniBatchSize does not fit: algorithm.miniBatchSize must divide algorithm.batchSize (algorithm.miniBatchSize is 128, algorithm.batchSize is 100)",
    ],
    [
      "min above max",
      spec("  actors: { min: 3, max: 2 }\n"),
      "run.yaml:10: spec.actors.min does not fit: actors.min is at most actors.max; raise max or lower min (actors.min is 3, actors.max is 2)",
    ],
    [
      "replicas under Demand",
      spec("  actors: { replicas: 3 }\n"),
      'run.yaml:10: spec.actors.replicas does not fit: actors.replicas (kubectl scale) needs actors.autoscaling External; under Demand longrun sets the number itself, between actors.min and actors.max (actors.replicas is 3, actors.autoscaling is "Demand")',
    ],
    [
      "a number that stands alone",
      algorithm("dualClip: 0.5"),
      "run.yaml:11: spec.algorithm.dualClip does not fit: algorithm.dualClip is 0 (off) or above 1, since it must not bind before the ratio itself; give 0 or 3 (it is 0.5)",
    ],
    [
      "a column twice",
      task("grader: { metric: MAE, idColumn: id, targetColumns: [y, y], direction: Lower }"),
      'run.yaml:7: spec.tasks[0].grader.targetColumns is ["y","y"]; give a list of 1 to 512 different items',
    ],
    [
      "too many GPUs",
      spec("  learner: { resources: { limits: { nvidia.com/gpu: 17 } } }\n"),
      'run.yaml:10: spec.learner.resources.limits does not fit: the learner uses whole GPUs, 16 at most, or one part of a GPU (a process sees a single MIG device); keep one nvidia.com resource in learner.resources.limits, nvidia.com/gpu with 1 to 16, or another with 1 (learner.resources.limits is {"nvidia.com/gpu":17})',
    ],
    [
      "an unknown metric",
      task(`grader: { ${grader.replace("MAE", "BRIER")} }`),
      'run.yaml:7: spec.tasks[0].grader.metric is "BRIER"; give one of MAE, RMSE, RMSLE, MAPE, R2, Pearson, Spearman, Accuracy, BalancedAccuracy, F1, F1Macro, F1Micro, F1Weighted, Jaccard, QuadraticWeightedKappa, RocAuc, RocAucOneVsOne, LogLoss, Brier, WordJaccard, MAPAtK (did you mean Brier?)',
    ],
  ];
  for (const [name, text, expected] of cases) test(name, () => assert.deepEqual(problems(text), [expected]));

  test("every problem has its line", () => {
    const found = problems(`${MINIMAL}  algorithm:\n    gamma: 2\n    batchsize: 1\n`);
    assert.deepEqual(
      found.map((line) => line.split(": ")[0]),
      ["run.yaml:12", "run.yaml:11"].sort().reverse(),
    );
  });

  test("any value of a field gives a valid run or a ManifestError", () => {
    fc.assert(
      fc.property(
        fc.jsonValue(),
        fc.constantFrom("spec", "spec.tasks", "spec.algorithm", "spec.learner.resources", "metadata"),
        (value, path) => {
          problems(MINIMAL, [`${path}=${JSON.stringify(value)}`]);
        },
      ),
      { numRuns: 300 },
    );
  });
});

describe("a manifest that an earlier version resolved", () => {
  const earlier = (fields: string): string =>
    MINIMAL.replace("./policy", "./policy\n    precision: Float32") +
    `  algorithm: { klTarget: 0.3, klHorizon: 10000, ${fields} }\n`;
  const now = parseTrainingRun(MINIMAL, "run.yaml");

  test("means the same without the fields that were removed since", () => {
    for (const read of [parseResolved, parseEarlier])
      assert.deepEqual(read(earlier("klController: Fixed"), "run.yaml"), now);
    assert.throws(() => parseTrainingRun(earlier("klController: Fixed"), "run.yaml"), ManifestError);
  });
  test("is refused where it used what was removed", () => {
    for (const read of [parseResolved, parseEarlier])
      assert.throws(() => read(earlier("klController: Adaptive"), "run.yaml"), /klController is "Adaptive"/);
    assert.throws(() => parseResolved(earlier("stalenessPolicy: Mask"), "run.yaml"), /give one of Wait, Drop/);
  });
  test("can be corrected where the field may change in a run", () => {
    const text = earlier("stalenessPolicy: Mask, whitening: Weighted");
    const corrected = parseResolved(text, "run.yaml", ["algorithm.stalenessPolicy=Drop", "algorithm.whitening=Plain"], {
      before: parseEarlier(text, "run.yaml"),
    });
    assert.deepEqual([corrected.spec.algorithm.stalenessPolicy, corrected.spec.algorithm.whitening], ["Drop", "Plain"]);
  });
});

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
    ["batchSize=3", "--set batchSize=3: spec.batchSize is unknown; did you mean spec.algorithm.batchSize?"],
    [
      "constructor=3",
      "--set constructor=3: spec.constructor is unknown; remove it (spec has tasks, model, prompts, algorithm, learner, actors, generation, evaluation, stopping, failurePolicy, restart, seed, suspend, initFrom, results, notifications, ttlSecondsAfterFinished, queueName, managedBy, upgradePolicy)",
    ],
  ];
  for (const [override, expected] of bad)
    test(`refuses ${override}`, () => assert.deepEqual(problems(MINIMAL, [override]), [expected]));

  test("the last one wins", () => {
    const run = parseTrainingRun(MINIMAL, "run.yaml", ["seed=1", "seed=2"]);
    assert.equal(run.spec.seed, 2);
  });
});

describe("task.yaml", () => {
  test("has the defaults of spec.tasks[]", () => {
    const task = parseTask(
      "name: x\ngrader: { metric: R2, idColumn: id, targetColumns: [y], direction: Higher }\n",
      "task.yaml",
    );
    assert.equal(task.grader!.rewardFloor, -9);
    assert.equal(task.processes, 64);
  });
  test("obeys the same rules", () => {
    assert.throws(
      () =>
        parseTask("name: x\ngrader: { metric: R2, idColumn: id, targetColumns: [y], direction: Lower }", "task.yaml"),
      /^ManifestError: task.yaml:2: grader.direction does not fit: direction contradicts metric/,
    );
    assert.throws(
      () => parseTask("name: x\ngradr: {}", "task.yaml"),
      /task.yaml:2: gradr is unknown; did you mean grader\?/,
    );
  });
});

describe("the CRD", () => {
  const fields: { path: string; schema: Schema }[] = [];
  const collect = (schema: Schema, path: string): void => {
    for (const [name, property] of Object.entries(schema.properties ?? {})) {
      const at = path ? `${path}.${name}` : name;
      fields.push({ path: at, schema: property });
      collect(property, at);
      if (property.items) collect(property.items, `${at}[]`);
    }
  };
  const root = readSchema();
  collect(root, "");
  const spec = fields.filter(({ path }) => path.startsWith("spec."));

  test("describes every field", () => {
    const undescribed = fields.filter(({ path, schema }) => path !== "metadata" && !schema.description);
    assert.deepEqual(
      undescribed.map(({ path }) => path),
      [],
    );
    assert.ok(spec.length > 120);
  });
  test("states every default and its source, since kubectl explain shows descriptions alone", () => {
    const silent = spec.filter(({ schema: { default: value, description } }) => {
      if (value === undefined || typeof value === "object") return false;
      const [, stated, source] = /\(default ([^;]+); ((?:[^()]|\([^()]*\))*)\)\.$/.exec(description!) ?? [];
      const same = typeof value === "number" ? Number(stated) === value : stated === (String(value) || "empty");
      return !same || !/^(.*; )?(paper|verl v0\.2|ours)\b/.test(source!);
    });
    assert.deepEqual(
      silent.map(({ path, schema }) => `${path}: ${schema.description}`),
      [],
    );
  });
  test("bounds every number, text and list", () => {
    const unbounded = spec.filter(({ path, schema: s }) => {
      if (s.type === "integer" || s.type === "number")
        return !path.includes(".rewardRange.") && (s.minimum === undefined || s.maximum === undefined);
      if (s.type === "string") return s.enum === undefined && s.maxLength === undefined;
      return s.type === "array" && s.maxItems === undefined;
    });
    assert.deepEqual(
      unbounded.map(({ path }) => path),
      [],
    );
  });
  test("is structural: no keyword that Kubernetes refuses beside properties", () => {
    const refused = fields.filter(({ schema }) =>
      ["additionalProperties", "oneOf", "allOf", "not", "$ref"].some((k) => k in schema && schema.properties),
    );
    assert.deepEqual(
      refused.map(({ path }) => path),
      [],
    );
    const untyped = fields.filter(({ schema }) => !schema.type);
    assert.deepEqual(
      untyped.map(({ path }) => path),
      [],
    );
  });
});
