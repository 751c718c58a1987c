import assert from "node:assert/strict";
import { cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { stringify } from "yaml";
import { parseTrainingRun } from "../../../crds/trainingrun.ts";
import { INCREASING_REWARDS } from "./increasing-rewards.ts";
import { manifestOfTasks, refuseTwoTasks } from "./task-manifest.ts";

const home = mkdtempSync(join(tmpdir(), "longrun-task-manifest-"));
after(() => rmSync(home, { recursive: true, force: true }));
const lay = (name: string, text = "") => {
  mkdirSync(dirname(join(home, name)), { recursive: true });
  writeFileSync(join(home, name), text);
};
const GRADER = "grader: { metric: MAE, idColumn: id, targetColumns: [y], direction: Lower }";
lay("own/task.yaml", `name: own\n${GRADER}\nexecutionTimeoutSeconds: 33\n`);
lay("own/prepared/public/train.csv");
lay("own/prepared/private/answers.csv");
lay("plain/config.json");
lay("pretrained/config.json");
lay("pretrained/corpus.hashes");
const at = (name: string) => join(home, name);
const runOf = (model?: string) => {
  const { text, source } = manifestOfTasks([at("own")], model);
  return parseTrainingRun(text, source);
};

test("A task folder alone trains the bundled policy, with the settings of its own manifest", () => {
  const { metadata, spec } = runOf();
  const { tasks, model, algorithm, evaluation } = spec;
  assert.equal(metadata.name, "own");
  assert.deepEqual([tasks[0]!.name, tasks[0]!.executionTimeoutSeconds, tasks[0]!.grader!.metric], ["own", 33, "MAE"]);
  assert.deepEqual(tasks[0]!.publicData, { path: at("own/prepared/public") });
  assert.deepEqual(tasks[0]!.privateData, { path: at("own/prepared/private") });
  const manifest = readFileSync(join(import.meta.dirname, "../../../manifests/quickstart/trainingrun.yaml"), "utf8");
  const quickstart = parseTrainingRun(manifest, "quickstart").spec;
  assert.deepEqual([model, algorithm, evaluation], [quickstart.model, quickstart.algorithm, quickstart.evaluation]);
  assert.equal(runOf("quickstart").spec.model.policy, "quickstart");
});

test("Another model has the defaults, and short prompts if it was pretrained on them", () => {
  const plain = runOf(at("plain")).spec;
  assert.deepEqual(
    [plain.model.policy, plain.model.maxPromptTokens, plain.prompts.style],
    [at("plain"), 1024, "Paper"],
  );
  assert.deepEqual(plain.tasks[0]!.failureRewards, INCREASING_REWARDS);
  const steps = Object.values(INCREASING_REWARDS);
  assert.deepEqual(
    steps,
    steps.toSorted((a, b) => a - b),
  );
  assert.equal(runOf("quickstart").spec.tasks[0]!.failureRewards, undefined);
  const pretrained = runOf(at("pretrained")).spec;
  assert.deepEqual([pretrained.model.maxPromptTokens, pretrained.prompts.style], [256, "Short"]);
});

test("A model whose size is known has settings that suit it, unless it trains on a GPU", () => {
  cpSync(join(import.meta.dirname, "../../../manifests/quickstart/policy"), at("sized"), { recursive: true });
  rmSync(at("sized/corpus.hashes"), { force: true });
  const machine = { cores: 2, memoryBytes: 8 * 2 ** 30 };
  const of = (model: string, overrides: string[] = []) => manifestOfTasks([at("own")], model, { machine, overrides });
  const { text, source, chosen } = of(at("sized"));
  const { algorithm, model, tasks } = parseTrainingRun(text, source).spec;
  assert.deepEqual([algorithm.batchSize, algorithm.baseline, model.maxPromptTokens], [128, "BatchMean", 512]);
  assert.equal(model.policy, at("sized"));
  assert.deepEqual(tasks[0]!.failureRewards, INCREASING_REWARDS);
  assert.match(chosen!.join("\n"), /batchSize 128: with 1 million weights on 2 cores/);
  const rest = of(at("sized"), ["algorithm.batchSize=8", "spec.model.adaptation.type=LoRA", "prompts={style: Paper}"]);
  assert.doesNotMatch(rest.chosen!.join("\n"), /batchSize|weight|prompts/, "what --set changes is not told as chosen");
  assert.match(rest.chosen!.join("\n"), /baseline BatchMean.*\nevaluation.*\nactors\.slots/);
  for (const override of ["learner.device=CUDA", "spec.learner={device: CUDA}"]) {
    const onGpu = of(at("sized"), [override]);
    assert.deepEqual(onGpu.chosen, []);
    assert.equal(parseTrainingRun(onGpu.text, "gpu").spec.algorithm.baseline, "Critic");
  }
  assert.deepEqual(of("quickstart").chosen, []);
});

const manifest = (change: object) => {
  const task = { ...runOf().spec.tasks[0], ...change };
  const spec = { tasks: [task], model: { policy: "quickstart" } };
  const kind = { apiVersion: "longrun.dev/v1alpha1", kind: "TrainingRun", metadata: { name: "a" } };
  return parseTrainingRun(stringify({ ...kind, spec }), "a.yaml");
};
test("A manifest that differs from the task.yaml beside its data is refused with both names", () => {
  refuseTwoTasks(manifest({}), "a.yaml", []);
  assert.throws(() => refuseTwoTasks(manifest({ executionTimeoutSeconds: 600 }), "a.yaml", []), {
    message:
      `a.yaml and ${at("own/task.yaml")} both define the task, and differ: spec.tasks[0].executionTimeoutSeconds is 600, ` +
      `not 33; make them the same, or use task.yaml alone: longrun run --task ${at("own")}`,
  });
  refuseTwoTasks(manifest({ executionTimeoutSeconds: 5 }), "a.yaml", ["tasks[0].executionTimeoutSeconds=5"]);
  assert.throws(() => refuseTwoTasks(manifest({ executionTimeoutSeconds: 5 }), "a.yaml", ["seed=5"]));
  const elsewhere = { publicData: { path: at("other/public") } };
  refuseTwoTasks(manifest({ ...elsewhere, executionTimeoutSeconds: 5 }), "a.yaml", []);
});
