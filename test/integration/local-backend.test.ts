/** Tests the local backend with fakes of the learner and the actors as its processes. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
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

interface Ended {
  status: number;
  stdout: string;
  stderr: string;
}

/** Runs run.yaml with its run folder at `out`. */
async function run(
  out: string,
  fakes: { learner?: object; actor?: object } = {},
  options: Partial<RunOptions> = {},
): Promise<Ended> {
  const ended: Ended = { status: 0, stdout: "", stderr: "" };
  const around = {
    parts: FAKES,
    stdout: { write: (text: string) => (ended.stdout += text) },
    stderr: { write: (text: string) => (ended.stderr += text) },
    env: { ...environment(home, fakes), COLUMNS: "120" },
    now: () => new Date(),
  };
  const defaults: RunOptions = {
    ...{ out, task: [], set: [], json: false, verbose: false, listen: "127.0.0.1:0", metricsListen: "127.0.0.1:0" },
    ...options,
  };
  try {
    ended.status = await runLocally("run.yaml", defaults, around);
  } catch (error) {
    ended.status = exitStatusOf(error);
    ended.stderr += `${(error as Error).message}\n`;
  }
  return ended;
}
const read = (folder: string, file: string): string => readFileSync(join(home, folder, file), "utf8");
const iterations = (lines: string): number[] =>
  lines
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line).iteration);

describe("a run", { concurrency: 2 }, () => {
  test("The terminal shows rows, the comparison and the best program", async () => {
    const { status, stdout, stderr } = await run("done", { learner: { awaitLines: { "actor-0.log": 1 } } });
    assert.equal(stderr, "");
    assert.equal(status, 0);
    const lines = stdout.split("\n");
    assert.deepEqual(lines.splice(0, 2), ["Preparing the Python environment", "Preparing task diamonds"]);
    assert.equal(
      lines.shift(),
      `Training test on task diamonds (run.yaml), 100 iterations (stopping.iterations), in ${join(home, "done")}`,
    );
    assert.deepEqual(lines.splice(0, 2), ["memory plan: 1.00 GB of 2.00 GB", "  weights  1.00 GB"]);
    assert.match(lines.shift()!, /^The model's files are mapped: top counts them in each process \(RSS\)/);
    assert.match(lines[0]!, /^iteration {3}valid {2}mean score/);
    assert.deepEqual(
      lines.slice(1, 4).map((line) => line.trim().split(" ")[0]),
      ["1", "2", "3"],
    );
    assert.match(stdout, /valid programs {7}50\.0% {2}100\.0%\nmean MAE/);
    assert.match(stdout, /^Engine: 50% generating, 30% updating, 20% idle \(it waited for running programs: raise /m);
    assert.match(
      stdout,
      new RegExp(`Best program: ${join(home, "done")}/best/program\\.py \\(MAE 300, iteration 3\\)`),
    );
    assert.match(read("done", "trainingrun.yaml"), /batchSize: 128/);
    assert.match(read("done", "logs/actor-0.log"), /actor-0 looks for 127\.0\.0\.1:\d+/);
    assert.equal(existsSync(join(home, "done", "lock")), false);
  });

  test("--json prints only the lines of metrics, however fast they come", async () => {
    const learner = { iterations: 20, iterationSeconds: 0 };
    const { status, stdout } = await run("json", { learner }, { json: true, set: ["seed=3"] });
    assert.equal(status, 0);
    assert.equal(stdout, read("json", "metrics.jsonl"));
    assert.equal(iterations(stdout).length, 20);
    assert.match(read("json", "trainingrun.yaml"), /seed: 3/);
  });

  test("A run takes a custom task, and --verbose shows the logs", async () => {
    const { status, stderr } = await run(
      "custom-run",
      { learner: { awaitLines: { "actor-0.log": 1 } } },
      { verbose: true, set: [customTask(`${DATA}, ${GRADER}`)] },
    );
    assert.match(stderr, /^\[actor-0\] actor-0 looks for 127\.0\.0\.1:\d+\n$/);
    assert.equal(status, 0);
  });

  test("The terminal shows the planned memory once, also when the learner starts again", async () => {
    const { stdout } = await run("planned", { learner: { dieInIteration: 2 } });
    assert.equal(stdout.match(/^memory plan: /gm)?.length, 1);
  });

  test("A killed learner starts again at the same port, and the run continues", async () => {
    const { status, stdout, stderr } = await run("killed", { learner: { dieInIteration: 2 } }, { json: true });
    assert.equal(stderr, "learner ended with signal SIGKILL; starting it again in 0.05 s\n");
    assert.equal(status, 0);
    assert.deepEqual(iterations(stdout), [1, 2, 3]);
    const { starts, ports } = JSON.parse(read("killed", "fake-state.json"));
    assert.equal(starts, 2);
    assert.match(ports[1], /^127\.0\.0\.1:[1-9]\d*$/);
  });

  test("The run replaces an actor that ended because it was idle", async () => {
    const fakes = { learner: { awaitLines: { "actor-0.log": 2 } }, actor: { idleSeconds: 0.1 } };
    const { status, stderr } = await run("idle", fakes);
    assert.equal(stderr, "");
    assert.equal(status, 0);
  });

  test("The run has as many actors as its work needs", async () => {
    const set = ["actors={min: 0, max: 3, slots: 2}"];
    const { status } = await run("scaled", { learner: { queued: 3, awaitLines: { "actor-1.log": 1 } } }, { set });
    assert.equal(status, 0);
    assert.deepEqual(readdirSync(join(home, "scaled", "logs")).sort(), ["actor-0.log", "actor-1.log", "learner.log"]);
  });
});

describe("A run that cannot continue says why in one line", { concurrency: 2 }, () => {
  test("A Python without venv ends the run", async () => {
    const { status, stderr } = await run("no-venv", {}, { python: "no-venv" });
    assert.equal(stderr, "no-venv has no venv module: install it with apt-get install python3-venv\n");
    assert.equal(status, 1);
    assert.equal(existsSync(join(home, "no-venv")), false);
  });
  test("A machine without wheels for actors.packages ends the run", async () => {
    const { status, stderr } = await run("paper", {}, { set: ["actors.packages=Paper"] });
    assert.equal(stderr, "there are no wheels of Paper for this machine\n");
    assert.equal(status, 1);
  });
  test("A run folder that cannot be created ends the run", async () => {
    const { status, stderr } = await run("run.yaml/run");
    assert.match(stderr, /^--out .*run\.yaml\/run: a part of this path is not a folder; check the path\n$/);
    assert.equal(status, 2);
  });
  test("A learner that refuses its input leaves no run folder", async () => {
    const { status, stderr } = await run("refused", { learner: { exitAtStart: 2 } });
    assert.equal(stderr, "the learner cannot start: the fake learner cannot start: check its input\n");
    assert.equal(status, 2);
    assert.equal(existsSync(join(home, "refused")), false);
  });
  test("A learner that keeps failing ends the run", async () => {
    const { status, stderr } = await run("failing", { learner: { exitAtStart: 1 } });
    assert.match(
      stderr,
      /starting it again in 0\.05 s\n.*starting it again in 0\.1 s\nthe learner keeps failing \(status 1: the fake learner cannot start: check its input\); its log is .*learner\.log\nGo on with: longrun run --resume .*\n$/s,
    );
    assert.equal(status, 1);
  });
  test("A learner that reports a failed run ends it", async () => {
    const { status, stderr } = await run("failed", { learner: { failInIteration: 2 } });
    assert.match(
      stderr,
      /^the run failed: the fake learner was told to fail; its log is .*\nGo on with: longrun run --resume .*\n$/,
    );
    assert.equal(status, 1);
  });
  test("An actor that keeps failing ends the run", async () => {
    const { status, stderr } = await run("actor", { learner: { iterations: 1000 }, actor: { exitAtStart: 1 } });
    assert.match(
      stderr,
      /actor-0 keeps failing \(status 1: this machine can confine no program: neither namespaces nor Landlock\)\nGo on with: longrun run --resume .*\n$/,
    );
    assert.equal(status, 1);
  });
  test("An actor that refuses to start ends the run", async () => {
    const { status, stderr } = await run("actor-2", { learner: { iterations: 1000 }, actor: { exitAtStart: 2 } });
    assert.equal(
      stderr,
      "actor-0 cannot start: this machine can confine no program: neither namespaces nor Landlock\n",
    );
    assert.equal(status, 2);
  });
});
