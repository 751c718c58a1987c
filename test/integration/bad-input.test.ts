/** What `longrun run` says to input that it cannot use. In one process, since no child is started before the checks. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { exitStatusOf } from "../../controller/errors.ts";
import { type RunOptions, runLocally } from "../../controller/local/run.ts";
import { FAKES } from "./fakes/parts.ts";

const home = mkdtempSync(join(tmpdir(), "longrun-bad-input-"));
const start = process.cwd();
before(() => process.chdir(home));
after(() => {
  process.chdir(start);
  rmSync(home, { recursive: true, force: true });
});
for (const folder of ["policy", "custom/public", "custom/private", "custom/empty"])
  mkdirSync(join(home, folder), { recursive: true });
for (const file of ["config.json", "model.safetensors", "tokenizer.json"])
  writeFileSync(join(home, "policy", file), "");
for (const file of ["public/train.csv", "public/sample_submission.csv", "private/answers.csv"])
  writeFileSync(join(home, "custom", file), "id,y\n");
writeFileSync(
  join(home, "run.yaml"),
  `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: { name: test }
spec: { tasks: [{ name: diamonds }], model: { policy: ./policy } }
`,
);
const grader = "grader: { metric: R2, idColumn: id, targetColumns: [y], direction: Higher }";
const custom = (extra: string): string => `tasks=[{ name: own, ${extra} }]`;
const data = "publicData: { path: custom/public }, privateData: { path: custom/private }";
const defaults: RunOptions = {
  set: [],
  json: false,
  verbose: false,
  listen: "127.0.0.1:0",
  metricsListen: "127.0.0.1:0",
};

describe("is refused, and nothing is made", () => {
  const cases: [name: string, file: string | undefined, options: Partial<RunOptions>, expected: RegExp][] = [
    ["no manifest", undefined, {}, /^give a manifest, or --resume DIR with the folder of a run$/],
    ["a folder as manifest", "policy", {}, /^policy: is a folder; give a file$/],
    [
      "a misspelt field",
      "run.yaml",
      { set: ["algorithm.batchsize=3"] },
      /^--set algorithm\.batchsize=3: spec\.algorithm\.batchsize is unknown; did you mean batchSize\?$/,
    ],
    [
      "no policy",
      "run.yaml",
      { set: ["model.policy=nowhere"] },
      /^run\.yaml: spec\.model\.policy: .*\/nowhere\/config\.json is missing; name a folder in Hugging Face format$/,
    ],
    [
      "a field of the cluster",
      "run.yaml",
      { set: ["suspend=true"] },
      /^run\.yaml: spec\.suspend cannot be used here: works on Kubernetes only; remove it; stop a run here with Ctrl-C$/,
    ],
    [
      "LoRA",
      "run.yaml",
      { set: ["model.adaptation={type: LoRA, rank: 8}"] },
      /LoRA is not implemented yet; set it to Full$/,
    ],
    [
      "a claim",
      "run.yaml",
      { set: [custom(`publicData: { persistentVolumeClaim: { claimName: a } }, privateData: { path: b }, ${grader}`)] },
      /spec\.tasks\[0\]\.publicData cannot be used here: works on Kubernetes only; give a path$/,
    ],
    [
      "a custom task without a grader",
      "run.yaml",
      { set: [custom(data)] },
      /spec\.tasks\[0\]\.grader is missing; a custom task states its own$/,
    ],
    [
      "a custom task without answers",
      "run.yaml",
      { set: [custom(`publicData: { path: custom/public }, privateData: { path: custom/empty }, ${grader}`)] },
      /custom\/empty has no answers\.csv and no test\.csv; nothing can be graded without the answers$/,
    ],
    [
      "a custom task without data",
      "run.yaml",
      { set: [custom(`publicData: { path: custom/empty }, privateData: { path: custom/private }, ${grader}`)] },
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
  ];
  for (const [name, file, options, expected] of cases)
    test(name, async () => {
      let written = "";
      const screen = { write: (text: string) => (written += text) };
      const around = { parts: FAKES, stdout: screen, stderr: screen, env: {}, now: () => new Date() };
      await assert.rejects(runLocally(file, { ...defaults, ...options }, around), (error: Error) => {
        assert.match(error.message, expected);
        assert.equal(exitStatusOf(error), 2);
        return true;
      });
      assert.equal(written, "");
      assert.deepEqual(readdirSync(home).sort(), ["custom", "policy", "run.yaml"]);
    });
});
