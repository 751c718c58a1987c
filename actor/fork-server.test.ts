/** Sandboxes of one machine are forks of a process that has imported the packages. Tests what they share, and what they must not share. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, readlinkSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, afterEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { execute } from "./execution.ts";
import { isAlive } from "./is-alive.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { ensurePythonEnvironment } from "./python-env.ts";
import { Sandbox } from "./sandbox.ts";

const folder = mkdtempSync(join(tmpdir(), "lr-fork-server-"));
after(() => rmSync(folder, { recursive: true, force: true }));
const { python } = await ensurePythonEnvironment();

const started: Sandbox[] = [];
afterEach(async () => void (await Promise.all(started.splice(0).map((sandbox) => sandbox.stop()))));

let spaces = 0;
async function start(warm: string[], more: object = {}): Promise<Sandbox> {
  const place = { python, space: join(folder, `slot-${spaces++}`), inputs: {}, warm, startSeconds: 60 };
  const sandbox = await Sandbox.start({ ...place, level: "landlock", ...more });
  started.push(sandbox);
  return sandbox;
}
const stat = (pid: number) => readFileSync(`/proc/${pid}/stat`, "utf8").split(") ")[1]!.split(" ");
const parentOf = (sandbox: Sandbox) => Number(stat(sandbox.pid!)[1]);
const optionOf = (server: number, name: string) => {
  const command = readFileSync(`/proc/${server}/cmdline`, "utf8").split("\0");
  return command[command.indexOf(name) + 1]!;
};
const run = async (sandbox: Sandbox, program: string) => {
  const limits = { ...DEFAULT_LIMITS, timeoutSeconds: 30 };
  return execute(sandbox, { task: "t", program: Buffer.from(program), nonce: "", limits, seed: 0 });
};
async function gone(pid: number): Promise<void> {
  for (let i = 0; isAlive(pid); i++) {
    assert.ok(i < 200, `process ${pid} is still there`);
    await sleep(20);
  }
}

describe("sandboxes of one machine", () => {
  test("share a process if they want the same packages in any order; the process ends with the last sandbox", async () => {
    const [first, second] = await Promise.all([start(["numpy", "joblib"]), start(["joblib", "numpy", "numpy"])]);
    const other = await start([]);
    const severalProcesses = await start(["numpy", "joblib"], { level: "none" });
    const server = parentOf(first);
    assert.equal(parentOf(second), server);
    assert.equal(new Set([first, other, severalProcesses].map(parentOf)).size, 3);
    const directory = dirname(optionOf(server, "--fork-server"));
    await first.stop();
    assert.equal((await run(second, "import numpy")).outcome, "completed");
    assert.ok(existsSync(directory));
    await second.stop();
    await gone(server);
    for (let i = 0; existsSync(directory); i++) {
      assert.ok(i < 100, `${directory} is still there`);
      await sleep(20);
    }
    assert.ok(other.alive && severalProcesses.alive);
    const others = [parentOf(other), parentOf(severalProcesses)];
    await Promise.all([other.stop(), severalProcesses.stop()]);
    for (const pid of others) await gone(pid);
  });

  test("share the memory of imported packages", async () => {
    const sandboxes = await Promise.all([start(["pandas"]), start(["pandas"]), start(["pandas"])]);
    const own = (pid: number) =>
      Number(/^Private_Dirty:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/smaps_rollup`, "utf8"))![1]) / 1024;
    const resident = (pid: number) =>
      (Number(readFileSync(`/proc/${pid}/statm`, "utf8").split(" ")[1]) * 4096) / 2 ** 20;
    assert.ok(resident(parentOf(sandboxes[0]!)) > 40, "pandas is in the process that they share");
    for (const sandbox of sandboxes) assert.ok(own(sandbox.pid!) < 10, `${own(sandbox.pid!)} MiB of a slot's own`);
  });

  test("cannot use each other's connections", async () => {
    const sandboxes = [await start([]), await start([])];
    for (const sandbox of sandboxes) {
      assert.equal((await run(sandbox, "pass")).outcome, "completed");
      const directory = `/proc/${sandbox.pid}/fd`;
      const open = readdirSync(directory).map((name) => readlinkSync(`${directory}/${name}`));
      // The sockets are standard error, its connection, and the next child's output and orders.
      assert.equal(open.filter((target) => target.startsWith("socket:")).length, 4, open.join(" "));
      assert.deepEqual(open.slice(0, 2), ["/dev/null", "/dev/null"]);
    }
  });

  test("accept no connection from anybody else, whichever user it is", async () => {
    const sandbox = await start([]);
    const socket = optionOf(parentOf(sandbox), "--fork-server");
    const connect = (before: string) => {
      const program = `
import os, socket, sys
${before}
connection = socket.socket(socket.AF_UNIX)
connection.settimeout(10)
connection.connect(sys.argv[1])
print(connection.recv(4))`;
      return spawnSync(python, ["-c", program, socket], { encoding: "utf8" });
    };
    assert.equal(connect("").stdout, "b''\n");
    if (process.getuid!() === 0) assert.match(connect("os.setuid(65534)").stderr, /PermissionError/);
    assert.equal((await run(sandbox, "pass")).outcome, "completed");
  });

  test("are killed when they are stopped, even if they do not react", async () => {
    const sandbox = await start([]);
    process.kill(sandbox.pid!, "SIGSTOP");
    await sandbox.stop();
    assert.ok(!isAlive(sandbox.pid!));
  });

  test("break with the process that they share, and the next one has a new one", async () => {
    const [first, second] = await Promise.all([start([]), start([])]);
    const running = run(first, "import time; time.sleep(60)");
    await sleep(200);
    const server = parentOf(first);
    process.kill(second.pid!, "SIGSTOP"); // it need not notice that its connection ended
    process.kill(server, "SIGKILL");
    assert.equal((await running).outcome, "lost");
    await second.ended;
    await gone(second.pid!);
    assert.match(second.fault!.message, /its process ended/);
    const next = await start([]);
    assert.notEqual(parentOf(next), server);
    assert.equal((await run(next, "pass")).outcome, "completed");
  });

  test("lose their directories when their actor is killed", async () => {
    await start(["joblib"]);
    const own = readdirSync(tmpdir()).find(
      (name) => name.startsWith("longrun-sandbox-") && name.includes(`-${process.pid}-`),
    );
    const killed = own!.replace(/-\d+-\w+$/, "-1-x");
    mkdirSync(join(tmpdir(), killed, "tmp"), { recursive: true });
    await start(["threadpoolctl"]);
    assert.ok(!existsSync(join(tmpdir(), killed)));
  });

  test("report a Python that does not start or starts late", async () => {
    await assert.rejects(start([], { python: "/bin/false" }), /did not start: its process ended/);
    await assert.rejects(
      start([], { python: join(folder, "none") }),
      /did not start: its process ended: spawn .* ENOENT/,
    );
    const [late, sandbox] = await Promise.all([
      start(["pandas"], { startSeconds: 0.05 }).catch((error: Error) => error.message),
      start(["pandas"]),
    ]);
    assert.match(String(late), /was not ready within 0.05 s/);
    assert.deepEqual(sandbox.info.warm, ["pandas"]);
  });
});
