/** Tests the setup of a pod: a supervisor connects to zygotes that listen, each in a container of its own. */
import assert from "node:assert/strict";
import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmdirSync,
  rmSync,
  statSync,
  writeFileSync,
} from "node:fs";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { writeRunCertificates } from "../proto/certificates.ts";
import type { Limits } from "../proto/execution.ts";
import type { IsolationLevel } from "../proto/isolation.ts";
import { messages } from "../proto/service.ts";
import { descendants } from "./descendants.fixture.ts";
import { type ExecutionResult, execute } from "./execution.ts";
import { startIsolated } from "./isolation.ts";
import { Learner } from "./learner.fixture.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { ensurePythonEnvironment } from "./python-env.ts";
import { Sandbox } from "./sandbox.ts";
import { SANDBOX_ID, Sidecar, SUPERVISOR_ID } from "./sidecar.fixture.ts";

const environment = (await ensurePythonEnvironment()).directory;
const folder = mkdtempSync(join(tmpdir(), "lr-actor-"));
chmodSync(folder, 0o755);
writeFileSync(join(folder, "train.csv"), "id,x\n1,2\n");
after(() => rmSync(folder, { recursive: true, force: true }));

const inputs = { small: folder };
const python = (lines: string) => Buffer.from(lines);
const SLEEPER = "import time\nopen('left', 'w').write('x')\nprint('up')\ntime.sleep(600)";

function run(sandbox: Sandbox, program: string, limits: Partial<Limits> = {}): Promise<ExecutionResult> {
  const request = { task: "small", program: python(program), nonce: "", seed: 0 };
  return execute(sandbox, { ...request, limits: { ...DEFAULT_LIMITS, timeoutSeconds: 30, ...limits } });
}

/** Resolves once a program of the sandbox has printed. */
async function runs(sandbox: Sandbox, program: string): Promise<{ result: Promise<unknown> }> {
  const printed = Promise.withResolvers<void>();
  const limits = { ...DEFAULT_LIMITS, timeoutSeconds: 600 };
  const request = { task: "small", program: python(program), limits, seed: 0 };
  const result = sandbox.run(request, { onOutput: () => printed.resolve() });
  await Promise.race([printed.promise, result]);
  return { result: result.catch((error: Error) => error) };
}

async function until(what: string, condition: () => boolean, seconds = 10): Promise<void> {
  const deadline = performance.now() + seconds * 1000;
  while (!condition()) {
    assert.ok(performance.now() < deadline, `not within ${seconds} s: ${what}`);
    await sleep(10);
  }
}

describe("a zygote that listens", () => {
  let sidecar: Sidecar;
  before(async () => {
    sidecar = new Sidecar({ environment, warm: ["numpy"] });
    await sidecar.listening();
  });
  after(() => sidecar.stop());
  const connected = (level: IsolationLevel = "landlock") =>
    Sandbox.start({ socket: sidecar.socket, inputs, level, startSeconds: 20 });

  test("the socket is for its user and the shared group alone", (context) => {
    const { mode, uid, gid } = statSync(sidecar.socket);
    assert.equal(mode & 0o7777, 0o660);
    if (!sidecar.contained) return context.skip("needs root and namespaces for another user");
    assert.deepEqual([uid, gid], [SANDBOX_ID, SUPERVISOR_ID]);
    const connect = `import socket; socket.socket(socket.AF_UNIX).connect(${JSON.stringify(sidecar.socket)})`;
    const as = (id: number) =>
      spawnSync("setpriv", [`--reuid=${id}`, `--regid=${id}`, "--clear-groups", "env", "python3", "-c", connect], {
        encoding: "utf8",
        env: { PATH: "/usr/bin:/bin" },
      });
    const stranger = as(10_003);
    assert.match(stranger.stderr, /PermissionError/);
    const supervisor = as(SUPERVISOR_ID);
    assert.equal(supervisor.status, 0, supervisor.stderr);
  });

  for (const level of ["namespaces", "landlock"] as const)
    test(`the level ${level} is found by trying, and programs run`, async (context) => {
      const found = await startIsolated({ socket: sidecar.socket, inputs, level, startSeconds: 20 }).catch(
        (error: Error) => error.message,
      );
      if (typeof found === "string") return context.skip(found);
      assert.equal(found.sandbox.info.level, level);
      const result = await run(found.sandbox, "print(open('input/train.csv').read())");
      assert.equal(result.terminalOutput.toString(), "id,x\n1,2\n\n", result.detail);
      await found.sandbox.stop();
    });

  test("with no level given the strongest that works is taken, and an impossible one is refused with its reason", async () => {
    const { sandbox } = await startIsolated({ socket: sidecar.socket, inputs, startSeconds: 20 });
    await sandbox.stop();
    const masked = startIsolated({ socket: sidecar.socket, inputs, level: "landlock", landlockAbi: 0 });
    await assert.rejects(masked, /no level works here \(landlock: the kernel has no Landlock/);
  });

  test("programs see nothing of the container's environment; outputs and submissions of a size pass whole", async () => {
    const sandbox = await connected();
    const program = `
import os, sys
print(sorted(name for name in os.environ if "CONTAINER" in name), sys.flags.hash_randomization)
sys.stdout.write("y" * 3_000_000)
with open("submission.csv", "w") as file:
    for _ in range(5):
        file.write("z" * 1_000_000)
`;
    const result = await run(sandbox, program);
    assert.equal(result.outcome, "completed", result.detail);
    assert.match(result.terminalOutput.toString(), /^\[\] 0\ny/);
    assert.equal(result.outputBytes, 3_000_005);
    assert.equal(result.submission?.toString(), "z".repeat(5_000_000));
    await sandbox.stop();
  });

  test("one connection at a time: while one is served there is no socket", async () => {
    const sandbox = await connected();
    assert.equal(existsSync(sidecar.socket), false);
    await assert.rejects(
      Sandbox.start({ socket: sidecar.socket, inputs, level: "landlock", startSeconds: 0.1 }),
      /nothing listens at .*control.sock after 0.1 s \(ENOENT.*look at the logs and the state/,
    );
    await sandbox.stop();
    await sidecar.listening();
  });

  test("the supervisor hangs up: what runs dies, scratch is emptied, the same process accepts anew", async () => {
    const { pid } = sidecar;
    const sandbox = await connected();
    const { result } = await runs(sandbox, SLEEPER);
    assert.deepEqual(readdirSync(join(sidecar.scratch, "scratch")).sort(), ["input", "left"]);
    await sandbox.stop();
    assert.match(String(await result), /it was stopped/);
    await sidecar.listening();
    assert.deepEqual(descendants(pid), []);
    assert.deepEqual(readdirSync(sidecar.scratch), []);
    const start = performance.now();
    const again = await connected();
    assert.ok(performance.now() - start < 1000, "it imported its packages again");
    assert.equal((await run(again, "print(1)")).outcome, "completed");
    assert.equal(sidecar.pid, pid);
    await again.stop();
    await sidecar.listening();
  });

  test("a zygote that hangs is given up and replaced all the same", async () => {
    const sandbox = await connected();
    await run(sandbox, "pass");
    for (const pid of descendants(sidecar.pid)) process.kill(pid, "SIGSTOP");
    await sandbox.stop();
    await sidecar.listening();
    assert.deepEqual(descendants(sidecar.pid), []);
  });

  test("orphans are reaped, and die with the connection", async () => {
    const sandbox = await connected("none");
    const orphans = (seconds: number) => `
import os, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        for descriptor in range(3): os.close(descriptor)
        time.sleep(${seconds})
    os._exit(0)
os.wait()
`;
    assert.equal((await run(sandbox, orphans(0.05))).outcome, "completed");
    await until("a zombie is reaped", () => descendants(sidecar.pid).length === 2);
    assert.equal((await run(sandbox, orphans(600))).outcome, "completed");
    assert.equal(descendants(sidecar.pid).length, 3);
    await sandbox.stop();
    await sidecar.listening();
    assert.deepEqual(descendants(sidecar.pid), []);
  });

  test("what is no protocol ends the connection and nothing else", async () => {
    for (const nonsense of ["garbage that is no frame at all", "C\0\0\0\x02{}", ""]) {
      const madeAt = () => statSync(sidecar.socket, { bigint: true, throwIfNoEntry: false })?.ctimeNs;
      const before = madeAt();
      const socket = connect(sidecar.socket);
      const closed = new Promise((resolve) => socket.on("error", () => {}).once("close", resolve));
      await once(socket, "connect");
      socket.write(nonsense);
      if (nonsense === "") socket.destroy();
      await closed;
      // If we hung up at once, the socket may still be the one that we connected to.
      await until("it listens anew", () => ![undefined, before].includes(madeAt()));
    }
    assert.equal(sidecar.log.includes("BrokenPipeError"), false);
  });

  test("SIGKILL while a program runs: the sandbox is lost; the next start finds its scratch empty", async () => {
    const sandbox = await connected();
    const { result } = await runs(sandbox, SLEEPER);
    const before = descendants(sidecar.pid);
    await sidecar.kill("SIGKILL");
    assert.match(String(await result), /its connection (ended|broke)/);
    assert.equal(sandbox.alive, false);
    await until("its processes are gone", () => before.every((pid) => !existsSync(`/proc/${pid}`)));
    assert.deepEqual(readdirSync(join(sidecar.scratch, "scratch")).sort(), ["input", "left"]);
    sidecar.start();
    await sidecar.listening();
    assert.deepEqual(readdirSync(sidecar.scratch), []);
  });

  test("SIGTERM ends it at once, also while a program runs", async () => {
    const sandbox = await connected();
    const { result } = await runs(sandbox, `import signal\nsignal.signal(15, signal.SIG_IGN)\n${SLEEPER}`);
    const before = descendants(sidecar.pid);
    const seconds = await sidecar.kill("SIGTERM");
    assert.ok(seconds < 2, `it took ${seconds} s`);
    assert.match(String(await result), /its connection (ended|broke)/);
    await until("its processes are gone", () => before.every((pid) => !existsSync(`/proc/${pid}`)));
    sidecar.start();
    await sidecar.listening();
    assert.ok((await sidecar.kill("SIGTERM")) < 2, "while it waits for a supervisor");
  });
});

describe("a supervisor at a hostile socket", () => {
  const cases: [name: string, bytes: Buffer, error: RegExp][] = [
    ["a frame too large", Buffer.from("H\xff\xff\xff\xff", "latin1"), /./],
    ["no hello", Buffer.from("S\0\0\0\0", "latin1"), /unexpected first frame|JSON/],
    [
      "another level than asked for",
      frame('{"level":"none","landlockAbi":7,"residentBytes":1}'),
      /was to apply landlock/,
    ],
    ["amounts that are none", frame('{"level":"landlock","landlockAbi":-1,"residentBytes":1}'), /not an amount/],
    ["an error", frame('{"error":"no"}'), /^ActorError: no$/],
  ];
  for (const [name, bytes, error] of cases)
    test(name, async () => {
      const socket = join(folder, "hostile.sock");
      const server = createServer((connection) => connection.on("error", () => {}).write(bytes)).listen(socket);
      await once(server, "listening");
      try {
        await assert.rejects(Sandbox.start({ socket, inputs, level: "landlock", startSeconds: 5 }), error);
      } finally {
        server.close();
      }
    });

  test("a link, or a file, in the socket's place is not followed", async () => {
    const path = join(folder, "not-a-socket");
    writeFileSync(path, "");
    const start = Sandbox.start({ socket: path, inputs, level: "landlock", startSeconds: 0.05 });
    await assert.rejects(start, /not a socket/);
  });
});

function frame(text: string): Buffer {
  const head = Buffer.from("H\0\0\0\0", "latin1");
  head.writeUInt32BE(text.length, 1);
  return Buffer.concat([head, Buffer.from(text)]);
}

describe("the container's memory limit", () => {
  let group: string | undefined;
  before(() => {
    group = memoryGroup(700 << 20);
  });
  after(() => group && rmdirSync(group));

  test("a program is killed before it fills the container, whatever its own limit says", async (context) => {
    if (!group) return context.skip("no control group can be made: needs root and a writable memory controller");
    const sidecar = new Sidecar({ environment, warm: ["numpy"], controlGroup: group });
    try {
      if (!sidecar.contained) return context.skip("needs root and namespaces");
      await sidecar.listening();
      const sandbox = await Sandbox.start({ socket: sidecar.socket, inputs, level: "landlock", startSeconds: 20 });
      const { memoryBytes = 0 } = sandbox.info;
      assert.ok(memoryBytes > 300 << 20 && memoryBytes < 700 << 20, `${memoryBytes}`);
      const { pid } = sidecar;
      // bytes, not bytearray: if memory is short for a bytearray's content, CPython 3.11 prints a line of its own ("deallocated bytearray
      // object has exported buffers", a field that was never set), up to 4 MiB in 3 s if the watch is late.
      const stubborn = `
kept = []
while True:
    try: kept.append(b"x" * (4 << 20))
    except MemoryError: pass`;
      for (const program of ["kept = []\nwhile True: kept.append(b'x' * (16 << 20))", stubborn]) {
        const result = await run(sandbox, program, { memoryBytes: 8 * 2 ** 30, timeoutSeconds: 3 });
        assert.ok(["outOfMemory", "timedOut"].includes(result.outcome), `${result.outcome} ${result.detail}`);
        assert.ok(result.peakMemoryBytes > memoryBytes / 2 && result.peakMemoryBytes < 700 << 20);
      }
      assert.equal(sidecar.pid, pid);
      assert.ok(sandbox.alive, "the kernel killed the container");
      await sandbox.stop();
    } finally {
      await sidecar.stop();
    }
  });

  test("a container too small for programs says so", async (context) => {
    const small = memoryGroup(80 << 20);
    if (!small) return context.skip("no control group can be made");
    const sidecar = new Sidecar({ environment, warm: [], controlGroup: small });
    try {
      if (!sidecar.contained) return context.skip("needs root and namespaces");
      await sidecar.listening();
      const start = Sandbox.start({ socket: sidecar.socket, inputs, level: "landlock", startSeconds: 20 });
      await assert.rejects(start, /memory limit of 80 MiB leaves programs .*raise it \(spec.actors.sandboxResources\)/);
    } finally {
      await sidecar.stop();
      rmdirSync(small);
    }
  });

  const cgroup = (files: Record<string, string>, membership: string, expression: string) => {
    const root = mkdtempSync(join(folder, "cgroup-"));
    for (const [path, text] of Object.entries(files)) {
      mkdirSync(join(root, path, ".."), { recursive: true });
      writeFileSync(join(root, path), text);
    }
    writeFileSync(join(root, "membership"), membership);
    const code = `
import sys; sys.path.insert(0, ${JSON.stringify(join(import.meta.dirname, "sandbox"))})
import cgroup; cgroup.ROOT, cgroup.MEMBERSHIP = ${JSON.stringify(root)}, ${JSON.stringify(join(root, "membership"))}
cgroup.RESERVE_BYTES = cgroup.RESERVE_SHARE = 0
print(${expression})`;
    return spawnSync(join(environment, "bin", "python"), ["-B", "-c", code], { encoding: "utf8" });
  };
  const stat2 = "anon 10\nfile 900\nshmem 5\nkernel_stack 1\npagetables 2\nslab_unreclaimable 3\nsock 4\n";
  const cases: [string, Record<string, string>, string, string, string][] = [
    [
      "v2",
      { "memory.max": "1000\n", "memory.stat": stat2 },
      "0::/\n",
      "cgroup.memory_for_programs(100)",
      "(875, 1000)",
    ],
    [
      "v2 below",
      { "a/memory.max": "1000\n", "a/memory.stat": stat2 },
      "0::/a\n",
      "cgroup.memory_for_programs(0)[1]",
      "1000",
    ],
    ["v2 without a limit", { "memory.max": "max\n" }, "0::/\n", "cgroup.memory_for_programs(0)", "None"],
    [
      "v1, seen as the root",
      { "memory/memory.limit_in_bytes": "1000\n", "memory/memory.stat": "cache 900\nrss 10\nshmem 5\n" },
      "4:memory:/kubepods/x\n0::/\n",
      "cgroup.memory_for_programs(100)",
      "(885, 1000)",
    ],
    [
      "v1 without a limit",
      { "memory/memory.limit_in_bytes": "9223372036854771712\n" },
      "4:memory:/\n0::/\n",
      "cgroup.memory_for_programs(0)",
      "None",
    ],
    ["no control group", {}, "0::/\n", "cgroup.memory_for_programs(0), cgroup.cpus()", "None None"],
    ["v2 processors", { "cpu.max": "350000 100000\n" }, "0::/\n", "cgroup.cpus()", "3"],
    ["v2 part of one", { "cpu.max": "50000 100000\n" }, "0::/\n", "cgroup.cpus()", "1"],
    ["v2 all of them", { "cpu.max": "max 100000\n" }, "0::/\n", "cgroup.cpus()", "None"],
    [
      "v1 processors",
      { "cpu/cpu.cfs_quota_us": "200000\n", "cpu/cpu.cfs_period_us": "100000\n" },
      "3:cpu,cpuacct:/x\n",
      "cgroup.cpus()",
      "2",
    ],
    ["v1 all of them", { "cpu/cpu.cfs_quota_us": "-1\n" }, "3:cpu:/x\n", "cgroup.cpus()", "None"],
  ];
  for (const [name, files, membership, expression, expected] of cases)
    test(name, () => {
      const { stdout, stderr } = cgroup(files, membership, expression);
      assert.equal(stdout.trim(), expected, stderr);
    });
});

/** Makes a control group with that limit, if this machine allows it. */
function memoryGroup(bytes: number): string | undefined {
  for (const [root, file] of [
    ["/sys/fs/cgroup/memory", "memory.limit_in_bytes"],
    ["/sys/fs/cgroup", "memory.max"],
  ] as const)
    try {
      const path = mkdtempSync(join(root, "lr-test-"));
      try {
        chmodSync(path, 0o755);
        if (!existsSync(join(path, file))) throw new Error("no such controller");
        writeFileSync(join(path, file), String(bytes));
        return path;
      } catch {
        rmdirSync(path);
      }
    } catch {
      // Not possible on this machine.
    }
  return undefined;
}

describe("the actor of a pod", () => {
  const ends: (() => unknown)[] = [];
  let tls: Awaited<ReturnType<typeof writeRunCertificates>>;
  before(async () => {
    tls = await writeRunCertificates(join(folder, "tls"), { validSeconds: 600 });
  });
  afterEach(async () => {
    for (const end of ends.splice(0)) await end();
  });

  async function startActor(sandboxes: string, args: string[] = []) {
    const learner = new Learner(tls.learner);
    await learner.start();
    const actor = fork(
      join(import.meta.dirname, "main.ts"),
      [
        ...["--learner", `127.0.0.1:${learner.port}`, "--tls", await tls.actor("actor-0"), "--name", "actor-0"],
        ...["--sandboxes", sandboxes, "--inputs", `small=${folder}`, "--isolation", "landlock", ...args],
      ],
      { stdio: ["ignore", "ignore", "pipe", "ipc"], env: { ...process.env, LOG_LEVEL: "info" } },
    );
    let log = "";
    actor.stderr!.setEncoding("utf8").on("data", (text: string) => {
      log += text;
    });
    ends.push(() => {
      actor.kill("SIGKILL");
      learner.kill();
    });
    return { learner, actor, log: () => log };
  }
  const exitOf = async (actor: ChildProcess) => {
    if (actor.exitCode === null && actor.signalCode === null) await once(actor, "exit");
    return actor.exitCode ?? actor.signalCode;
  };
  const limits = { timeoutSeconds: 600, memoryBytes: 2 ** 30, scratchBytes: 2 ** 26 };

  test("a sandbox that is killed loses its attempt with the slot, takes no lease until it is back, then works", async () => {
    const sidecar = new Sidecar({ environment, warm: [] });
    const other = new Sidecar({ environment, warm: [], sandboxes: sidecar.sandboxes, slot: 1 });
    ends.push(
      () => sidecar.stop(),
      () => other.stop(),
    );
    const { learner, actor, log } = await startActor(sidecar.sandboxes, ["--slots", "2"]);
    const hello = await learner.next("hello", 1, () => true, 60);
    assert.deepEqual([hello.isolationLevel, hello.slots], ["landlock", 2], log());
    assert.equal((await learner.next("ready")).freeSlots, 2);

    const task = "small";
    const attempt = learner.lease("e1", { task, program: python(SLEEPER), limits });
    await learner.next("heartbeat", 1, (message) => (message.heartbeat?.running?.[0]?.elapsedSeconds ?? 0) > 0.1, 20);
    await sidecar.kill("SIGKILL");
    const lost = await learner.next("result", 1, () => true, 20);
    assert.deepEqual([lost.outcome, lost.slot], [messages.Outcome.LOST, 0]);
    assert.match(lost.detail, /its connection/);
    learner.send({ ack: { attempt, accepted: true, reason: "accepted" } });
    await until("one slot is offered", () => lastReady(learner) === 1);

    // The other slot works meanwhile. The end of an idle sandbox is noticed, too.
    const second = learner.lease("e2", { task, program: python("print(2)"), limits });
    const done = await learner.next("result", 2, () => true, 20);
    assert.deepEqual([done.outcome, done.slot], [messages.Outcome.COMPLETED, 1]);
    learner.send({ ack: { attempt: second, accepted: true, reason: "accepted" } });
    await other.kill("SIGKILL");
    await until("no slot is offered", () => lastReady(learner) === 0);

    sidecar.start();
    other.start();
    await until("both are offered again", () => lastReady(learner) === 2, 30);
    learner.lease("e3", { task, program: python("print(open('input/train.csv').read())"), limits });
    assert.equal((await learner.next("result", 3, () => true, 20)).outcome, messages.Outcome.COMPLETED);
    actor.kill("SIGTERM");
    learner.send({ ack: { attempt: { execution: "e3", number: 1, fence: "7" }, accepted: true, reason: "accepted" } });
    await learner.next("drained", 1, () => true, 10);
    assert.equal(await exitOf(actor), 0);
    await sidecar.listening(); // ready for the next supervisor
  });

  test("a slot that stays away: the actor finishes what it has and fails, with the slot named", async () => {
    const sidecar = new Sidecar({ environment, warm: [] });
    ends.push(() => sidecar.stop());
    const { learner, actor, log } = await startActor(sidecar.sandboxes, ["--restart-seconds", "1"]);
    await learner.next("ready", 1, () => true, 60);
    await sidecar.kill("SIGKILL");
    assert.equal(await exitOf(actor), 1);
    assert.match(log(), /nothing listens at [^"]*slot-0\/control.sock after/);
    assert.equal(learner.count("drained"), 1);
  });

  test("idle: it stays, the controller decides how many actors there are", async () => {
    const sidecar = new Sidecar({ environment, warm: [] });
    ends.push(() => sidecar.stop());
    const { learner, actor } = await startActor(sidecar.sandboxes);
    learner.welcome = { ...learner.welcome, idleSeconds: 0.2 };
    await learner.next("ready", 1, () => true, 60);
    await sleep(600);
    assert.equal(learner.count("drained"), 0);
    actor.kill("SIGTERM");
    assert.equal(await exitOf(actor), 0);
  });

  test("sidecars that never appear: it gives up in time and says where to look", async () => {
    const { actor, log } = await startActor(join(folder, "nowhere"), ["--start-seconds", "0.2"]);
    assert.equal(await exitOf(actor), 1);
    assert.match(log(), /nothing listens at [^"]*nowhere\/slot-0\/control.sock after 0.2 s/);
  });

  test("SIGTERM while it waits for sidecars ends it at once", async () => {
    const { actor } = await startActor(join(folder, "nowhere"));
    // Wait until it has started and idles: before that, Node would simply end.
    const processorTicks = () => readFileSync(`/proc/${actor.pid}/stat`, "utf8").split(" ").slice(13, 15).join();
    for (let before = ""; before !== processorTicks(); await sleep(500)) before = processorTicks();
    const start = performance.now();
    actor.kill("SIGTERM");
    assert.equal(await exitOf(actor), 0);
    assert.ok(performance.now() - start < 1000);
  });

  const cases: [string, string[], RegExp][] = [
    ["an input without a path", ["--inputs", "small"], /--inputs: \\"small\\" is not TASK=PATH/],
    ["a relative input", ["--inputs", "small=data"], /absolute path/],
    ["no inputs", ["--inputs", ""], /--inputs is missing/],
    ["what is of one machine", ["--python", "/usr/bin/python3"], /--python does not go with --sandboxes/],
    ["modules, which containers import", ["--warm", "numpy"], /--warm does not go with --sandboxes/],
    ["no time", ["--restart-seconds", "0"], /--restart-seconds is 0/],
  ];
  for (const [name, args, message] of cases)
    test(`bad input: ${name}: one line, exit status 2`, async () => {
      const { actor, log } = await startActor(folder, args);
      assert.equal(await exitOf(actor), 2);
      assert.match(log(), message);
      assert.equal(log().trim().split("\n").length, 1);
    });
});

function lastReady(learner: Learner): number | undefined {
  return learner.received.findLast((message) => message.message === "ready")?.ready?.freeSlots ?? undefined;
}
