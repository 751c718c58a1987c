import assert from "node:assert/strict";
import { test } from "node:test";
import { stringify } from "yaml";
import { parseTrainingRun } from "../../../crds/trainingrun.ts";
import { defaultsFor, type Machine } from "./model-defaults.ts";

const LAPTOP: Machine = { cores: 2, memoryBytes: 8 * 2 ** 30 };
const SERVER: Machine = { cores: 64, memoryBytes: 256 * 2 ** 30 };
const chosen = (parameters: number, machine: Machine, positions = 8192) => {
  const { spec, iterationSeconds, reasons } = defaultsFor({ parameters, positions }, machine);
  const tasks = [{ name: "diamonds" }];
  const run = { spec: { ...spec, tasks, model: { ...spec.model, policy: "./m" } } };
  const kind = { apiVersion: "longrun.dev/v1alpha1", kind: "TrainingRun", metadata: { name: "a" } };
  return { ...parseTrainingRun(stringify({ ...kind, ...run }), "chosen").spec, iterationSeconds, reasons };
};

test("an iteration takes minutes for the models that people try on two cores", () => {
  const { algorithm, model, actors, evaluation, iterationSeconds, prompts } = chosen(135e6, LAPTOP);
  assert.equal(algorithm.batchSize, 16);
  assert.deepEqual(model.adaptation.type, "LoRA");
  assert.deepEqual([model.maxPromptTokens, model.maxResponseTokens, prompts.style], [1024, 512, "Paper"]);
  assert.deepEqual([evaluation.samples, actors.slots], [16, 1]);
  assert.ok(iterationSeconds > 60 && iterationSeconds <= 180, `${iterationSeconds}`);
});

test("a small model trains whole, a large one has the smallest batch and the estimate says so", () => {
  const small = chosen(1e6, LAPTOP, 1024);
  assert.deepEqual(
    [small.model.adaptation.type, small.prompts.style, small.algorithm.batchSize],
    ["Full", "Short", 128],
  );
  assert.deepEqual([small.model.maxPromptTokens, small.model.maxResponseTokens], [512, 512]);
  const large = chosen(3e9, LAPTOP);
  assert.equal(large.algorithm.batchSize, 8);
  assert.match(large.reasons[0]!.text, /3\.0 billion weights on 2 cores .* about 25 minutes, more than wanted: a GPU/);
});

test("more cores and memory bring larger batches and more slots, whatever the size a manifest that is valid", () => {
  for (const parameters of [1e5, 1e7, 6e7, 5e8, 7e9])
    for (const cores of [1, 2, 3, 16, 64])
      for (const gigabytes of [2, 16, 256]) chosen(parameters, { cores, memoryBytes: gigabytes * 2 ** 30 });
  const [less, more] = [chosen(135e6, LAPTOP), chosen(135e6, SERVER)];
  assert.ok(more.algorithm.batchSize > less.algorithm.batchSize);
  assert.deepEqual([less.actors.slots, more.actors.slots], [1, 18], "a third of 256 GiB");
});
