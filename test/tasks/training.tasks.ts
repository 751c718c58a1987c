/**
 * `npm run test:tasks`: each of the twelve MLE-bench tasks is trained for two iterations and evaluated, as its manifest in
 * manifests/tasks says, on synthetic stand-ins. The policy is the quickstart's, which was never trained on these tasks: its
 * programs fail, so a program that is known to be valid goes the same way through sandbox and grader.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { mleBenchTasks } from "../../learner/grading/mlebench-tasks.ts";
import { writeStandIn } from "./standins.ts";

const root = join(import.meta.dirname, "../..");
const parent = mkdtempSync(join(tmpdir(), "tasks-"));
after(() => rmSync(parent, { recursive: true, force: true }));
const runSeconds = 300;

async function longrun(...args: string[]): Promise<{ status: number | null; stdout: string; stderr: string }> {
  const child = spawn(process.execPath, ["controller/cli.ts", ...args], { cwd: root, timeout: runSeconds * 1000 });
  const said = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said.stderr += text));
  const status = await new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
  return { status, ...said };
}

/** Settings that turn the paper's run into one of the tiny policy, which has a context of 1,024 tokens and short prompts. */
const small = [
  ...["model.source=null", "model.policy=quickstart", "prompts.style=Short"],
  ...["model.maxPromptTokens=768", "model.maxResponseTokens=256", "algorithm.baseline=BatchMean"],
  ...["algorithm.batchSize=4", "algorithm.miniBatchSize=4", "algorithm.microBatchSize=2"],
  ...["model.generationBatchSize=4", "model.instrumenterMaxPromptTokens=768", "model.instrumenterMaxResponseTokens=16"],
  ...["evaluation.samples=2", "evaluation.everyIterations=1", "stopping.iterations=2"],
  ...["learner.device=CPU", "learner.compute=Float32", "learner.threads=1"],
  ...["actors={min: 1, max: 1, slots: 1}", "tasks[0].executionTimeoutSeconds=20"],
];

/** Predicts random numbers in the form of the sample submission; each row keeps its constraints. */
const program = (sample: string, targets: string[]) => `
import pandas as pd
submission = pd.read_csv("input/${sample}", keep_default_na=False)
targets = ${JSON.stringify(targets)}
for i, name in enumerate(targets):
    if len(targets) == 1 and submission[name].dtype == object:
        submission[name] = "the"
    elif len(targets) == 1:
        submission[name] = [int(row % 2) for row in range(len(submission))]
    else:
        submission[name] = [0.9 if row % len(targets) == i else 0.1 / (len(targets) - 1) for row in range(len(submission))]
submission.to_csv("submission.csv", index=False)
`;

for (const [id, task] of Object.entries(mleBenchTasks()))
  describe(id, () => {
    const folder = writeStandIn(id, parent);

    test("A valid program is executed and graded", async () => {
      const file = join(parent, `${id}.py`);
      writeFileSync(file, program(task.sample, task.targetColumns));
      const { status, stdout, stderr } = await longrun("exec", file, "--task", folder, "--json");
      assert.equal(status, 0, stderr);
      const { valid, reason, reward, score, markers } = JSON.parse(stdout);
      assert.deepEqual({ valid, reason }, { valid: true, reason: "valid" }, stdout);
      assert.ok(Number.isFinite(score) && reward === (task.direction === "Higher" ? score : -score), stdout);
      assert.ok(markers.includes("imported packages"), stdout);
    });

    test("Two iterations train, with evaluations before, between and after them", async () => {
      const out = join(parent, `run-${id}`);
      const data = ["public", "private"].map((part) => `tasks[0].${part}Data={path: ${folder}/prepared/${part}}`);
      const settings = [...small, ...data].flatMap((set) => ["--set", set]);
      const manifest = `manifests/tasks/${id}/trainingrun.yaml`;
      const { status, stdout, stderr } = await longrun("run", manifest, "--out", out, "--json", ...settings);
      assert.equal(status, 0, stderr);
      const line = JSON.parse(stdout.trim().split("\n").at(-1)!);
      assert.equal(line.iteration, 2);
      assert.equal(line.samples, 4);
      assert.ok(line.meanReward >= -10 && line.meanReward <= 1, `mean reward ${line.meanReward}`);
      // Four programs of a policy that does not know the task may earn the same.
      assert.equal(line.policySteps, line.noSignal ? 0 : 1);
      const summary = JSON.parse(readFileSync(join(out, "summary.json"), "utf8"));
      assert.equal(summary.state, "succeeded");
      assert.equal(summary.evaluation.before.samples, 2);
      assert.equal(summary.evaluation.during[0].iteration, 1);
      assert.ok(summary.evaluation.after.samples >= 2);
      const { medals, bestMedal, aboveMedianFraction } = summary.evaluation.after;
      assert.deepEqual(Object.keys(medals), ["gold", "silver", "bronze"]);
      assert.ok([null, "gold", "silver", "bronze"].includes(bestMedal) && aboveMedianFraction >= 0);
    });
  });
