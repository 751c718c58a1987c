import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { stringify } from "yaml";
import { MINIMAL } from "./manifest.fixture.ts";
import { ManifestError, parseEarlier, parseResolved, parseTask, parseTrainingRun } from "./trainingrun.ts";

describe("Defaults", () => {
  const { spec } = parseTrainingRun(MINIMAL, "run.yaml");

  test("They are the paper's Table 3", () => {
    const { algorithm, model, stopping } = spec;
    assert.deepEqual(
      {
        ...{ max_prompt_length: model.maxPromptTokens, max_response_length: model.maxResponseTokens },
        ...{ train_batch_size: algorithm.batchSize, total_epochs: stopping.iterations },
        ...{ ppo_mini_batch_size: algorithm.miniBatchSize, ppo_micro_batch_size: algorithm.microBatchSize },
        grad_clip: algorithm.gradientClip,
        clip_ratio: algorithm.clipRatio,
        entropy: algorithm.entropyCoefficient,
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

  test("They fill in absent objects", () => {
    assert.equal(spec.learner.checkpoint.keepLast, 3);
    assert.equal(spec.model.adaptation.type, "Full");
    assert.equal(spec.tasks[0]!.executionTimeoutSeconds, 600);
  });

  test("They leave a resolved manifest unchanged", () => {
    const run = parseTrainingRun(MINIMAL, "run.yaml", ["algorithm.batchSize=256"]);
    assert.deepEqual(parseTrainingRun(stringify(run), "again.yaml"), run);
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
  test("is refused if it used a removed value", () => {
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

describe("task.yaml", () => {
  test("It has the defaults of spec.tasks[]", () => {
    const task = parseTask(
      "name: x\ngrader: { metric: R2, idColumn: id, targetColumns: [y], direction: Higher }\n",
      "task.yaml",
    );
    assert.equal(task.grader!.rewardFloor, -9);
    assert.equal(task.processes, 64);
  });
  test("It obeys the same rules", () => {
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
