/** The recipes of `manifests/` are valid and complete; the paper's has the paper's method. test/rehearsal/recipes.test.ts plans them. */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { parseAllDocuments, stringify } from "yaml";
import { parseTrainingRun } from "../../crds/trainingrun.ts";
import { durationWeighting } from "../../learner/rl/durations.ts";

const ROOT = join(import.meta.dirname, "../..");
const RECIPES = ["laptop-gpu", "one-gpu", "eight-gpus"].map((name) => `manifests/examples/${name}.yaml`);
const PAPERS = "manifests/examples/eight-gpus.yaml";
const text = (file: string) => readFileSync(join(ROOT, file), "utf8");
const parsed = (file: string, cluster = false) => parseTrainingRun(text(file), file, [], { cluster }).spec;

/** Fields that a reader would look for. A recipe sets each of them, even to its default. */
const FIELDS = [
  ...["tasks.0.executionTimeoutSeconds", "tasks.0.executionMemoryBytes", "model.source", "model.adaptation"],
  ...["model.instrumenter", "model.temperature", "model.maxPromptTokens", "model.maxResponseTokens"],
  ...["model.generationBatchSize", "prompts.style", "prompts.improveProbability", "algorithm.baseline"],
  ...["algorithm.batchSize", "algorithm.miniBatchSize", "algorithm.microBatchSize", "algorithm.learningRate"],
  ...["algorithm.collection", "algorithm.durationWeighting", "algorithm.oversampling", "algorithm.validScoreWeight"],
  ...["learner.device", "learner.compute", "learner.checkpoint", "learner.storage.size", "learner.resources.limits"],
  ...["actors.min", "actors.max", "actors.slots", "actors.packages", "actors.sandboxResources"],
  ...["evaluation.samples", "evaluation.everyIterations", "stopping.iterations"],
];

for (const file of RECIPES) {
  test(`${file} is valid on one machine and on a cluster, with every field that matters`, () => {
    const spec = parsed(file);
    parsed(file, true);
    assert.equal(spec.actors.packages, "Paper");
    const given = parseAllDocuments(text(file))[0]!;
    for (const field of FIELDS)
      assert.ok(given.hasIn(["spec", ...field.split(".").map((step) => (step === "0" ? 0 : step))]), field);
  });

  test(`${file} has the paper's lengths if it is the paper's run, and 2,048 elsewhere`, () => {
    const { maxPromptTokens, maxResponseTokens } = parsed(file).model;
    const tokens = file === PAPERS ? 1024 : 2048;
    assert.deepEqual([maxPromptTokens, maxResponseTokens], [tokens, tokens]);
  });
}

test("Only manifests with collection Discard use equation 3, because without discarding it prefers slow programs (E1)", () => {
  const files = globSync("manifests/**/*.yaml", { cwd: ROOT });
  let runs = 0;
  for (const file of files)
    for (const document of parseAllDocuments(text(file))) {
      if (document.get("kind") !== "TrainingRun") continue;
      const { algorithm } = parseTrainingRun(stringify(document), file).spec;
      runs++;
      if (durationWeighting(algorithm) === "Paper") assert.equal(algorithm.collection, "Discard", file);
    }
  assert.ok(runs >= 23, `${runs} TrainingRuns`);
});

test("The --set of a comment gives a manifest for one machine", () => {
  for (const file of [PAPERS, ...globSync("manifests/tasks/*/*.yaml", { cwd: ROOT })]) {
    const said = [...text(file).matchAll(/--set ((?:actors|learner)[.]\w+=\w+)/g)].map(([, set]) => set!);
    const overrides = said.map((set) => set.replace("CORES", "2"));
    assert.ok(overrides.includes("actors.slots=2"), file);
    parseTrainingRun(text(file), file, overrides);
  }
});

test("The paper's recipe has the paper's method, and the manifests of its twelve tasks have the recipe's settings", () => {
  const { tasks: _, ...recipe } = parsed(PAPERS);
  const { model, algorithm, prompts } = recipe;
  assert.deepEqual(
    [model.instrumenter, model.adaptation.type, algorithm.aggregation, durationWeighting(algorithm), prompts.style],
    ["StaticPolicy", "Full", "SeqMeanTokenMean", "Paper", "Paper"],
  );
  const files = globSync("manifests/tasks/*/trainingrun.yaml", { cwd: ROOT });
  assert.equal(files.length, 12);
  for (const file of files) {
    const { tasks: __, ...spec } = parsed(file);
    assert.deepEqual(spec, recipe, file);
  }
});
