/** `longrun validate` checks folders and lengths like `longrun run`. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { DATA, environment, GRADER, makeHome, removeHome } from "./fakes/home.ts";

const CLI = join(import.meta.dirname, "../../controller/cli.ts");
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
    /custom\/none\/train\.csv is missing/,
  ],
  [
    "answers that do not fit the grader",
    ["--set", "tasks[0].grader.targetColumns=[z]"],
    2,
    /^own\.yaml: .*answers\.csv does not fit the grader: missing column z/,
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
for (const [name, args, status, said] of cases)
  test(`validate: ${name}`, () => {
    const options = { encoding: "utf8", cwd: home, env: environment(home), timeout: 60_000 } as const;
    const validated = spawnSync(process.execPath, [CLI, "validate", "own.yaml", ...args], options);
    assert.match(validated.stdout + validated.stderr, said);
    assert.equal(validated.status, status);
    assert.deepEqual(readdirSync(join(home, "tmp")), [], "nothing is left");
  });

for (const command of ["validate", "run"])
  test(`${command}: a manifest that differs from the task.yaml beside its data`, () => {
    cpSync(join(home, "custom"), join(home, "made/prepared"), { recursive: true });
    writeFileSync(join(home, "made/task.yaml"), `name: own\nexecutionTimeoutSeconds: 33\n${GRADER}\n`);
    writeFileSync(
      join(home, "two.yaml"),
      readFileSync(join(home, "own.yaml"), "utf8").replaceAll("path: custom", "path: made/prepared"),
    );
    const options = { encoding: "utf8", cwd: home, env: environment(home), timeout: 60_000 } as const;
    const refused = spawnSync(process.execPath, [CLI, command, "two.yaml"], options);
    assert.match(
      refused.stderr,
      /^two\.yaml and .*made\/task\.yaml both say what the task is, and differ: spec\.tasks\[0\]\.executionTimeoutSeconds is 600, not 33;/,
    );
    assert.equal(refused.status, 2);
  });
