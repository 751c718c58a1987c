/** Tests a zygote that listens in a container of its own, and a supervisor that connects to it. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, readdirSync, statSync, writeFileSync } from "node:fs";
import { connect, createServer } from "node:net";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import type { IsolationLevel } from "../proto/isolation.ts";
import { missingTools } from "../test/tools.ts";
import { descendants } from "./descendants.fixture.ts";
import { startIsolated } from "./isolation.ts";
import { Sandbox } from "./sandbox.ts";
import { SANDBOX_ID, Sidecar, SUPERVISOR_ID } from "./sidecar.fixture.ts";
import { environment, folder, inputs, run, runs, SLEEPER, until } from "./small-task.fixture.ts";

describe("a zygote that listens", () => {
  let sidecar: Sidecar;
  before(async () => {
    sidecar = new Sidecar({ environment, warm: ["numpy"] });
    await sidecar.listening();
  });
  after(() => sidecar.stop());
  const connected = (level: IsolationLevel = "landlock") =>
    Sandbox.start({ socket: sidecar.socket, inputs, level, startSeconds: 20 });

  test("the socket can be used by its user and the shared group alone", (context) => {
    const { mode, uid, gid } = statSync(sidecar.socket);
    assert.equal(mode & 0o7777, 0o660);
    if (!sidecar.contained) return context.skip("needs root and namespaces for another user");
    assert.deepEqual([uid, gid], [SANDBOX_ID, SUPERVISOR_ID]);
    const missing = missingTools(["setpriv"]);
    if (missing) return context.skip(missing);
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
    test(`the sandbox finds the level ${level} by trying it, and programs run`, async (context) => {
      const found = await startIsolated({ socket: sidecar.socket, inputs, level, startSeconds: 20 }).catch(
        (error: Error) => error.message,
      );
      if (typeof found === "string") return context.skip(found);
      assert.equal(found.sandbox.info.level, level);
      const result = await run(found.sandbox, "print(open('input/train.csv').read())");
      assert.equal(result.terminalOutput.toString(), "id,x\n1,2\n\n", result.detail);
      await found.sandbox.stop();
    });

  test("the strongest level that works is taken if none is given, and an impossible level is refused with its reason", async () => {
    const { sandbox } = await startIsolated({ socket: sidecar.socket, inputs, startSeconds: 20 });
    await sandbox.stop();
    const masked = startIsolated({ socket: sidecar.socket, inputs, level: "landlock", landlockAbi: 0 });
    await assert.rejects(masked, /no level works here \(landlock: the kernel has no Landlock/);
  });

  test("programs see nothing of the container's environment; large outputs and submissions pass whole", async () => {
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

  test("the zygote serves one connection at a time and removes its socket meanwhile", async () => {
    const sandbox = await connected();
    assert.equal(existsSync(sidecar.socket), false);
    await assert.rejects(
      Sandbox.start({ socket: sidecar.socket, inputs, level: "landlock", startSeconds: 0.1 }),
      /nothing listens at .*control.sock after 0.1 s \(ENOENT.*look at the logs and the state/,
    );
    await sandbox.stop();
    await sidecar.listening();
  });

  test("a zygote whose supervisor hangs up kills the program, empties the scratch and accepts the next connection", async () => {
    const { pid } = sidecar;
    const sandbox = await connected();
    const { result } = await runs(sandbox, SLEEPER);
    assert.deepEqual(readdirSync(join(sidecar.scratch, "scratch")).sort(), ["input", "left", "program.py"]);
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

  test("a zygote that hangs is given up and replaced", async () => {
    const sandbox = await connected();
    await run(sandbox, "pass");
    for (const pid of descendants(sidecar.pid)) process.kill(pid, "SIGSTOP");
    await sandbox.stop();
    await sidecar.listening();
    assert.deepEqual(descendants(sidecar.pid), []);
  });

  test("the zygote reaps orphans and kills them when the connection ends", async () => {
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

  test("invalid frames end the connection and nothing else", async () => {
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

  test("SIGKILL while a program runs loses the sandbox, and the next start finds its scratch empty", async () => {
    const sandbox = await connected();
    const { result } = await runs(sandbox, SLEEPER);
    const before = descendants(sidecar.pid);
    await sidecar.kill("SIGKILL");
    assert.match(String(await result), /its connection (ended|broke)/);
    assert.equal(sandbox.alive, false);
    await until("its processes are gone", () => before.every((pid) => !existsSync(`/proc/${pid}`)));
    assert.deepEqual(readdirSync(join(sidecar.scratch, "scratch")).sort(), ["input", "left", "program.py"]);
    sidecar.start();
    await sidecar.listening();
    assert.deepEqual(readdirSync(sidecar.scratch), []);
  });

  test("SIGTERM ends the zygote at once, even while a program runs", async () => {
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
      /did not apply landlock/,
    ],
    ["negative amounts", frame('{"level":"landlock","landlockAbi":-1,"residentBytes":1}'), /not an amount/],
    ["an error", frame('{"error":"no"}'), /^ActorError: no$/],
  ];
  for (const [name, bytes, error] of cases)
    test(`the supervisor refuses ${name}`, async () => {
      const socket = join(folder, "hostile.sock");
      const server = createServer((connection) => connection.on("error", () => {}).write(bytes)).listen(socket);
      await once(server, "listening");
      try {
        await assert.rejects(Sandbox.start({ socket, inputs, level: "landlock", startSeconds: 5 }), error);
      } finally {
        server.close();
      }
    });

  test("the supervisor follows no link and no file in the socket's place", async () => {
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
