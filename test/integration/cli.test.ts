/** The command line as a process: exit status, signals, and that nothing outlives it. The other parts are fakes. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { environment, makeHome, nothingLeft, processesWith, removeHome } from "./fakes/home.ts";

const CLI = fileURLToPath(new URL("./fakes/cli.ts", import.meta.url));
const DEADLINE_SECONDS = 60;

const home = makeHome();
const children: ChildProcess[] = [];
after(() => {
  for (const child of children) child.kill("SIGKILL");
  removeHome(home);
});

interface Finished {
  status: number | null;
  stdout: string;
  stderr: string;
}

class Longrun {
  readonly child: ChildProcess;
  readonly finished: Promise<Finished>;
  stdout = "";
  stderr = "";

  /** @param mark environment variable that marks this run's processes */
  constructor(args: string[], fakes: { learner?: object; actor?: object } = {}, mark = "MARK=") {
    this.child = spawn(process.execPath, [CLI, ...args], {
      cwd: home,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...environment(home, fakes), [mark.split("=")[0]!]: mark.split("=")[1]! },
    });
    children.push(this.child);
    this.child.stdout!.on("data", (text) => (this.stdout += text));
    this.child.stderr!.on("data", (text) => (this.stderr += text));
    const timer = setTimeout(() => this.child.kill("SIGKILL"), DEADLINE_SECONDS * 1000);
    this.finished = new Promise((resolve) =>
      this.child.once("close", (status) => {
        clearTimeout(timer);
        resolve({ status, stdout: this.stdout, stderr: this.stderr });
      }),
    );
  }

  async until(what: string, condition: (longrun: this) => boolean): Promise<void> {
    for (let waited = 0; !condition(this); waited += 20) {
      assert.ok(waited < DEADLINE_SECONDS * 1000, `waited until ${what}; stderr: ${this.stderr}`);
      await sleep(20);
    }
  }
}

const longrun = (args: string[]): Promise<Finished> => new Longrun(args).finished;
const metrics = (folder: string): string[] =>
  readFileSync(join(home, folder, "metrics.jsonl"), "utf8")
    .trim()
    .split("\n");

describe("Bad input ends with status 2, one line, and no file", { concurrency: 2 }, () => {
  const cases: [name: string, args: string[], expected: RegExp][] = [
    ["no command", [], /^Usage: longrun/],
    ["an unknown command", ["ran"], /^error: unknown command 'ran'\n\(Did you mean run\?\)\n$/],
    ["an unknown option", ["run", "run.yaml", "--ouput", "x"], /^error: unknown option '--ouput'/],
    ["a run folder that does not exist", ["best", "runs/nope"], /^runs\/nope: there is no such run folder\n$/],
    ["no argument", ["best"], /^error: missing required argument 'RUN'\nlongrun help best says more\n$/],
    ["a missing manifest", ["run", "no.yaml"], /^no\.yaml: there is no such file; check the path\n$/],
    [
      "a misspelt field, validated",
      ["validate", "run.yaml", "--set", "algorithm.batchsize=3"],
      /did you mean batchSize\?\n$/,
    ],
    [
      "no such task",
      ["run", "run.yaml", "--set", "tasks[0].name=unknown"],
      /^run\.yaml: spec\.tasks\[0\]\.name is unknown: longrun has no bundled task of this name; give one of diamonds, movie, wage/,
    ],
    [
      "no run to resume",
      ["run", "--resume", "policy"],
      /^--resume policy: this is no run folder: policy\/trainingrun\.yaml: there is no such file/,
    ],
    ["no program", ["exec", "--task", "custom", "no.py"], /^no\.py: there is no such file/],
    ["nothing to evaluate", ["evaluate"], /^nothing to evaluate; give --run DIR, or --model MODEL and --task TASK\n$/],
    [
      "no evaluation for the table",
      ["evaluate", "--table", "policy"],
      /^--table policy: holds no evaluation; make one with/,
    ],
    [
      "no task folder",
      ["exec", "--task", "policy", "run.yaml"],
      /^--task policy: holds no task\.yaml; make the folder with: longrun task init DIR --from FILE\.csv\n$/,
    ],
    [
      "a table in a task folder's place",
      ["run", "--task", "./run.yaml"],
      /^--task \.\/run\.yaml: is a file; make a task folder with: longrun task init DIR --from \.\/run\.yaml\n$/,
    ],
    [
      "a misspelt task, before the environment is prepared",
      ["run", "--task", "diamond"],
      /^--task diamond: there is no such folder, and no bundled task of this name; there are diamonds, movie, wage\n$/,
    ],
  ];
  for (const [name, args, expected] of cases)
    test(name, async () => {
      const { status, stderr, stdout } = await longrun(args);
      assert.match(stderr, expected);
      assert.equal(status, 2);
      assert.equal(stdout.replaceAll(/^Preparing .*\n/gm, ""), "");
      assert.equal(existsSync(join(home, "runs")), false);
    });

  for (const [name, args, expected] of [
    [
      "A misspelt task",
      ["prepare", "diamonds", "diamond"],
      "diamond: there is no bundled task of this name; there are diamonds, movie, wage\n",
    ],
    [
      "A wrong number",
      ["evaluate", "--model", "policy", "--task", "diamonds", "--samples", "many"],
      "--samples many: give a whole number from 1 to 65536\n",
    ],
  ] as const)
    test(`${name} is refused before anything is prepared`, async () =>
      assert.deepEqual(await longrun([...args]), { status: 2, stdout: "", stderr: expected }));

  test("A port in use is refused", async () => {
    await using server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const { status, stderr } = await longrun(["run", "run.yaml", "--listen", `127.0.0.1:${port}`]);
    assert.equal(stderr, `--listen 127.0.0.1:${port}: the port is in use; choose another one, or 0 for any free one\n`);
    assert.equal(status, 2);
  });
});

test("A manifest with objects of other kinds is run, and the terminal names the skipped objects", async () => {
  const secret = "apiVersion: v1\nkind: Secret\nmetadata: { name: hub }\n";
  writeFileSync(join(home, "beside.yaml"), `${secret}---\n${readFileSync(join(home, "run.yaml"), "utf8")}`);
  const learner = { iterations: 1 };
  const { status, stdout, stderr } = await new Longrun(["run", "beside.yaml", "--out", "beside"], { learner }).finished;
  assert.equal(stderr, "beside.yaml: skipped 1 object of another kind: Secret hub\n");
  assert.match(stdout, /^Training test on task diamonds \(beside\.yaml\)/m);
  assert.equal(status, 0);
});

test("A bundled task is trained without a manifest, with changes of its settings", async () => {
  const args = ["run", "--task", "diamonds", "--out", "alone", "--set", "tasks[0].grader.rewardFloor=-5"];
  const { status, stdout, stderr } = await new Longrun(args, { learner: { iterations: 1 } }).finished;
  assert.equal(stderr, "");
  assert.match(
    stdout,
    /^Training diamonds on task diamonds \(--task diamonds\), \d+ iterations? \(stopping\.iterations\), in /m,
  );
  assert.equal(stdout.match(/^Preparing the Python environment$/gm)?.length, 1);
  assert.match(readFileSync(join(home, "alone/trainingrun.yaml"), "utf8"), /rewardFloor: -5/);
  assert.equal(status, 0);
});

describe("An interrupted run", { concurrency: 2 }, () => {
  test("Ctrl-C stops the run in order, and the run can be resumed", async () => {
    const learner = { iterations: 1000, iterationSeconds: 0.3 };
    const run = new Longrun(["run", "run.yaml", "--out", "stopped"], { learner }, "MARK=stopped");
    await run.until("the second row", () => run.stdout.includes("\n        2"));
    const second = await longrun(["run", "--resume", "stopped"]);
    assert.equal(
      second.stderr,
      `${join(home, "stopped")}: this run is alive (process ${run.child.pid}); stop that one first\n`,
    );
    assert.equal(second.status, 2);

    run.child.kill("SIGINT");
    const { status, stderr } = await run.finished;
    assert.equal(
      stderr,
      `Stopping; Ctrl-C again stops at once.\nStopped. Go on with: longrun run --resume ${join(home, "stopped")}\n`,
    );
    assert.equal(status, 130);
    await nothingLeft("MARK=stopped");

    const other = await longrun(["run", "--resume", "stopped", "--set", "seed=9"]);
    assert.equal(
      other.stderr,
      "--set seed=9: spec.seed does not fit: seed cannot change while the run exists; create a new TrainingRun, with initFrom to go on from this one's weights (it is 9)\n",
    );
    assert.equal(other.status, 2);

    const before = metrics("stopped");
    const further = { learner: { iterations: before.length + 2 } };
    const resumed = await new Longrun(["run", "run.yaml", "--resume", "stopped", "--json"], further).finished;
    assert.equal(resumed.status, 0, resumed.stderr);
    const after = metrics("stopped");
    assert.deepEqual(after.slice(0, before.length), before);
    assert.deepEqual(
      after.map((line) => JSON.parse(line).iteration),
      Array.from({ length: before.length + 2 }, (_, index) => index + 1),
    );
    assert.deepEqual(
      resumed.stdout.trim().split("\n"),
      after.slice(before.length),
      "it shows its own iterations alone",
    );

    const done = await new Longrun(["run", "run.yaml", "--resume", "stopped"], further).finished;
    assert.equal(done.status, 0, "a run that is done already is done at once");
    assert.equal(
      done.stderr,
      `${join(home, "stopped")}: this run is finished; to train on, raise its iterations (100): --set stopping.iterations=N\n`,
    );
    assert.doesNotMatch(done.stdout, /Preparing|Resuming/);
  });

  test("SIGHUP stops the run too, and kills processes that do not stop", async () => {
    const stubborn = { learner: { iterations: 1000, stubborn: true }, actor: { stubborn: true } };
    const set = ["--set", "actors.stopGraceSeconds=0.2", "--set", "learner.stopGraceSeconds=0.2"];
    const run = new Longrun(["run", "run.yaml", "--out", "stubborn", ...set], stubborn, "MARK=stubborn");
    await run.until("the first row", () => run.stdout.includes("\n        1"));
    run.child.kill("SIGHUP");
    assert.equal((await run.finished).status, 130);
    await nothingLeft("MARK=stubborn");
  });

  test("A second signal ends the run at once, whatever its processes do", async () => {
    const stubborn = { learner: { iterations: 1000, stubborn: true }, actor: { stubborn: true } };
    const run = new Longrun(["run", "run.yaml", "--out", "at-once"], stubborn, "MARK=at-once");
    await run.until("the first row", () => run.stdout.includes("\n        1"));
    run.child.kill("SIGTERM");
    await run.until("it says so", () => run.stderr.includes("Stopping"));
    run.child.kill("SIGINT");
    assert.equal((await run.finished).status, 130);
    assert.equal(
      run.stderr,
      `Stopping; Ctrl-C again stops at once.\nStopped at once. Go on with: longrun run --resume ${join(home, "at-once")}\n`,
    );
    await nothingLeft("MARK=at-once");
  });

  test("A full disk fails the run; the last line of output resumes it", async () => {
    const fakes = { learner: { exitAtStart: 73 } };
    const { status, stderr } = await new Longrun(["run", "run.yaml", "--out", "full"], fakes).finished;
    assert.match(stderr, /\nGo on with: longrun run --resume \S+\/full\n$/);
    assert.equal(status, 1);
    assert.ok(existsSync(join(home, "full/trainingrun.yaml")));
  });

  test("An interruption before the start leaves no run folder", async () => {
    const run = new Longrun(["run", "run.yaml", "--out", "early"], {}, "FAKE_PYTHON_SECONDS=30");
    // Earlier, a process checks the manifest, and Ctrl-C simply ends both.
    const makesEnvironment = (pid: number) =>
      readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("python-environment");
    await run.until("the environment is made", () => processesWith("FAKE_PYTHON_SECONDS=30").some(makesEnvironment));
    run.child.kill("SIGINT");
    const { status, stderr } = await run.finished;
    assert.equal(stderr, "Stopping; Ctrl-C again stops at once.\n");
    assert.equal(status, 130);
    assert.equal(existsSync(join(home, "early")), false);
    await nothingLeft("FAKE_PYTHON_SECONDS=30");
  });

  test("SIGKILL leaves no process, and the run can be resumed", async () => {
    const fakes = { learner: { iterations: 4, iterationSeconds: 0.5 } };
    const run = new Longrun(["run", "run.yaml", "--out", "killed"], fakes, "MARK=killed");
    await run.until("the first row", () => run.stdout.includes("\n        1"));
    await run.until("learner, actor and its child run", () => processesWith("MARK=killed").length >= 4);
    run.child.kill("SIGKILL");
    await run.finished;
    await nothingLeft("MARK=killed");
    const resumed = await new Longrun(["run", "--resume", "killed"], fakes).finished;
    assert.equal(resumed.status, 0, resumed.stderr);
    assert.match(resumed.stdout, /^Resuming test on task diamonds/m);
    // A run that is stopped may get another task, as a suspended one may on a cluster.
    const more = { learner: { ...fakes.learner, iterations: 5 } };
    const second = await new Longrun(["run", "--resume", "killed", "--set", "tasks[1].name=wage"], more).finished;
    assert.equal(second.status, 0, second.stderr);
    assert.match(second.stdout, /^Resuming test on tasks diamonds and wage/m);
  });
});

test("A run that ends in order leaves no temporary folder", () => {
  const left = readdirSync(join(home, "tmp")).filter((name) => name.startsWith("longrun-"));
  assert.ok(left.length <= 1, "only the run that was ended by SIGKILL could not remove its own");
});
