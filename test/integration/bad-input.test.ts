/** Messages of `longrun run` about bad input. Tests run it in this process, because it starts no child before its checks. */
import assert from "node:assert/strict";
import { readdirSync } from "node:fs";
import { after, before, describe, test } from "node:test";
import { exitStatusOf } from "../../controller/errors.ts";
import type { RunOptions } from "../../controller/local/options.ts";
import { runLocally } from "../../controller/local/run.ts";
import { customTask, DATA, environment, GRADER, makeHome, removeHome } from "./fakes/home.ts";
import { FAKES } from "./fakes/parts.ts";

const home = makeHome();
const start = process.cwd();
before(() => process.chdir(home));
after(() => {
  process.chdir(start);
  removeHome(home);
});
const defaults: RunOptions = {
  task: [],
  set: [],
  json: false,
  verbose: false,
  listen: "127.0.0.1:0",
  metricsListen: "127.0.0.1:0",
};

describe("longrun run refuses bad input and creates nothing", () => {
  const cases: [name: string, file: string | undefined, options: Partial<RunOptions>, expected: RegExp][] = [
    [
      "no manifest",
      undefined,
      {},
      /^give a manifest, --task DIR with a task folder, or --resume DIR with the folder of a run$/,
    ],
    [
      "a manifest and a task folder",
      "run.yaml",
      { task: ["own"] },
      /^run\.yaml and --task own both define the task; leave out one of them, and change settings with --set$/,
    ],
    ["a model without a task", undefined, { model: "m" }, /^--model m: on which task\? give --task DIR/],
    [
      "a task folder that is not there",
      undefined,
      { task: ["./own"] },
      /^--task \.\/own: there is no such folder; .*task init$/,
    ],
    ["a task folder without task.yaml", undefined, { task: ["custom"] }, /^--task custom: holds no task\.yaml/],
    [
      "a task for a run that goes on",
      undefined,
      { task: ["own"], resume: "run" },
      /^--resume run continues with the tasks of that run; leave out --task own/,
    ],
    [
      "a folder as manifest",
      "policy",
      {},
      /^policy: is a folder; give a manifest, or --task policy for a task folder$/,
    ],
    [
      "a model of a name that longrun does not know, before the task is prepared",
      undefined,
      { task: ["diamonds"], model: "nope" },
      /^--model nope: there is no such folder, and no bundled policy of this name; there is quickstart$/,
    ],
    [
      "a model folder that is not there",
      undefined,
      { task: ["diamonds"], model: "./nope" },
      /^--model \.\/nope: there is no such folder, and no/,
    ],
    [
      "a folder without a model",
      undefined,
      { task: ["diamonds"], model: "custom" },
      /^--model custom: has no config\.json; give a model folder in Hugging Face format$/,
    ],
    [
      "a misspelt field, before the task is prepared",
      undefined,
      { task: ["diamonds"], set: ["stoping.iterations=2", "tasks[0].grader.rewardFloor=-5"] },
      /^--set stoping\.iterations=2: spec\.stoping is unknown; did you mean stopping\?$/,
    ],
    [
      "no store to replay on a bundled task",
      undefined,
      { task: ["diamonds"], replay: "no.sqlite" },
      /^--replay no\.sqlite:/,
    ],
    [
      "a folder that is not empty for a bundled task",
      undefined,
      { task: ["diamonds"], out: "policy" },
      /^--out .*not empty/,
    ],
    [
      "a bundled task of a name that longrun does not know",
      "run.yaml",
      { set: ["tasks[0].name=diamond"] },
      /^run\.yaml: spec\.tasks\[0\]\.name is diamond: longrun has no bundled task of this name; give one of diamonds, movie, wage, or publicData and privateData$/,
    ],
    [
      "a misspelt field",
      "run.yaml",
      { set: ["algorithm.batchsize=3"] },
      /^--set algorithm\.batchsize=3: spec\.algorithm\.batchsize is unknown; did you mean batchSize\?$/,
    ],
    [
      "a misspelt field above what is set",
      "run.yaml",
      { set: ["stoping.iterations=2"] },
      /^--set stoping\.iterations=2: spec\.stoping is unknown; did you mean stopping\?$/,
    ],
    [
      "no policy",
      "run.yaml",
      { set: ["model.policy=./nowhere"] },
      /^run\.yaml: spec\.model\.policy: .*\/nowhere\/config\.json is missing; name a folder in Hugging Face format$/,
    ],
    [
      "a policy of a name that longrun does not know",
      "run.yaml",
      { set: ["model.policy=policy"] },
      /^run\.yaml: spec\.model\.policy is policy: longrun has no bundled policy of this name; give one of quickstart, or \.\/policy for a folder$/,
    ],
    [
      "a field of the cluster",
      "run.yaml",
      { set: ["suspend=true"] },
      /^run\.yaml: spec\.suspend cannot be used here: works on Kubernetes only; remove it; stop a run here with Ctrl-C$/,
    ],
    [
      "LoRA of a layer that has none",
      "run.yaml",
      { set: ["model.adaptation={type: LoRA, rank: 8, targets: [lm_head]}"] },
      /spec\.model\.adaptation\.targets\[0\] is "lm_head"; give one of q_proj, k_proj/,
    ],
    [
      "a claim",
      "run.yaml",
      {
        set: [
          customTask(`publicData: { persistentVolumeClaim: { claimName: a } }, privateData: { path: b }, ${GRADER}`),
        ],
      },
      /spec\.tasks\[0\]\.publicData cannot be used here: works on Kubernetes only; give a path$/,
    ],
    [
      "a custom task without a grader",
      "run.yaml",
      { set: [customTask(DATA)] },
      /a task with data of its own states how it is graded; give grader \(.*name is "own"\)$/,
    ],
    [
      "a custom task without answers",
      "run.yaml",
      { set: [customTask(`publicData: { path: custom/public }, privateData: { path: custom/empty }, ${GRADER}`)] },
      /custom\/empty has no answers\.csv and no test\.csv; nothing can be graded without the answers$/,
    ],
    [
      "a custom task without data",
      "run.yaml",
      { set: [customTask(`publicData: { path: custom/empty }, privateData: { path: custom/private }, ${GRADER}`)] },
      /custom\/empty\/train\.csv is missing; name a folder with train\.csv and test\.csv$/,
    ],
    ["a wrong address", "run.yaml", { listen: "7000" }, /^--listen 7000: write HOST:PORT/],
    ["no store to replay", "run.yaml", { replay: "no.sqlite" }, /^--replay no\.sqlite: there is no such store/],
    [
      "a folder that is not empty",
      "run.yaml",
      { out: "policy" },
      /^--out .*\/policy: the folder is not empty; choose another one$/,
    ],
    ["a folder below /proc", "run.yaml", { out: "/proc/longrun/run" }, /^--out \/proc\/longrun\/run: .*choose another/],
  ];
  for (const [name, file, options, expected] of cases)
    test(name, async () => {
      let written = "";
      const screen = { write: (text: string) => (written += text) };
      const around = { parts: FAKES, stdout: screen, stderr: screen, env: environment(home), now: () => new Date() };
      await assert.rejects(runLocally(file, { ...defaults, ...options }, around), (error: Error) => {
        assert.match(error.message, expected);
        assert.equal(exitStatusOf(error), 2);
        return true;
      });
      assert.equal(written, "");
      assert.deepEqual(readdirSync(home).sort(), ["custom", "policy", "run.yaml", "tmp"]);
    });
});
