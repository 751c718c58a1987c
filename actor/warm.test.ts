/** What sandboxes import beforehand: packages that somebody installed and that a zygote can live with, no others. */
import assert from "node:assert/strict";
import { execFileSync, fork } from "node:child_process";
import { once } from "node:events";
import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, describe, test } from "node:test";
import { writeRunCertificates } from "../proto/certificates.ts";
import { messages } from "../proto/service.ts";
import { execute } from "./execution.ts";
import { Learner } from "./learner.fixture.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { ensurePythonEnvironment } from "./python-env.ts";
import { Sandbox } from "./sandbox.ts";
import { Sidecar } from "./sidecar.fixture.ts";
import { Warm } from "./warm.ts";

const folder = mkdtempSync(join(tmpdir(), "lr-warm-"));
chmodSync(folder, 0o755);
after(() => rmSync(folder, { recursive: true, force: true }));
const environment = join(folder, "environment");
await makeEnvironment({
  tiny: "",
  "tiny/part": "",
  threads: "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n",
  dies: "import os\nos._exit(3)\n",
  crashes: "import ctypes\nctypes.string_at(0)\n",
  fails: "raise ValueError('not here')\n",
  needs: "import something_else\n",
  forks: "import os, time\nif os.fork() == 0:\n    time.sleep(600)\n",
  opens: "file = open('/dev/null')\n",
  writes: "import os\nopen(os.path.join(os.environ['MPLCONFIGDIR'], 'fonts'), 'w').write('x')\n",
  large: "memory = [bytes(4096) for _ in range(140_000)]\n",
  joblib: "import threading, time\nthreading.Thread(target=time.sleep, args=(600,), daemon=True).start()\n", // of WARM
  tests: "raise SystemExit('tests were run')\n",
  slow: "import time\ntime.sleep(0.5)\n",
  numpy: "class ones:\n    def __init__(self, n):\n        self.sum = lambda: n\n", // all that isolation.ts asks of it
});

/** Without pip or any other package: a few files, and the interpreter of the actors' environment. */
async function makeEnvironment(packages: Record<string, string>): Promise<void> {
  const { python } = await ensurePythonEnvironment();
  const version = execFileSync(python, ["-c", "import sys; print('python%d.%d' % sys.version_info[:2])"]);
  const site = join(environment, "lib", version.toString().trim(), "site-packages");
  mkdirSync(join(environment, "bin"), { recursive: true });
  const interpreter = realpathSync(python);
  symlinkSync(interpreter, join(environment, "bin", "python"));
  writeFileSync(join(environment, "pyvenv.cfg"), `home = ${dirname(interpreter)}\n`);
  for (const [name, text] of Object.entries(packages)) {
    mkdirSync(join(site, name), { recursive: true });
    writeFileSync(join(site, name, "__init__.py"), text);
  }
}

const run = async (sandbox: Sandbox, program: string) => {
  const limits = { ...DEFAULT_LIMITS, timeoutSeconds: 30 };
  const result = await execute(sandbox, { task: "t", program: Buffer.from(program), nonce: "", limits, seed: 0 });
  assert.equal(result.outcome, "completed", `${result.detail} ${result.terminalOutput}`);
  return result.terminalOutput.toString().trim();
};
const IS_WARM = "import sys\nprint('tiny' in sys.modules)";

for (const level of ["namespaces", "landlock"] as const)
  describe(`a sandbox at ${level}`, () => {
    const space = join(folder, level);
    async function start(warm: string[]): Promise<Sandbox | string> {
      const python = join(environment, "bin", "python");
      const options = { python, space, inputs: {}, level, warm, startSeconds: 60 };
      return Sandbox.start(options).catch((error: Error) => error.message);
    }

    test("takes installed modules, refuses those that it could not live with, and works", async (context) => {
      const bad = ["threads", "dies", "crashes", "fails", "needs", "forks", "opens", "large"];
      const sandbox = await start(["tiny", ...bad, "tiny.part", "tiny.none", "nothing", "writes"]);
      if (typeof sandbox === "string") return context.skip(sandbox);
      try {
        assert.deepEqual(sandbox.info.warm, ["tiny", "tiny.part", "writes"]);
        const reasons = {
          threads: /leaves threads/,
          dies: /ends the process \(exit status 3\)/,
          crashes: /ends the process \(signal 11\)/,
          fails: /ValueError: not here/,
          needs: /it needs something_else/,
          forks: /leaves processes/,
          opens: /leaves open files/,
          large: /MiB are imported, and 512 are allowed/,
        };
        assert.deepEqual(Object.keys(sandbox.info.refused), Object.keys(reasons));
        for (const [name, reason] of Object.entries(reasons)) assert.match(sandbox.info.refused[name]!, reason);
        assert.equal(await run(sandbox, IS_WARM), "True");
        assert.equal(
          await run(sandbox, "import sys\nprint(set(sys.modules) & {'threads', 'fails', 'opens'})"),
          "set()",
        );
        assert.equal(await run(sandbox, "import os\nprint(os.listdir(os.environ['TMPDIR']))"), "[]");
        assert.equal(await run(sandbox, "import threads, threading\nprint(threading.active_count())"), "2");
      } finally {
        await sandbox.stop();
      }
    });

    test("where one of those that programs use most leaves threads it begins anew, and tries them all", async (context) => {
      const sandbox = await start(["tiny", "joblib"]);
      if (typeof sandbox === "string") return context.skip(sandbox);
      try {
        assert.deepEqual(sandbox.info.warm, ["tiny"]);
        assert.deepEqual(sandbox.info.refused, { joblib: "it leaves threads behind" });
        assert.equal(await run(sandbox, IS_WARM), "True");
      } finally {
        await sandbox.stop();
      }
    });

    test("hostile names are nothing: no path, nothing of a program, nothing of Python, no tests", async (context) => {
      mkdirSync(join(space, "scratch"), { recursive: true });
      writeFileSync(join(space, "scratch", "evil.py"), `open(${JSON.stringify(join(folder, "breach"))}, "w")\n`);
      const scratch = join(space, "scratch");
      const names = ["evil", ".evil", `${scratch}/evil`, "scratch.evil", "../evil", "antigravity", "os", "__main__"];
      const more = ["tests", "tiny.tests", "tiny.__main__", "tiny;import evil", "--listen", "", "zygote", "watch", "é"];
      const sandbox = await start([...names, ...more, "a".repeat(3000)]);
      if (typeof sandbox === "string") return context.skip(sandbox);
      try {
        assert.deepEqual([sandbox.info.warm, sandbox.info.refused], [[], {}]);
        assert.equal(await run(sandbox, "import sys\nprint({'evil', 'antigravity'} & set(sys.modules))"), "set()");
        assert.throws(() => realpathSync(join(folder, "breach")), /ENOENT/);
      } finally {
        await sandbox.stop();
      }
    });
  });

test("whether a package is warm or not, a program draws the same numbers and has the same environment", async (context) => {
  const { python } = await ensurePythonEnvironment();
  const program = `
import os, sys
print("numpy" in sys.modules, file=sys.stderr)
import numpy
print(numpy.random.rand(), sorted(os.environ.items()))`;
  const seen: string[] = [];
  for (const warm of [[], ["numpy"]]) {
    const options = { python, space: join(folder, "numbers"), inputs: {}, level: "landlock" as const, warm };
    const sandbox = await Sandbox.start({ ...options, startSeconds: 60 }).catch((error: Error) => error.message);
    if (typeof sandbox === "string") return context.skip(sandbox);
    seen.push(await run(sandbox, program));
    await sandbox.stop();
  }
  const [cold, warmed] = seen.map((text) => text.split("\n"));
  assert.deepEqual([cold![0], warmed![0]], ["False", "True"]);
  assert.equal(cold![1], warmed![1]);
  assert.match(cold![1]!, /'JOBLIB_MULTIPROCESSING', '0'/); // one process: read when joblib is imported, here or in the zygote
});

describe("a sandbox that listens", () => {
  test("begins anew with what it is told, as the same process, and drops it again", async () => {
    const sidecar = new Sidecar({ environment, warm: [] });
    const start = (warm?: string[]) =>
      Sandbox.start({ socket: sidecar.socket, inputs: {}, level: "landlock", warm, startSeconds: 60 });
    try {
      await sidecar.listening();
      const { pid } = sidecar;
      const seen: unknown[] = [];
      for (const warm of [["tiny", "dies", "joblib"], undefined, []]) {
        const sandbox = await start(warm);
        seen.push([await run(sandbox, IS_WARM), sandbox.info.warm, Object.keys(sandbox.info.refused)]);
        await sandbox.stop();
        await sidecar.listening();
      }
      const warm = ["True", ["tiny"], ["dies", "joblib"]];
      assert.deepEqual(seen, [warm, warm, ["False", [], []]]);
      assert.equal(sidecar.pid, pid);
    } finally {
      await sidecar.stop();
    }
  });
});

test("an actor that is told renews slot by slot; no duration has any of it, and what runs goes on", async () => {
  const tls = await writeRunCertificates(join(folder, "tls"), { validSeconds: 600 });
  const learner = new Learner(tls.learner);
  await learner.start();
  const first = new Sidecar({ environment, warm: [] });
  const second = new Sidecar({ environment, warm: [], sandboxes: first.sandboxes, slot: 1 });
  const at = [
    "--learner",
    `127.0.0.1:${learner.port}`,
    "--tls",
    await tls.actor("actor-0"),
    "--name",
    "actor-0",
    "--slots",
    "2",
  ];
  const place = ["--sandboxes", first.sandboxes, "--inputs", `t=${environment}`, "--isolation", "landlock"];
  const actor = fork(join(import.meta.dirname, "main.ts"), [...at, ...place], {
    ...{ stdio: ["ignore", "ignore", "pipe", "ipc"], env: { ...process.env, LOG_LEVEL: "info" } },
  });
  let log = "";
  actor.stderr!.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  try {
    const isWarm = Buffer.from("import sys\nprint('slow' in sys.modules)");
    const limits = { timeoutSeconds: 60, memoryBytes: 2 ** 30, scratchBytes: 2 ** 26 };
    const done = async (execution: string) => {
      const result = await learner.next("result", 1, ({ result }) => result?.attempt?.execution === execution, 60);
      learner.send({ ack: { attempt: result.attempt, accepted: true, reason: "accepted" } });
      assert.equal(result.outcome, messages.Outcome.COMPLETED, `${result.detail} ${log}`);
      return { output: result.terminalOutput.toString().trim(), slot: result.slot, seconds: result.durationSeconds };
    };
    await learner.next("ready", 1, () => true, 60);
    const sleeper = `import os, sys, time
while not os.path.exists("input/stop"): time.sleep(0.05)
print("slow" in sys.modules)`;
    learner.lease("runs", { program: Buffer.from(sleeper), limits });
    await learner.next("heartbeat", 1, ({ heartbeat }) => (heartbeat?.running?.[0]?.elapsedSeconds ?? 0) > 0.1, 30);
    learner.send({ warm: { modules: ["slow", "dies"] } });
    await learner.next("ready", 1, ({ ready }) => ready?.freeSlots === 0, 20); // the other slot is away
    const leasedAt = performance.now();
    learner.lease("comes", { program: isWarm, limits });
    const came = await done("comes");
    const waited = (performance.now() - leasedAt) / 1000;
    writeFileSync(join(environment, "stop"), "");
    const ran = await done("runs");
    assert.deepEqual([came.output, ran.output], ["True", "False"]);
    assert.notEqual(came.slot, ran.slot);
    // Two imports of half a second each, one of them to try it.
    assert.ok(
      waited > 0.9 && came.seconds < 0.5,
      `${waited} s from lease to result, ${came.seconds} s of them measured`,
    );
    assert.ok(ran.seconds > waited);
    // Its slot has its turn when it is done.
    await learner.next("ready", 2, ({ ready }) => ready?.freeSlots === 2, 60);
    for (const execution of ["a", "b"]) learner.lease(execution, { program: isWarm, limits });
    assert.deepEqual([(await done("a")).output, (await done("b")).output], ["True", "True"]);
    const told = log.split("\n").filter((line) => /not imported beforehand/.test(line));
    assert.equal(told.length, 1, log);
    assert.match(told[0]!, /"module":"dies","reason":"it ends the process/);
    assert.match(log, /"modules":\["slow"\],"source":"learned from programs"/);
    actor.kill("SIGTERM");
    await once(actor, "exit");
    assert.equal(actor.exitCode, 0);
  } finally {
    actor.kill("SIGKILL");
    learner.kill();
    await Promise.all([first.stop(), second.stop()]);
  }
});

describe("what an actor's sandboxes are to import", () => {
  const lines: [string, object][] = [];
  const log = {
    info: (fields: object, message: string) => lines.push([message, fields]),
    warn: (fields: object, message: string) => lines.push([message, fields]),
  };
  const said = () => lines.splice(0).map(([message]) => message);

  test("the learner's word, less what was refused; each is told once", () => {
    const warm = new Warm(undefined, log);
    assert.equal(warm.modulesOf(0), undefined);
    warm.started(0, { warm: ["numpy"], refused: {} });
    assert.equal(warm.learn(["a", "b"]), true);
    assert.equal(warm.learn(["b", "a"]), false);
    said();
    for (const slot of [0, 1]) warm.started(slot, { warm: ["a"], refused: { b: "it leaves threads behind" } });
    assert.deepEqual(warm.modulesOf(0), ["a"]);
    assert.deepEqual(warm.imported, ["a"]);
    assert.equal(said().length, 2);
    assert.equal(warm.learn([]), true);
    assert.deepEqual(warm.modulesOf(0), []);
  });

  test("a slot whose sandbox does not start with it is tried without, then with it again", () => {
    const warm = new Warm(undefined, log);
    warm.failed(0); // nothing was learned yet
    warm.learn(["a"]);
    assert.deepEqual(warm.modulesOf(0), ["a"]);
    warm.failed(0);
    assert.deepEqual([warm.modulesOf(0), warm.modulesOf(1)], [undefined, ["a"]]);
    warm.failed(0);
    assert.deepEqual(warm.modulesOf(0), ["a"]);
    warm.failed(0);
    warm.started(0, { warm: [], refused: {} });
    assert.deepEqual(warm.modulesOf(0), ["a"]); // when it is renewed the next time
    assert.equal(said().filter((line) => /tried without/.test(line)).length, 2);
  });

  test("a fixed list stays", () => {
    const warm = new Warm(["x"], log);
    assert.equal(warm.learn(["a"]), false);
    warm.failed(0);
    assert.deepEqual(warm.modulesOf(0), ["x"]);
  });
});
