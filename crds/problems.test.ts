import assert from "node:assert/strict";
import { describe, test } from "node:test";
import fc from "fast-check";
import { MINIMAL, problems } from "./manifest.fixture.ts";

describe("A wrong manifest is refused with place, value and remedy", () => {
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
      "run.yaml: holds 2 TrainingRuns (test in line 1, test in line 11); put each into a separate file",
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
      "a task twice",
      MINIMAL.replace("    - name: diamonds", "    - name: diamonds\n    - name: wage\n    - name: diamonds"),
      'run.yaml:9: spec.tasks[2].name is "diamonds", like that of spec.tasks[0]; give each item another one',
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
      "a field of many objects",
      `${spec("")}name: own\n`,
      "run.yaml:10: name is unknown; did you mean metadata.name or spec.tasks[0].name or spec.model.source.huggingFace.secretRef.name?",
    ],
    [
      "an unknown field",
      spec("  prompts: { zzz: 1 }\n"),
      "run.yaml:10: spec.prompts.zzz is unknown; remove it (spec.prompts has style, answerPrefix, examples, improveProbability, debugProbability, maxDepth, taskSampling, learnabilityIterations, learnabilityFloor, previousSolutions, dataSnippetRows, packages, outputTailBytes)",
    ],
    [
      "no evaluations",
      spec("  evaluation: { samples: 0 }\n"),
      "run.yaml:10: spec.evaluation.samples is 0; give a whole number from 1 to 65536, or leave evaluations out with evaluation.before: false and evaluation.after: false",
    ],
    [
      "a removed field",
      spec("  model: { policy: a, precision: Float32 }\n").replace("  model:\n    policy: ./policy\n", ""),
      'run.yaml:8: spec.model.precision is "Float32", a removed field: remove it; learner.compute sets the precision of matrix products',
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
      "a removed field of a whole number",
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
      "a number below the least",
      algorithm("clipRatioHigh: -0.1"),
      "run.yaml:11: spec.algorithm.clipRatioHigh is -0.1; give a number from 0 to 100",
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

  test("Every problem has its line", () => {
    const found = problems(`${MINIMAL}  algorithm:\n    gamma: 2\n    batchsize: 1\n`);
    assert.deepEqual(
      found.map((line) => line.split(": ")[0]),
      ["run.yaml:12", "run.yaml:11"].sort().reverse(),
    );
  });

  test("Any value of a field gives a valid run or a ManifestError", () => {
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
