/** Tests `longrun exec` as a user calls it: instrumentation, the real sandbox and the grader, on a small task of its own. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";

const CLI = new URL("../../controller/cli.ts", import.meta.url).pathname;
const folder = mkdtempSync(join(tmpdir(), "longrun-exec-"));
after(() => rmSync(folder, { recursive: true, force: true }));

const task = join(folder, "double");
for (const part of ["public", "private"]) mkdirSync(join(task, "prepared", part), { recursive: true });
const files = {
  "task.yaml": `name: double
executionTimeoutSeconds: 5
grader: { metric: MAE, idColumn: id, targetColumns: [y], direction: Lower }
`,
  "prepared/public/description.md": "Predict y from x.\n",
  "prepared/public/train.csv": "id,x,y\n1,1,2\n2,2,4\n",
  "prepared/public/test.csv": "id,x\n3,3\n4,4\n",
  "prepared/public/sample_submission.csv": "id,y\n3,0\n4,0\n",
  "prepared/private/answers.csv": "id,y\n3,6\n4,8\n",
};
for (const [name, text] of Object.entries(files)) writeFileSync(join(task, name), text);

const PROGRAMS: [name: string, program: string, expected: Record<string, unknown>][] = [
  [
    "a good program",
    `import pandas as pd
test = pd.read_csv("input/test.csv")
test["y"] = 2 * test["x"] + 1
test[["id", "y"]].to_csv("submission.csv", index=False)
`,
    {
      outcome: "completed",
      valid: true,
      score: 1,
      reward: 0, // the same as for the best constant prediction, because task.yaml has no rewardRange
      clamped: false,
      reason: "valid",
      markers: ["imported packages", "loaded data"],
    },
  ],
  [
    "a program that copies the sample submission",
    `import shutil
shutil.copy("input/sample_submission.csv", "submission.csv")
`,
    { outcome: "completed", valid: true, score: 7, reward: -6, guards: ["sampleSubmission", "constant"] },
  ],
  [
    "a program whose predictions are far off",
    `import pandas as pd
test = pd.read_csv("input/test.csv")
test["y"] = 1000
test[["id", "y"]].to_csv("submission.csv", index=False)
`,
    { valid: true, score: 993, reward: -9, clamped: true },
  ],
  [
    "a program that fails after reading the data",
    `import pandas as pd
train = pd.read_csv("input/train.csv")
print(train["nothing"])
`,
    {
      outcome: "failed",
      exitStatus: 1,
      valid: false,
      score: null,
      reason: "failed",
      markers: ["imported packages", "loaded data"],
    },
  ],
  [
    "a program that looks for the answers",
    `print(open("input/../../private/answers.csv").read())
`,
    { outcome: "failed", valid: false },
  ],
];

for (const [name, program, expected] of PROGRAMS) {
  test(`exec --json reports ${name}`, () => {
    const path = join(folder, "program.py");
    writeFileSync(path, program);
    const run = spawnSync(process.execPath, [CLI, "exec", "--json", "--task", task, path], {
      encoding: "utf8",
      timeout: 120_000,
    });
    assert.equal(run.status, 0, run.stderr);
    const answer = JSON.parse(run.stdout);
    const fields =
      "outcome exitStatus detail durationSeconds cpuSeconds peakMemoryBytes markers output valid score reward clamped reason guards lastLines";
    assert.deepEqual(Object.keys(answer), fields.split(" "));
    for (const [field, value] of Object.entries(expected)) assert.deepEqual(answer[field], value, field);
  });
}
