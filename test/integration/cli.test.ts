/** The command line and the local backend as processes, with fakes of the learner and the actors. */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";

const CLI = fileURLToPath(new URL("./fakes/cli.ts", import.meta.url));
const DEADLINE_SECONDS = 20;

const home = mkdtempSync(join(tmpdir(), "longrun-cli-test-"));
after(() => rmSync(home, { recursive: true, force: true }));
/** Where longrun puts its temporary folders; must be empty after every end. */
const temporary = join(home, "tmp");
for (const folder of ["tmp", "policy", "custom/public", "custom/private", "custom/empty"])
  mkdirSync(join(home, folder), { recursive: true });
for (const file of ["config.json", "model.safetensors", "tokenizer.json"])
  writeFileSync(join(home, "policy", file), "");
for (const file of ["public/train.csv", "public/sample_submission.csv", "public/description.md", "private/answers.csv"])
  writeFileSync(join(home, "custom", file), "id,y\n");

const manifest = (name: string, spec = ""): string => {
  writeFileSync(
    join(home, name),
    `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata: { name: test }
spec:
  tasks: [{ name: diamonds }]
  model: { policy: ./policy }
  restart: { backoffSeconds: 0.05, maxBackoffSeconds: 0.1, maxFailures: 2 }
${spec}`,
  );
  return name;
};
manifest("run.yaml");
const grader = "grader: { metric: R2, idColumn: id, targetColumns: [y], direction: Higher }";
const custom = (extra: string): string => `tasks=[{ name: own, ${extra} }]`;
const data = "publicData: { path: custom/public }, privateData: { path: custom/private }";

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

  constructor(args: string[], env: Record<string, string> = {}) {
    this.child = spawn(process.execPath, [CLI, ...args], {
      cwd: home,
      stdio: ["ignore", "pipe", "pipe"],
      env: { ...process.env, TMPDIR: temporary, LONGRUN_CACHE: join(home, "cache"), npm_lifecycle_event: "", ...env },
    });
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

const longrun = (args: string[], env?: Record<string, string>): Promise<Finished> => new Longrun(args, env).finished;
const learner = (behaviour: object): Record<string, string> => ({ FAKE_LEARNER: JSON.stringify(behaviour) });
const actor = (behaviour: object): Record<string, string> => ({ FAKE_ACTOR: JSON.stringify(behaviour) });
const read = (folder: string, file: string): string => readFileSync(join(home, folder, file), "utf8");

/** @returns the processes whose command line or environment names `text` */
function processesWith(text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((pid) => {
      try {
        return (
          readFileSync(`/proc/${pid}/environ`, "utf8").includes(text) &&
          !/^\d+ \(.*\) Z/.test(readFileSync(`/proc/${pid}/stat`, "utf8"))
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}

async function nothingLeft(mark: string): Promise<void> {
  for (let waited = 0; processesWith(mark).length > 0; waited += 20) {
    assert.ok(waited < 5000, `processes are left: ${processesWith(mark)}`);
    await sleep(20);
  }
}

describe("bad input ends with status 2, one line, and nothing made", { concurrency: 2 }, () => {
  const cases: [name: string, args: string[], expected: RegExp][] = [
    ["no command", [], /^Usage: longrun/],
    ["an unknown command", ["ran"], /^error: unknown command 'ran'\n\(Did you mean run\?\)\n$/],
    ["an unknown option", ["run", "run.yaml", "--ouput", "x"], /^error: unknown option '--ouput'/],
    ["a missing manifest", ["run", "no.yaml"], /^no\.yaml: there is no such file; check the path\n$/],
    [
      "a misspelt field, validated",
      ["validate", "run.yaml", "--set", "algorithm.batchsize=3"],
      /did you mean batchSize\?\n$/,
    ],
    [
      "no such task",
      ["run", "run.yaml", "--set", "tasks[0].name=unknown"],
      /^prepare: --task: no bundled task "unknown"/,
    ],
    [
      "no run to resume",
      ["run", "--resume", "policy"],
      /^--resume policy: this is no run folder: policy\/trainingrun\.yaml: there is no such file/,
    ],
    ["no program", ["exec", "--task", "custom", "no.py"], /^no\.py: there is no such file/],
    [
      "no task folder",
      ["exec", "--task", "policy", "run.yaml"],
      /^--task policy: holds no task\.yaml; make the folder with: longrun prepare TASK\n$/,
    ],
  ];
  for (const [name, args, expected] of cases)
    test(name, async () => {
      const { status, stderr, stdout } = await longrun(args);
      assert.match(stderr, expected);
      assert.equal(status, 2);
      assert.equal(stdout, "");
      assert.equal(existsSync(join(home, "runs")), false);
    });

  test("a port that is in use", async () => {
    const server = createServer();
    await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
    const { port } = server.address() as { port: number };
    const { status, stderr } = await longrun(["run", "run.yaml", "--listen", `127.0.0.1:${port}`]);
    server.close();
    assert.equal(stderr, `--listen 127.0.0.1:${port}: the port is in use; choose another one, or 0 for any free one\n`);
    assert.equal(status, 2);
  });
  test("a learner that refuses what it was given", async () => {
    const { status, stderr } = await longrun(["run", "run.yaml", "--out", "refused"], learner({ exitAtStart: 2 }));
    assert.equal(stderr, "the learner cannot start: the fake learner cannot start: check its input\n");
    assert.equal(status, 2);
    assert.equal(existsSync(join(home, "refused")), false);
  });
});

describe("what cannot be done ends with status 1 and one line", { concurrency: 2 }, () => {
  test("a Python without venv", async () => {
    const { status, stderr } = await longrun(["run", "run.yaml", "--python", "no-venv", "--out", "no-venv"]);
    assert.equal(stderr, "no-venv has no venv module: install it with apt-get install python3-venv\n");
    assert.equal(status, 1);
    assert.equal(existsSync(join(home, "no-venv")), false);
  });
  test("a full disk", { skip: !existsSync("/dev/full") }, async () => {
    const { status, stderr } = await longrun(["run", "run.yaml", "--out", "/dev/full/run"]);
    assert.match(stderr, /^\/dev\/full\/run: /);
    assert.equal(status, 1);
  });
  test("a learner that keeps failing", async () => {
    const { status, stderr } = await longrun(["run", "run.yaml", "--out", "failing"], learner({ exitAtStart: 1 }));
    assert.match(
      stderr,
      /starting it again in 0\.05 s\n.*starting it again in 0\.1 s\nthe learner keeps failing \(status 1\): the fake learner cannot start: check its input; its log is .*learner\.log\n$/s,
    );
    assert.equal(status, 1);
  });
  test("a run that the learner calls failed", async () => {
    const { status, stderr } = await longrun(["run", "run.yaml", "--out", "failed"], learner({ failInIteration: 2 }));
    assert.match(stderr, /^the run failed: the fake learner was told to fail; its log is .*\n$/);
    assert.equal(status, 1);
  });
  test("an actor that keeps failing", async () => {
    const { status, stderr } = await longrun(["run", "run.yaml", "--out", "actor"], {
      ...learner({ iterations: 1000 }),
      ...actor({ exitAtStart: 1 }),
    });
    assert.match(
      stderr,
      /actor-0 keeps failing \(status 1\): this machine can confine no program: neither namespaces nor Landlock\n$/,
    );
    assert.equal(status, 1);
  });
});

describe("a run", { concurrency: 2 }, () => {
  test("shows rows, the comparison, the best program, and ends with status 0", async () => {
    const { status, stdout, stderr } = await longrun(["run", "run.yaml", "--out", "done"], { COLUMNS: "120" });
    assert.equal(stderr, "");
    assert.equal(status, 0);
    const lines = stdout.split("\n");
    assert.equal(lines[0], `Training test on task diamonds (run.yaml) in ${join(home, "done")}`);
    assert.match(lines[1]!, /^iteration {3}valid {2}mean score/);
    assert.deepEqual(
      lines.slice(2, 5).map((line) => line.trim().split(" ")[0]),
      ["1", "2", "3"],
    );
    assert.match(stdout, /valid programs {3}50\.0% {2}100\.0%\nmean MAE/);
    assert.match(stdout, new RegExp(`Best program: ${join(home, "done")}/best/program\\.py \\(MAE 300\\)`));
    assert.match(read("done", "trainingrun.yaml"), /batchSize: 128/);
    assert.match(read("done", "logs/actor-0.log"), /actor-0 looks for 127\.0\.0\.1:\d+/);
    assert.equal(existsSync(join(home, "done", "lock")), false);
  });

  test("--json prints the metrics lines alone", async () => {
    const { status, stdout } = await longrun(["run", "run.yaml", "--out", "json", "--json", "--set", "seed=3"]);
    assert.equal(status, 0);
    assert.equal(stdout, read("json", "metrics.jsonl"));
    assert.match(read("json", "trainingrun.yaml"), /seed: 3/);
  });

  test("--verbose shows the logs", async () => {
    const { stderr } = await longrun(["run", "run.yaml", "--out", "verbose", "--verbose"]);
    assert.match(stderr, /\[actor-0\] actor-0 looks for/);
  });

  test("takes a custom task", async () => {
    const { status, stderr } = await longrun([
      "run",
      "run.yaml",
      "--out",
      "custom-run",
      "--set",
      custom(`${data}, ${grader}`),
    ]);
    assert.equal(stderr, "");
    assert.equal(status, 0);
  });

  test("goes on when the learner is killed, at the same port", async () => {
    const { status, stdout, stderr } = await longrun(
      ["run", "run.yaml", "--out", "killed", "--json"],
      learner({ dieInIteration: 2 }),
    );
    assert.equal(stderr, "learner ended with signal SIGKILL; starting it again in 0.05 s\n");
    assert.equal(status, 0);
    assert.deepEqual(
      stdout
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).iteration),
      [1, 2, 3],
    );
    const { starts, ports } = JSON.parse(read("killed", "fake-state.json"));
    assert.equal(starts, 2);
    assert.match(ports[1], /^127\.0\.0\.1:[1-9]\d*$/);
  });

  test("starts an actor again that ended because it was idle", async () => {
    const { status, stderr } = await longrun(["run", "run.yaml", "--out", "idle"], {
      ...learner({ iterationSeconds: 0.5 }),
      ...actor({ idleSeconds: 0.3 }),
    });
    assert.equal(stderr, "");
    assert.equal(status, 0);
    assert.ok(read("idle", "logs/actor-0.log").trim().split("\n").length > 1);
  });

  test("has as many actors as there is work for", async () => {
    const { status } = await longrun(
      ["run", "run.yaml", "--out", "scaled", "--set", "actors={min: 0, max: 3, slots: 2}"],
      learner({ queued: 3 }),
    );
    assert.equal(status, 0);
    assert.deepEqual(readdirSync(join(home, "scaled", "logs")).sort(), ["actor-0.log", "actor-1.log", "learner.log"]);
  });

  test("is refused while another process has it", async () => {
    const first = new Longrun(["run", "run.yaml", "--out", "twice"], learner({ iterations: 1000 }));
    await first.until("it runs", () => existsSync(join(home, "twice", "metrics.jsonl")));
    const second = await longrun(["run", "--resume", "twice"]);
    assert.equal(
      second.stderr,
      `${join(home, "twice")}: this run is alive (process ${first.child.pid}); stop that one first\n`,
    );
    assert.equal(second.status, 2);
    first.child.kill("SIGTERM");
    assert.equal((await first.finished).status, 130);
  });
});

describe("an interrupted run", { concurrency: 2 }, () => {
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    test(`${signal} stops it in order; it can be resumed`, async () => {
      const mark = `MARK_${signal}`;
      const env = { ...learner({ iterations: 6, iterationSeconds: 0.2 }), [mark]: "1" };
      const run = new Longrun(["run", "run.yaml", "--out", signal], env);
      await run.until("the second row", () => run.stdout.includes("\n        2"));
      run.child.kill(signal);
      const { status, stderr } = await run.finished;
      assert.equal(
        stderr,
        `Stopping; once more stops at once.\nStopped. Go on with: longrun run --resume ${join(home, signal)}\n`,
      );
      assert.equal(status, 130);
      await nothingLeft(mark);

      const resumed = await longrun(["run", "run.yaml", "--resume", signal, "--json"], env);
      assert.equal(resumed.status, 0, resumed.stderr);
      const iterations = read(signal, "metrics.jsonl")
        .trim()
        .split("\n")
        .map((line) => JSON.parse(line).iteration);
      assert.deepEqual(iterations, [1, 2, 3, 4, 5, 6]);
    });

  test("a second signal ends it at once, whatever its processes do", async () => {
    const run = new Longrun(["run", "run.yaml", "--out", "at-once"], {
      ...learner({ iterations: 1000, stubborn: true }),
      ...actor({ stubborn: true }),
      MARK_AT_ONCE: "1",
    });
    await run.until("the first row", () => run.stdout.includes("\n        1"));
    run.child.kill("SIGINT");
    await sleep(100);
    const before = performance.now();
    run.child.kill("SIGINT");
    assert.equal((await run.finished).status, 130);
    assert.ok(performance.now() - before < 2000);
    await nothingLeft("MARK_AT_ONCE");
  });

  test("processes that do not stop are killed", async () => {
    const run = new Longrun(
      [
        "run",
        "run.yaml",
        "--out",
        "stubborn",
        "--set",
        "actors.stopGraceSeconds=0.2",
        "--set",
        "learner.stopGraceSeconds=0.2",
      ],
      { ...learner({ iterations: 1000, stubborn: true }), ...actor({ stubborn: true }), MARK_STUBBORN: "1" },
    );
    await run.until("the first row", () => run.stdout.includes("\n        1"));
    run.child.kill("SIGTERM");
    assert.equal((await run.finished).status, 130);
    await nothingLeft("MARK_STUBBORN");
  });

  test("before it began leaves no run folder", async () => {
    const run = new Longrun(["run", "run.yaml", "--out", "early"], { FAKE_PYTHON_SECONDS: "30", MARK_EARLY: "1" });
    await run.until("the environment is made", () => processesWith("MARK_EARLY").length === 2);
    run.child.kill("SIGINT");
    const { status, stderr } = await run.finished;
    assert.equal(stderr, "Stopping; once more stops at once.\n");
    assert.equal(status, 130);
    assert.equal(existsSync(join(home, "early")), false);
    await nothingLeft("MARK_EARLY");
  });

  test("SIGKILL leaves no process, and the run can be resumed", async () => {
    const env = { ...learner({ iterations: 4, iterationSeconds: 0.3 }), MARK_KILLED: "1" };
    const run = new Longrun(["run", "run.yaml", "--out", "sigkill"], env);
    await run.until("the first row", () => run.stdout.includes("\n        1"));
    assert.ok(processesWith("MARK_KILLED").length >= 4, "this one, learner, actor and its child");
    run.child.kill("SIGKILL");
    await run.finished;
    await nothingLeft("MARK_KILLED");
    const resumed = await longrun(["run", "--resume", "sigkill"], env);
    assert.equal(resumed.status, 0, resumed.stderr);
    assert.match(resumed.stdout, /^Resuming test on task diamonds/);
  });

  test("keeps what a run under way cannot change", async () => {
    const { status, stderr } = await longrun(["run", "--resume", "SIGINT", "--set", "seed=9"]);
    assert.equal(stderr, "--set seed=9: spec.seed cannot change in a resumed run; start a new one\n");
    assert.equal(status, 2);
  });
});

test("no temporary folder is left by orderly ends", () => {
  // The run that was ended by SIGKILL could not remove its own.
  assert.ok(readdirSync(temporary).filter((name) => name.startsWith("longrun-")).length <= 1);
});
