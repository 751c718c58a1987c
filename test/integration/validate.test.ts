/** `longrun validate` checks folders and lengths like `longrun run`. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, globSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { KUBERNETES_ONLY } from "../../controller/local/inputs/resolve.ts";
import { parseTrainingRun, readManifestFile } from "../../crds/trainingrun.ts";
import { DATA, environment, GRADER, makeHome, removeHome } from "./fakes/home.ts";

const ROOT = join(import.meta.dirname, "../..");
const CLI = join(ROOT, "controller/cli.ts");
const home = makeHome();
after(() => removeHome(home));
before(() => {
  writeFileSync(join(home, "custom/public/train.csv"), "id,x,y\n1,1,2\n2,2,4\n");
  writeFileSync(join(home, "custom/public/sample_submission.csv"), "id,y\n3,0\n4,0\n");
  writeFileSync(join(home, "custom/public/description.md"), "Predict y.\n");
  writeFileSync(join(home, "custom/private/answers.csv"), "id,y\n3,6\n4,8\n");
  writeFileSync(
    join(home, "own.yaml"),
    `{ apiVersion: longrun.dev/v1alpha1, kind: TrainingRun, metadata: { name: own }, spec: { tasks: [{ name: own, ${DATA}, ${GRADER} }],
       model: { policy: quickstart, maxPromptTokens: 256, maxResponseTokens: 256 }, prompts: { style: Short } } }`,
  );
});

const cases: [name: string, args: string[], status: number, said: RegExp][] = [
  ["what a run would take", [], 0, /^own\.yaml: TrainingRun own is valid\n$/],
  [
    "lengths beyond the policy's",
    ["--set", "model.maxResponseTokens=800"],
    2,
    /^own\.yaml: model\.maxPromptTokens and model\.maxResponseTokens are 256 \+ 800 tokens, but model\.policy has 1024 positions/,
  ],
  [
    "a prompt that does not fit",
    ["--set", "model.maxPromptTokens=20"],
    2,
    /^own\.yaml: .*model\.maxPromptTokens is 20; raise it/,
  ],
  [
    "a folder that is not there",
    ["--set", "tasks[0].publicData.path=custom/none"],
    2,
    /^own\.yaml: spec\.tasks\[0\]\.publicData\.path: \S+custom\/none: there is no such folder; check the path\n$/,
  ],
  [
    "answers that do not fit the grader",
    ["--set", "tasks[0].grader.targetColumns=[z]"],
    2,
    /^own\.yaml: .*answers\.csv does not fit the grader: missing column z/,
  ],
  [
    "a warm start whose data is not there",
    ["--set", "warmStart={data: {path: custom/none.jsonl}}"],
    2,
    /^own\.yaml: spec\.warmStart\.data\.path: \S+custom\/none\.jsonl is missing; name a file of lines, or a folder with \.jsonl files\n$/,
  ],
  [
    "a warm start's ConfigMap",
    ["--set", "warmStart={data: {configMap: {name: corpus}}}"],
    2,
    /^own\.yaml: spec\.warmStart\.data cannot be used here: .*; to check it for Kubernetes, add --cluster\n$/,
  ],
  [
    "what only Kubernetes has",
    ["--set", "tasks[0].publicData={persistentVolumeClaim: {claimName: a}}"],
    2,
    /^own\.yaml: spec\.tasks\[0\]\.publicData cannot be used here: .*; to check it for Kubernetes, add --cluster\n$/,
  ],
  [
    "the same for Kubernetes, which looks at no folder",
    [
      ...["--cluster", "--set", "tasks[0].publicData={persistentVolumeClaim: {claimName: a}}"],
      ...[
        "--set",
        "tasks[0].privateData={persistentVolumeClaim: {claimName: b}}",
        "--set",
        "model.maxResponseTokens=800",
      ],
    ],
    0,
    /is valid/,
  ],
];
const longrun = (args: string[], cwd = home) =>
  spawnSync(process.execPath, [CLI, ...args], { encoding: "utf8", cwd, env: environment(home), timeout: 120_000 });
for (const [name, args, status, said] of cases)
  test(`validate checks ${name}`, () => {
    const validated = longrun(["validate", "own.yaml", ...args]);
    assert.match(validated.stdout + validated.stderr, said);
    assert.equal(validated.status, status);
    assert.deepEqual(readdirSync(join(home, "tmp")), [], "nothing is left");
  });

test("validate warns of a chat template whose turns end with a token that ends no response", () => {
  cpSync(join(ROOT, "manifests/quickstart/policy"), join(home, "chat-policy"), { recursive: true });
  writeFileSync(join(home, "chat-policy/generation_config.json"), '{"eos_token_id":0}');
  const { stdout, stderr, status } = longrun(["validate", "own.yaml", "--set", "model.policy=./chat-policy"]);
  assert.equal(stderr, "");
  const [warning, valid] = stdout.split("\n");
  assert.match(
    warning!,
    /^own\.yaml: warning: .*policy: .* <\|im_end\|> \(2\), but only <\|endoftext\|> \(0\) ends a response/,
  );
  assert.deepEqual([valid, status], ["own.yaml: TrainingRun own is valid", 0]);
});

for (const command of ["validate", "run"])
  test(`${command} refuses a manifest that differs from the task.yaml beside its data`, () => {
    cpSync(join(home, "custom"), join(home, "made/prepared"), { recursive: true });
    writeFileSync(join(home, "made/task.yaml"), `name: own\nexecutionTimeoutSeconds: 33\n${GRADER}\n`);
    writeFileSync(
      join(home, "two.yaml"),
      readFileSync(join(home, "own.yaml"), "utf8").replaceAll("path: custom", "path: made/prepared"),
    );
    const refused = longrun([command, "two.yaml"]);
    assert.match(
      refused.stderr,
      /^two\.yaml and .*made\/task\.yaml both define the task, and differ: spec\.tasks\[0\]\.executionTimeoutSeconds is 600, not 33;/,
    );
    assert.equal(refused.status, 2);
  });

test("validate checks every TrainingRun of several files with several objects", () => {
  const [own, secret] = [readFileSync(join(home, "own.yaml"), "utf8"), "kind: Secret\nmetadata: { name: hub }\n"];
  const long = own.replace("name: own }", "name: long }").replace("maxPromptTokens: 256", "maxPromptTokens: 900");
  const misspelt = own.replace("name: own }", "name: misspelt }").replace("maxPromptTokens", "maxPromptToken");
  writeFileSync(join(home, "several.yaml"), [secret, own, long, misspelt].join("\n---\n"));
  const { status, stdout, stderr } = longrun(["validate", "own.yaml", "several.yaml", "none.yaml"]);
  assert.deepEqual(stdout.split("\n"), [
    "own.yaml: TrainingRun own is valid",
    "several.yaml: TrainingRun own is valid",
    "several.yaml: skipped 1 object of another kind: Secret hub",
    "",
  ]);
  const [folders, field, missing, ...rest] = stderr.split("\n");
  assert.match(
    folders!,
    /^several\.yaml: document 3, TrainingRun long: model\.maxPromptTokens .* are 900 \+ 256 tokens/,
  );
  assert.match(field!, /^several\.yaml:\d+: document 4, TrainingRun misspelt: spec\.model\.maxPromptToken is unknown/);
  assert.equal(missing, "none.yaml: there is no such file; check the path");
  assert.deepEqual([rest, status], [[""], 2]);

  const run = longrun(["run", "several.yaml"]);
  assert.match(
    run.stderr,
    /^several\.yaml: holds 3 TrainingRuns \(own in line 5, .*\); put each into a separate file\n$/,
  );
  assert.equal(run.status, 2);
});

test("validate --replaces compares one TrainingRun with one", () => {
  const compare = (file: string, old: string) => longrun(["validate", "--replaces", old, file]);
  writeFileSync(join(home, "pair.yaml"), `${readFileSync(join(home, "own.yaml"), "utf8")}\n---\nkind: Secret\n`);
  assert.match(compare("pair.yaml", "own.yaml").stdout, /^pair\.yaml: TrainingRun own is valid\n.*skipped 1 object/);
  assert.match(compare("own.yaml", "several.yaml").stderr, /^several\.yaml: holds 3 TrainingRuns/);
  assert.match(compare("several.yaml", "own.yaml").stderr, /^several\.yaml: holds 3 TrainingRuns/);
  const runtime = "{ apiVersion: longrun.dev/v1alpha1, kind: TrainingRuntime, metadata: { name: a }, spec: {} }";
  writeFileSync(join(home, "runtime.yaml"), runtime);
  assert.match(
    compare("runtime.yaml", "own.yaml").stderr,
    /^runtime\.yaml: holds no TrainingRun but TrainingRuntime a;/,
  );
  assert.match(
    longrun(["validate", "--replaces", "own.yaml", "own.yaml", "pair.yaml"]).stderr,
    /^--replaces own\.yaml: give one FILE, not 2\n$/,
  );
});

test("Every example is valid; the ones without Kubernetes and user data are valid on this machine too", () => {
  const files = globSync("manifests/{*,tasks/*}/*.yaml", { cwd: ROOT })
    .filter((file) => /^kind: TrainingRun$/m.test(readFileSync(join(ROOT, file), "utf8")))
    .sort();
  assert.ok(files.length >= 27, `${files.length} files`);
  const manifests = files.map((file) => ({ file, ...readManifestFile(readFileSync(join(ROOT, file), "utf8"), file) }));
  for (const { file, runs } of manifests) for (const object of runs) parseTrainingRun(object, file);

  const alone = manifests.filter(({ skipped }) => skipped.length === 0).map(({ file }) => file);
  const { stdout, stderr } = longrun(["validate", ...alone], ROOT);
  const reasons = new RegExp(`${KUBERNETES_ONLY}|^manifests/your-model/.*/model/config\\.json is missing`);
  assert.deepEqual(
    stderr.split("\n").filter((line) => line !== "" && !reasons.test(line)),
    [],
  );
  for (const name of ["quickstart", "quickstart-grpo", "several-tasks", "laptop-gpu", "one-gpu"])
    assert.match(stdout, new RegExp(`^manifests/.*: TrainingRun ${name} is valid$`, "m"));
});
