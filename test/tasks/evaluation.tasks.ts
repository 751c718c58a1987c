/**
 * Tests `longrun evaluate` with real learner, actors and programs, on a task of a few dozen rows: a model, interrupted and continued; a run
 * before and after its one iteration; a table of runs.
 */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { openStore } from "../../learner/store/store.ts";

const root = join(import.meta.dirname, "../..");
const home = mkdtempSync(join(tmpdir(), "evaluation-"));
after(() => rmSync(home, { recursive: true, force: true }));
const seconds = 300;

/** The columns of the bundled task `diamonds`, which the policy knows; prices depend on the size. */
const FEATURES = "id,carat,cut,color,clarity,depth,table,x,y,z";
const cuts = ["Fair", "Good", "Very Good", "Premium", "Ideal"];
const row = (id: number) => {
  const carat = 0.3 + (id % 17) / 10;
  return `${id},${carat.toFixed(2)},${cuts[id % 5]},E,SI2,60.7,56,${(5 + carat).toFixed(2)},5.25,3.2`;
};
const price = (id: number) => 1000 + 300 * (id % 17);
const rows = (from: number, to: number) => Array.from({ length: to - from }, (_, index) => from + index);
const FILES: Record<string, string> = {
  "task.yaml":
    "name: diamonds\nexecutionTimeoutSeconds: 20\nexecutionMemoryBytes: 1610612736\ngrader: { metric: MAE, idColumn: id, targetColumns: [price], direction: Lower }\n",
  "prepared/public/train.csv": `${FEATURES},price\n${rows(0, 80)
    .map((id) => `${row(id)},${price(id)}\n`)
    .join("")}`,
  "prepared/public/test.csv": `${FEATURES}\n${rows(80, 110)
    .map((id) => `${row(id)}\n`)
    .join("")}`,
  "prepared/public/sample_submission.csv": `id,price\n${rows(80, 110)
    .map((id) => `${id},0\n`)
    .join("")}`,
  "prepared/public/description.md": "# Price of a diamond\n\nPredict the price of diamonds in dollars.\n",
  "prepared/private/answers.csv": `id,price\n${rows(80, 110)
    .map((id) => `${id},${price(id)}\n`)
    .join("")}`,
};
const task = join(home, "task/diamonds");
for (const [name, text] of Object.entries(FILES)) {
  mkdirSync(join(task, name, ".."), { recursive: true });
  writeFileSync(join(task, name), text);
}

/** @param stopWhen sends Ctrl-C when it returns true */
async function longrun(args: string[], stopWhen?: () => boolean) {
  const child = spawn(process.execPath, [join(root, "controller/cli.ts"), ...args], {
    cwd: home,
    timeout: seconds * 1000,
  });
  const said = { stdout: "", stderr: "" };
  child.stdout.setEncoding("utf8").on("data", (text: string) => (said.stdout += text));
  child.stderr.setEncoding("utf8").on("data", (text: string) => (said.stderr += text));
  const ended = new Promise<number | null>((resolve, reject) => child.on("error", reject).on("close", resolve));
  while (stopWhen && child.exitCode === null) {
    await sleep(100);
    if (!stopWhen()) continue;
    child.kill("SIGINT");
    break;
  }
  return { status: await ended, ...said };
}

/** Returns the samples with prompts and solutions, in order. */
function samples(folder: string, purpose: string) {
  const store = openStore(join(home, folder, "store.sqlite"), { readOnly: true });
  const found = store.samplesFor(purpose);
  store.close();
  return found.map(({ kind, previous, solution, executionSeed }) => ({ kind, previous, solution, executionSeed }));
}
const finished = (folder: string) => {
  const path = join(home, folder, "store.sqlite");
  if (!existsSync(path)) return 0;
  try {
    const store = openStore(path, { readOnly: true });
    const { completed } = store.totals();
    store.close();
    return completed;
  } catch {
    return 0; // the file does not exist yet
  }
};
const asked = ["--samples", "6", "--improve", "--seed", "3", "--set", "learner.threads=1"];
const model = ["evaluate", "--model", "quickstart", "--task", task, ...asked];

test("An evaluation of a model gives the same programs for a seed, interrupted or not", async () => {
  const whole = await longrun([...model, "--output", "whole", "--json"]);
  assert.equal(whole.status, 0, whole.stderr);
  const { settings, model: figures, directory } = JSON.parse(whole.stdout);
  assert.deepEqual([settings.protocol, settings.samples, settings.seed, settings.task], ["Paper", 6, 3, "diamonds"]);
  assert.equal(directory, join(home, "whole"));
  assert.equal(figures.kinds.scratch.samples, 6);
  assert.ok(figures.validFraction > 0, "this policy solves this task now and then");
  assert.equal(figures.samples, 12);
  assert.ok(Number.isFinite(figures.bestScore) && figures.intervals.bestScore[0] <= figures.bestScore);
  assert.match(readFileSync(join(home, "whole/evaluation.md"), "utf8"), /Protocol paper: 6 programs from scratch/);
  assert.match(readFileSync(join(home, "whole/report.html"), "utf8"), /<h2>Evaluation<\/h2>/);
  assert.ok(existsSync(join(home, "whole/programs/model-scratch/program.py")));

  const stopped = await longrun([...model, "--output", "stopped"], () => finished("stopped") >= 2);
  assert.equal(stopped.status, 130, stopped.stderr);
  assert.match(stopped.stderr, /Go on with: the same command/);
  const kept = samples("stopped", "evaluation-model").length;
  assert.ok(kept >= 2 && kept < 12, `${kept} programs were written`);
  const resumed = await longrun([...model, "--output", "stopped"]);
  assert.equal(resumed.status, 0, resumed.stderr);
  assert.match(resumed.stdout, /^Going on to evaluate/m);
  assert.deepEqual(samples("stopped", "evaluation-model"), samples("whole", "evaluation-model"));
});

test("An evaluation of a run compares before and after; its report and a table of runs show it", async () => {
  const small = [
    ...["prompts={style: Short}", "model.maxPromptTokens=256", "model.maxResponseTokens=256", "learner.threads=1"],
    ...["algorithm={batchSize: 4, miniBatchSize: 4, microBatchSize: 2, baseline: BatchMean}", "stopping.iterations=1"],
    ...["evaluation={before: false, after: false}", `tasks[0].publicData={path: ${task}/prepared/public}`],
    `tasks[0].privateData={path: ${task}/prepared/private}`,
    "tasks[0].grader={metric: MAE, idColumn: id, targetColumns: [price], direction: Lower}",
  ].flatMap((set) => ["--set", set]);
  const manifest = join(root, "manifests/quickstart/trainingrun.yaml");
  const trained = await longrun(["run", manifest, "--out", "trained", "--json", ...small]);
  assert.equal(trained.status, 0, trained.stderr);

  const { status, stdout, stderr } = await longrun(["evaluate", "--run", "trained", "--protocol", "equal", ...asked]);
  assert.equal(status, 0, stderr);
  assert.match(stdout, /Protocol equal: 3 programs from scratch and 3 improvements/);
  assert.match(stdout, /before training +\| +after 1 iteration +\| +change/);
  assert.match(readFileSync(join(home, "trained/report.html"), "utf8"), /<h2>Evaluation<\/h2>\s*<p>Protocol equal/);

  const table = await longrun(["evaluate", "--table", "trained", "--csv"]);
  assert.match(table.stdout, /^task,direction,metric,statistic,runs,before_scratch,/);
  assert.match(table.stdout, /^diamonds,Lower,MAE,best,1,/m);
});
