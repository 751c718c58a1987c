/** Tests the actor as a process, against the test's own learner. */
import assert from "node:assert/strict";
import { type ChildProcess, fork, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { inflateSync } from "node:zlib";
import { writeRunCertificates } from "../proto/certificates.ts";
import { messages } from "../proto/service.ts";
import { descendants } from "./descendants.fixture.ts";
import { Learner } from "./learner.fixture.ts";
import { ensurePythonEnvironment } from "./python-env.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-actor-"));
const tls = await writeRunCertificates(join(folder, "tls"), { validSeconds: 600 });
const actorTls = await tls.actor("actor-0");
const environment = await ensurePythonEnvironment();
const task = join(folder, "small");
mkdirSync(join(task, "prepared", "public"), { recursive: true });
writeFileSync(join(task, "task.yaml"), "name: small\n");
writeFileSync(join(task, "prepared", "public", "train.csv"), "id,x\n1,2\n");
after(() => rmSync(folder, { recursive: true, force: true }));

const ends: (() => void)[] = [];
afterEach(() => {
  for (const end of ends.splice(0)) end();
});

let actors = 0;

async function startActor(
  args: string[] = [],
  { execArgv = [] as string[], scratch = join(folder, `scratch-${actors++}`), env = {} } = {},
) {
  const learner = new Learner(tls.learner);
  await learner.start();
  const fixed = [
    "--learner",
    `127.0.0.1:${learner.port}`,
    "--tls",
    actorTls,
    "--name",
    "actor-0",
    "--scratch",
    scratch,
  ];
  const actor = fork(
    join(import.meta.dirname, "main.ts"),
    [...fixed, "--task-dir", folder, "--python", environment.directory, "--warm", "numpy", ...args],
    { stdio: ["ignore", "ignore", "pipe", "ipc"], env: { ...process.env, LOG_LEVEL: "info", ...env }, execArgv },
  );
  let log = "";
  actor.stderr!.setEncoding("utf8").on("data", (text: string) => {
    log += text;
  });
  ends.push(() => {
    actor.kill("SIGKILL");
    learner.kill();
  });
  return { learner, actor, scratch, log: () => log };
}

const exitOf = async (actor: ChildProcess) => {
  if (actor.exitCode === null && actor.signalCode === null) await once(actor, "exit");
  return actor.exitCode ?? actor.signalCode;
};

/** Returns processes whose own or whose parent's command line contains `text`. */
function processesOf(text: string): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && Number(name) !== process.pid)
    .filter((name) => {
      try {
        return (
          readFileSync(`/proc/${name}/environ`, "utf8").includes(text) ||
          readFileSync(`/proc/${name}/cmdline`, "utf8").includes(text)
        );
      } catch {
        return false;
      }
    })
    .map(Number);
}

async function gone(pids: number[]): Promise<void> {
  for (let i = 0; pids.some((pid) => isRunning(pid)); i++) {
    assert.ok(i < 100, `still running: ${pids.filter(isRunning)}`);
    await sleep(50);
  }
}

function isRunning(pid: number): boolean {
  try {
    return !/^\d+ \(.*\) [ZX]/s.test(readFileSync(`/proc/${pid}/stat`, "utf8"));
  } catch {
    return false;
  }
}

const program = `
import pandas as pd, time
print("${"a".repeat(32)}:loaded data")
pd.read_csv("input/train.csv").to_csv("submission.csv", index=False)
`;
const limits = { timeoutSeconds: 30, memoryBytes: 2 ** 30, scratchBytes: 2 ** 26 };

for (const level of ["namespaces", "landlock"])
  describe(`an actor at ${level}`, () => {
    test("runs leases in two slots, hands in, drains on SIGTERM and exits 0", async (context) => {
      const { learner, actor, scratch, log } = await startActor(["--isolation", level, "--slots", "2"]);
      const hello = await Promise.race([learner.next("hello", 1, () => true, 60), exitOf(actor).then(() => undefined)]);
      if (!hello) return context.skip(log());
      assert.equal(hello.isolationLevel, level);
      assert.match(hello.versions.numpy, /^2\./);
      assert.equal(hello.packages.numpy, hello.versions.numpy);
      assert.ok(hello.packages["scikit-learn"], "packages that were not imported are listed as well");
      await learner.next("ready");
      const first = learner.lease("e1", {
        task: "small",
        program: Buffer.from(program),
        markerNonce: "a".repeat(32),
        limits,
      });
      const second = learner.lease("e2", { task: "small", program: Buffer.from("import time; time.sleep(1)"), limits });
      learner.lease("e3", { task: "unknown", program: Buffer.from(""), limits });
      const result = await learner.next("result", 1, (message) => message.result?.attempt?.execution === "e1", 20);
      assert.equal(result.outcome, messages.Outcome.COMPLETED, result.detail);
      assert.deepEqual(
        result.markers.map((marker: { name: string }) => marker.name),
        ["loaded data"],
      );
      const chunk = await learner.next("chunk");
      assert.equal(inflateSync(chunk.data).toString(), "id,x\n1,2\n");
      const lost = await learner.next("result", 1, (message) => message.result?.attempt?.execution === "e3", 60);
      assert.equal(lost.outcome, messages.Outcome.LOST);
      assert.match(lost.detail, /lacks its public data/);
      actor.kill("SIGTERM");
      await learner.next("result", 3, () => true, 20);
      for (const attempt of [first, second, { execution: "e3", number: 1, fence: "7" }])
        learner.send({ ack: { attempt, accepted: true, reason: "accepted" } });
      await learner.next("drained");
      assert.equal(await exitOf(actor), 0);
      assert.deepEqual(readdirSync(scratch), [], "scratch is removed");
    });

    test("leaves no process behind when it or a zygote gets SIGKILL", async (context) => {
      const { learner, actor, log } = await startActor(["--isolation", level]);
      const hello = await Promise.race([learner.next("hello", 1, () => true, 60), exitOf(actor).then(() => undefined)]);
      if (!hello) return context.skip(log());
      await learner.next("ready");
      const sleeper = {
        task: "small",
        program: Buffer.from("import time; print(1); time.sleep(600)"),
        limits: { ...limits, timeoutSeconds: 600 },
      };
      learner.lease("e1", sleeper);
      await learner.next("heartbeat", 1, (message) => (message.heartbeat?.running?.[0]?.elapsedSeconds ?? 0) > 0, 20);
      const sandbox = descendants(actor.pid!);
      process.kill(sandbox[0]!, "SIGKILL");
      const lost = await learner.next("result", 1, () => true, 20);
      assert.equal(lost.outcome, messages.Outcome.LOST);
      await gone(sandbox);
      learner.send({ ack: { attempt: lost.attempt, accepted: true, reason: "accepted" } });
      learner.lease("e2", sleeper); // on a new sandbox
      const runs = (message: {
        heartbeat?: { running?: { attempt?: object | null; elapsedSeconds?: number | null }[] | null } | null;
      }) =>
        (message.heartbeat?.running ?? []).some(
          (running) =>
            (running.elapsedSeconds ?? 0) > 0 && (running.attempt as { execution?: string }).execution === "e2",
        );
      await learner.next("heartbeat", 1, runs, 60);
      const processes = descendants(actor.pid!);
      assert.ok(processes.length >= 2);
      actor.kill("SIGKILL");
      await gone(processes);
    });
  });

test("invalid leases are lost with field and value and touch no sandbox; the next lease runs", async (context) => {
  const { learner, actor, log } = await startActor();
  const hello = await Promise.race([learner.next("hello", 1, () => true, 60), exitOf(actor).then(() => undefined)]);
  if (!hello) return context.skip(log());
  await learner.next("ready");
  const senseless: [change: Parameters<Learner["lease"]>[1], detail: RegExp][] = [
    [{ limits: { timeoutSeconds: Number.NaN } }, /limits.timeoutSeconds: is NaN/],
    [{ limits: { timeoutSeconds: 3e6 } }, /limits.timeoutSeconds: is 3000000/],
    [{ limits: { keptOutputBytes: 1e15 } }, /limits.keptOutputBytes: is 1000000000000000/],
    [{ limits: { memoryBytes: 2 ** 63 } }, /limits.memoryBytes: is 9223372036854776000/],
    [{ markerNonce: ".*" }, /markerNonce is "\.\*"/],
    [{ seed: 2 ** 40 }, /seed is 1099511627776/],
    [{ task: "a".repeat(1 << 20) }, /task is "a{79},/],
  ];
  for (const [index, [change, detail]] of senseless.entries()) {
    learner.lease(`e${index}`, { task: "small", ...change });
    const result = await learner.next("result", index + 1);
    assert.equal(result.outcome, messages.Outcome.LOST);
    assert.match(result.detail, detail);
  }
  learner.lease("last", { task: "small", program: Buffer.alloc(0), limits });
  const result = await learner.next("result", senseless.length + 1);
  assert.equal(result.outcome, messages.Outcome.COMPLETED, result.detail);
  assert.doesNotMatch(log(), /broke|Error:/);
});

test("a wall clock that jumps a day to and fro changes no duration and loses nothing", async () => {
  const jumps = `data:text/javascript,${encodeURIComponent(`
const Real = Date;
let shift = 0;
globalThis.Date = class extends Real {
  constructor(...args) { if (args.length > 0) super(...args); else super(Real.now() + shift); }
  static now() { return Real.now() + shift; }
};
setInterval(() => { shift = shift === 0 ? 86_400_000 : shift > 0 ? -86_400_000 : 0; }, 100).unref();`)}`;
  const { learner, actor } = await startActor(["--isolation", "landlock"], { execArgv: ["--import", jumps] });
  await learner.next("ready", 1, () => true, 60);
  const attempt = learner.lease("e1", { task: "small", program: Buffer.from("import time; time.sleep(1)"), limits });
  const result = await learner.next("result", 1, () => true, 20);
  assert.equal(result.outcome, messages.Outcome.COMPLETED, result.detail);
  assert.ok(result.durationSeconds > 0.8 && result.durationSeconds < 10, `${result.durationSeconds} s`);
  learner.send({ ack: { attempt, accepted: true, reason: "accepted" } });
  actor.kill("SIGTERM");
  await learner.next("drained");
  assert.equal(await exitOf(actor), 0);
  assert.equal(learner.count("result"), 1);
});

test("an actor that is asked to stop gives back the programs that do not finish in time, and ends", async () => {
  const env = { LONGRUN_FINISH_SECONDS: "1" };
  const { learner, actor, log } = await startActor(["--isolation", "landlock"], { env });
  await learner.next("ready", 1, () => true, 60);
  const attempt = learner.lease("e1", { task: "small", program: Buffer.from("import time; time.sleep(60)"), limits });
  await learner.next("heartbeat", 1, (message) => (message.heartbeat?.running?.[0]?.elapsedSeconds ?? 0) > 0, 20);
  const startedAt = performance.now();
  actor.kill("SIGTERM");
  const { outcome, disrupted } = await learner.next("result", 1, () => true, 20);
  assert.deepEqual([outcome, disrupted], [messages.Outcome.LOST, true]);
  assert.ok(performance.now() - startedAt > 900, "not before its time");
  learner.send({ ack: { attempt, reason: "accepted" } });
  assert.equal(await exitOf(actor), 0, log());
});

describe("a disk that is full or read-only, at landlock", () => {
  const disk = join(folder, "disk");
  const mounted = () => spawnSync("mount", ["-t", "tmpfs", "-o", "size=4m,mode=0755", "tmpfs", disk]).status === 0;
  const fill = () => spawnSync("dd", ["if=/dev/zero", `of=${disk}/ballast`, "bs=64k"], { stdio: "ignore" });
  const writer = { task: "small", program: Buffer.from("open('a', 'w').write('x' * 500_000)"), limits };
  mkdirSync(disk, { recursive: true });

  /** Starts an actor whose first lease is lost because of `harm`. */
  async function harmed(harm: () => unknown, args: string[]) {
    const started = await startActor(["--isolation", "landlock", ...args], { scratch: join(disk, "scratch") });
    const { learner } = started;
    await learner.next("ready", 1, () => true, 60);
    harm();
    const attempt = learner.lease("e1", writer);
    const lost = await learner.next("result", 1, () => true, 20);
    assert.equal(lost.outcome, messages.Outcome.LOST, lost.detail);
    learner.send({ ack: { attempt, accepted: true, reason: "accepted" } });
    await learner.next("ready", 1, (message) => message.ready?.freeSlots === 0, 20);
    return { ...started, lost };
  }

  test("a full disk is not the program's fault, and the slot takes no lease until there is room again", async (context) => {
    if (!mounted()) return context.skip("needs root, to mount a small disk");
    try {
      const { learner, actor, lost, log } = await harmed(fill, []);
      assert.match(lost.detail, /disk .* is full/);
      rmSync(join(disk, "ballast"));
      const before = learner.count("ready");
      await learner.next(
        "ready",
        1,
        (message) => message.ready?.freeSlots === 1 && learner.count("ready") > before,
        30,
      );
      const attempt = learner.lease("e2", writer);
      const result = await learner.next("result", 2, () => true, 20);
      assert.equal(result.outcome, messages.Outcome.COMPLETED, `${result.detail} ${log()}`);
      learner.send({ ack: { attempt, accepted: true, reason: "accepted" } });
      actor.kill("SIGTERM");
      assert.equal(await exitOf(actor), 0);
    } finally {
      spawnSync("umount", ["-l", disk]);
    }
  });

  test("an actor whose disk stays full leaves and says why", async (context) => {
    if (!mounted()) return context.skip("needs root, to mount a small disk");
    try {
      const readOnly = () => spawnSync("mount", ["-o", "remount,ro", disk]);
      const { actor, log } = await harmed(readOnly, ["--restart-seconds", "1"]);
      assert.equal(await exitOf(actor), 1);
      assert.match(log(), /a sandbox did not start/);
      assert.match(log(), /EROFS|[Rr]ead-only/);
    } finally {
      spawnSync("umount", ["-l", disk]);
    }
  });
});

describe("an actor's start and end", () => {
  test("an actor exits when its parent's channel closes", async () => {
    const { learner, actor } = await startActor();
    await learner.next("hello", 1, () => true, 60);
    const processes = descendants(actor.pid!);
    actor.disconnect();
    assert.equal(await exitOf(actor), 1);
    await gone(processes);
  });

  const cases: [string, string[], RegExp][] = [
    ["no level without the flag", ["--isolation", "none"], /--allow-no-isolation/],
    ["slots", ["--slots", "0"], /--slots is 0/],
    ["cpus", ["--cpus", "1-0"], /--cpus/],
    ["unknown option", ["--frobnicate"], /frobnicate/],
    ["a task folder without tasks", ["--task-dir", actorTls], /prepared\/public/],
  ];
  for (const [name, args, message] of cases)
    test(`bad input ends the actor with one line and exit status 2: ${name}`, async () => {
      const { actor, log } = await startActor(args);
      assert.equal(await exitOf(actor), 2);
      const lines = log().trim().split("\n");
      assert.match(lines.at(-1)!, message);
      assert.equal(lines.length, 1);
      assert.deepEqual(processesOf(`scratch-${actors - 1}`), []);
    });

  test("every line of an actor without isolation says so", async () => {
    const { learner, actor, log } = await startActor(["--isolation", "none", "--allow-no-isolation"]);
    await learner.next("hello", 1, () => true, 60);
    actor.kill("SIGTERM");
    assert.equal(await exitOf(actor), 0);
    const lines = log().trim().split("\n");
    assert.ok(lines.length > 1);
    for (const line of lines) assert.match(line, /NO ISOLATION/);
  });
});
