import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { releaseRunFolder, writeManifest } from "../run-folder.ts";
import { createEvaluationFolder, openEvaluationFolder } from "./evaluation-folder.ts";
import { type EvaluationRequest, planEvaluation } from "./evaluation-plan.ts";

const home = mkdtempSync(join(tmpdir(), "longrun-plan-"));
after(() => rmSync(home, { recursive: true, force: true }));

const GRADER = "grader: { metric: MAE, idColumn: id, targetColumns: [price], direction: Lower }";
const MANIFEST = `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: { name: trained }
spec:
  seed: 4
  tasks: [{ name: diamonds, executionTimeoutSeconds: 9 }]
  model: { policy: quickstart, temperature: 0.8 }
  evaluation: { samples: 24 }
`;
/** Makes files below `home`; a name that ends with a slash is a folder. */
function lay(...files: (string | [name: string, text: string])[]): void {
  for (const file of files) {
    const [name, text] = typeof file === "string" ? [file, ""] : file;
    mkdirSync(join(home, name, name.endsWith("/") ? "" : ".."), { recursive: true });
    if (!name.endsWith("/")) writeFileSync(join(home, name), text);
  }
}
const model = (name: string) => ["config.json", "model.safetensors", "tokenizer.json"].map((file) => `${name}/${file}`);
const task = (name: string, yaml: string) => [
  [`${name}/task.yaml`, yaml] as [string, string],
  ...["public/train.csv", "public/sample_submission.csv", "public/description.md", "private/answers.csv"].map(
    (file) => `${name}/prepared/${file}`,
  ),
];
lay(
  ["run/trainingrun.yaml", MANIFEST],
  "run/checkpoints/1-000010/",
  "run/checkpoints/2-000008/",
  "run/checkpoints/1-000002/",
);
lay("run/checkpoints/2-000011.partial/", ["young/trainingrun.yaml", MANIFEST]);
lay(...model("policy"), ...model("pretrained"), "pretrained/corpus.hashes", "file");
lay(...task("wage", `name: wage\n${GRADER}\nexecutionTimeoutSeconds: 33\n`));
lay(...task("moved", `name: diamonds\n${GRADER}\nexecutionTimeoutSeconds: 33\n`));
lay(["continued/trainingrun.yaml", `${MANIFEST}  initFrom: { path: ../run/checkpoints/1-000002 }\n`]);
lay("continued/checkpoints/1-000005/", "elsewhere/notes.txt");

const at = (name: string) => join(home, name);
const request = (change: Partial<EvaluationRequest>): EvaluationRequest => ({
  ...{ samples: "128", improve: false, set: [], ...change },
});

describe("The plan of an evaluation", () => {
  test("A run is evaluated with its starting weights and newest checkpoint, on its task, in its folder", () => {
    const { run, policies, directory, trained } = planEvaluation(undefined, request({ run: at("run") }));
    assert.deepEqual(policies, {
      before: { iteration: 0 },
      after: { iteration: 8, checkpoint: at("run/checkpoints/2-000008") },
    });
    assert.deepEqual([directory, trained], [at("run/evaluation"), at("run")]);
    assert.deepEqual([run.spec.seed, run.spec.model.temperature, run.spec.tasks[0]!.name], [4, 0.8, "diamonds"]);
    const { samples, improve, protocol } = run.spec.evaluation;
    assert.deepEqual([samples, improve, protocol], [128, false, "Paper"]);
  });

  test("A run that began with another run's checkpoint is compared with that checkpoint", () => {
    const { run, policies } = planEvaluation(undefined, request({ run: at("continued") }));
    assert.deepEqual(policies.before, { iteration: 0, checkpoint: at("run/checkpoints/1-000002") });
    assert.equal(run.spec.initFrom, undefined);
  });

  test("A run on a copy of its task keeps its limits, and on another task gets that task's limits", () => {
    const moved = planEvaluation(undefined, request({ run: at("run"), task: at("moved") })).run.spec.tasks[0]!;
    assert.deepEqual([moved.executionTimeoutSeconds, moved.grader?.metric], [9, "MAE"]);
    assert.deepEqual(moved.publicData, { path: at("moved/prepared/public") });
    const other = planEvaluation(undefined, request({ run: at("run"), task: at("wage") })).run.spec.tasks[0]!;
    assert.deepEqual([other.name, other.executionTimeoutSeconds], ["wage", 33]);
  });

  test("A model on a task is evaluated in a folder that has both names", () => {
    const { run, policies, directory } = planEvaluation(undefined, request({ model: at("policy"), task: at("wage") }));
    assert.deepEqual(policies, { model: { iteration: 0 } });
    assert.equal(directory, join(process.cwd(), "evaluations/policy-wage"));
    assert.deepEqual([run.spec.model.policy, run.spec.prompts.style], [at("policy"), "Paper"]);
  });

  test("A policy that longrun pretrained is asked with the prompts that it knows", () => {
    for (const name of [at("pretrained"), "quickstart"]) {
      const { run } = planEvaluation(undefined, request({ model: name, task: at("wage") }));
      assert.deepEqual([run.spec.prompts.style, run.spec.model.maxPromptTokens], ["Short", 256], name);
    }
  });

  test("A manifest's settings apply, with another model, protocol and seed", () => {
    const asked = request({ model: at("policy"), protocol: "equal", samples: "6", seed: "9", out: at("out") });
    const { run, directory } = planEvaluation(at("run/trainingrun.yaml"), asked);
    assert.deepEqual([run.spec.model.policy, run.spec.model.temperature, run.spec.seed], [at("policy"), 0.8, 9]);
    const { samples, improve, protocol } = run.spec.evaluation;
    assert.deepEqual([samples, improve, protocol, directory], [6, true, "Equal", at("out")]);
  });
});

describe("Bad input gives one line", () => {
  const cases: [name: string, file: string | undefined, change: Partial<EvaluationRequest>, message: RegExp][] = [
    ["nothing", undefined, {}, /^nothing to evaluate; give --run DIR, or --model MODEL and --task TASK$/],
    ["a model without a task", undefined, { model: "m" }, /^--model m: on which task\? give --task TASK/],
    ["a run and a model", undefined, { run: "r", model: "m" }, /^--run evaluates the policy of that run/],
    ["no run folder", undefined, { run: at("policy") }, /^--run .*policy: this is no run folder: .*no such file/],
    [
      "a run without a checkpoint",
      undefined,
      { run: at("young") },
      /^--run .*young: there is no checkpoint in it; continue/,
    ],
    ["no task folder", undefined, { model: at("policy"), task: at("run") }, /^--task .*run: holds no task\.yaml/],
    ["no model", undefined, { model: at("none"), task: at("wage") }, /^--model .*none: there is no such folder/],
    [
      "samples",
      undefined,
      { run: at("run"), samples: "many" },
      /^--samples many: give a whole number from 1 to 65536$/,
    ],
    ["no samples", undefined, { run: at("run"), samples: "0" }, /^--samples 0: give a whole number/],
    ["seed", undefined, { run: at("run"), seed: "-1" }, /^--seed -1: give a whole number from 0/],
    [
      "odd samples",
      undefined,
      { run: at("run"), samples: "7", protocol: "equal" },
      /^--samples 7: .* give an even number$/,
    ],
    ["a bad setting", undefined, { run: at("run"), set: ["model.temprature=1"] }, /did you mean temperature/],
  ];
  for (const [name, file, change, message] of cases)
    test(name, () => {
      assert.throws(
        () => planEvaluation(file, request(change)),
        (error: Error) => {
          assert.match(error.message, message);
          assert.doesNotMatch(error.message, /\n/);
          return true;
        },
      );
    });
});

describe("the folder of an evaluation", () => {
  const asked = (change: Partial<EvaluationRequest> = {}) =>
    planEvaluation(undefined, request({ run: at("run"), out: at("evaluation"), ...change }));
  const open = (change: Partial<EvaluationRequest> = {}) => {
    const plan = asked(change);
    try {
      return openEvaluationFolder(plan.directory, plan);
    } finally {
      if (plan.directory === at("evaluation")) releaseRunFolder(plan.directory);
    }
  };

  test("The folder of an evaluation is new, then begun, then done", () => {
    assert.equal(open(), "new");
    createEvaluationFolder(at("evaluation"), asked());
    releaseRunFolder(at("evaluation"));
    assert.equal(open(), "begun");
    assert.equal(open({ set: ["actors.max=3"] }), "begun", "settings without influence on the numbers may change");
    lay(["evaluation/summary.json", '{"state": "succeeded"}']);
    assert.equal(open(), "done");
  });

  test("The rewardRange that the learner estimated stays when the evaluation goes on", () => {
    const plan = planEvaluation(undefined, request({ model: at("policy"), task: at("wage"), out: at("ranged") }));
    createEvaluationFolder(at("ranged"), plan);
    releaseRunFolder(at("ranged"));
    const estimated = structuredClone(plan.run);
    estimated.spec.tasks[0]!.grader!.rewardRange = { worst: 30, best: 0 };
    writeManifest(at("ranged"), estimated);
    assert.equal(openEvaluationFolder(at("ranged"), plan), "begun");
    releaseRunFolder(at("ranged"));
    assert.match(readFileSync(at("ranged/trainingrun.yaml"), "utf8"), /worst: 30/);
  });

  const others: [change: Partial<EvaluationRequest>, message: RegExp][] = [
    [{ samples: "64" }, /has an evaluation whose evaluation\.samples is 128, not 64; choose another folder with --out/],
    [{ seed: "5" }, /whose seed is 4, not 5/],
    [{ improve: true }, /whose evaluation\.improve is false, not true/],
    [{ out: at("elsewhere") }, /elsewhere: the folder is not empty, and no evaluation is in it/],
    [{ out: at("file") }, /file: is a file; name a folder/],
    [{ out: "/proc/longrun" }, /^--out \/proc\/longrun: .*choose another place$/],
  ];
  for (const [change, message] of others)
    test(`The folder is refused: ${message.source}`, () => {
      assert.throws(() => open(change), { code: "input", message });
    });

  test("The folder is refused if the run went on and has another checkpoint", () => {
    lay("run/checkpoints/3-000009/");
    assert.throws(() => open(), /whose policies\.after\.iteration is 8, not 9/);
  });
});
