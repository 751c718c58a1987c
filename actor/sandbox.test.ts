/** A supervisor and a zygote that sends wrong frames: one sandbox is given up and nothing else happens. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { createServer, type Server } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { execute } from "./execution.ts";
import { encodeFrame, FrameReader } from "./frames.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { Sandbox } from "./sandbox.ts";

const folder = mkdtempSync(join(tmpdir(), "lr-sandbox-"));
after(() => rmSync(folder, { recursive: true }));

const HELLO = { level: "landlock", landlockAbi: 7, residentBytes: 1, versions: { python: "3" } };
const END = { status: 0, signal: 0, cpuSeconds: 0.1, peakMemoryBytes: 10, killedFor: null, report: "" };
const NONE = { bytes: 0, refused: null, present: false };
const frame = (kind: string, payload: unknown = "") =>
  encodeFrame(kind, typeof payload === "string" || Buffer.isBuffer(payload) ? payload : JSON.stringify(payload));
const whole = [frame("S"), frame("X", END), frame("E", NONE), frame("F")];

let sockets = 0;

/** Starts a zygote that answers the configuration and the program with these bytes, the program after `after` milliseconds. */
async function zygote(hello: Buffer, answer: Buffer[], after = 0): Promise<{ socket: string; server: Server }> {
  const socket = join(folder, `${sockets++}.sock`);
  const server = createServer((connection) => {
    const reader = new FrameReader();
    let kinds = "";
    connection
      .on("error", () => {})
      .on("data", (chunk) => {
        if (kinds.includes("R")) return;
        for (const { kind } of reader.push(chunk)) {
          kinds += kind;
          if (kind === "C") connection.write(hello);
          if (kind === "R") setTimeout(() => connection.write(Buffer.concat(answer)), after);
          if (kind === "R") break;
        }
      });
  }).listen(socket);
  await once(server, "listening");
  return { socket, server };
}

const request = { task: "t", program: Buffer.from("pass"), nonce: "", limits: DEFAULT_LIMITS, seed: 0 };

async function answered(answer: Buffer[], after?: number) {
  const { socket, server } = await zygote(frame("H", HELLO), answer, after);
  const sandbox = await Sandbox.start({ socket, inputs: {}, level: "landlock", startSeconds: 5 });
  const result = await execute(sandbox, request);
  await sandbox.stop();
  server.close();
  return { sandbox, result };
}

describe("messages of a zygote", () => {
  test("an execution that follows the protocol has the result and the CPU time that the zygote reports", async () => {
    const { result } = await answered(whole, 100); // no processor can work for 0.1 s in less time
    assert.deepEqual([result.outcome, result.cpuSeconds, result.sandboxBroke], ["completed", 0.1, false]);
  });

  const lies: [name: string, answer: Buffer[], detail: RegExp][] = [
    ["a kind that there is not", [frame("S"), frame("Z")], /unexpected frame "Z"/],
    ["an end before the start", [frame("X", END)], /unexpected frame "X"/],
    ["two starts", [frame("S"), frame("S")], /unexpected frame "S"/],
    ["two ends", [frame("S"), frame("X", END), frame("X", END)], /unexpected frame "X"/],
    ["a submission before the end", [frame("S"), frame("E", NONE)], /unexpected frame "E"/],
    [
      "more than announced",
      [...whole.slice(0, 2), frame("E", { bytes: 1, present: true }), frame("D", "ab")],
      /more submission/,
    ],
    [
      "less than announced",
      [...whole.slice(0, 2), frame("E", { bytes: 3, present: true }), frame("D", "ab"), frame("F")],
      /unexpected frame "F"/,
    ],
    [
      "a submission above its limit",
      [...whole.slice(0, 2), frame("E", { bytes: 1e12, present: true })],
      /above its limit/,
    ],
    ["bytes below zero", [...whole.slice(0, 2), frame("E", { bytes: -1, present: true })], /not an amount: -1/],
    ["amounts that are text", [frame("S"), frame("X", { ...END, cpuSeconds: "1" })], /not an amount: 1/],
    ["a duration below 0", [frame("S"), frame("X", { ...END, seconds: -1 })], /not an amount: -1/],
    [
      "amounts without end",
      [frame("S"), frame("P", '{"cpuSeconds":1e999,"memoryBytes":0}')],
      /not an amount: Infinity/,
    ],
    ["no JSON", [frame("S"), frame("P", "{")], /cannot be read/],
    ["JSON that is no object", [frame("S"), frame("X", "null")], /cannot be read/],
    ["a frame of 4 GB", [frame("S"), Buffer.from("O\xff\xff\xff\xff", "latin1")], /frame of 4294967295 bytes/],
    ["an error in the midst of it", [frame("S"), frame("H", { error: "y".repeat(9000) })], /^.{0,600}$/],
  ];
  for (const [name, answer, detail] of lies)
    test(`${name}: the sandbox is given up and the execution is lost`, async () => {
      const { sandbox, result } = await answered(answer);
      assert.equal(result.outcome, "lost", result.detail);
      assert.match(result.detail, detail);
      assert.equal(sandbox.alive, false);
    });

  for (const [name, line] of [
    ["line feeds", "\n"],
    ["short lines", "a\n"],
    ["markers without a nonce", "loaded data\n"],
    ["forged markers", `${"f".repeat(32)}:loaded data\n`],
  ] as const)
    test(`4 MiB of ${name} make no turn of the event loop long`, async () => {
      const megabyte = frame("O", Buffer.alloc(1 << 20, line));
      let longest = 0;
      let watching = true;
      let before = process.threadCpuUsage();
      const turn = () => {
        const { user, system } = process.threadCpuUsage();
        longest = Math.max(longest, user + system - before.user - before.system);
        before = { user, system };
        if (watching) setImmediate(turn);
      };
      turn();
      const { result } = await answered([whole[0]!, megabyte, megabyte, megabyte, megabyte, ...whole.slice(1)]);
      watching = false;
      assert.deepEqual([result.outcome, result.outputBytes], ["completed", 4 << 20]);
      // In microseconds of processor time, which other processes do not lengthen.
      assert.ok(longest < 60_000, `${longest} µs`);
    });

  test("no turn of the event loop reads more than 256 KiB from a zygote that sends faster than the actor reads", async () => {
    const socket = join(folder, `${sockets++}.sock`);
    const output = `for (let sent = 0; sent < 16; sent++) connection.write(Buffer.concat([output, Buffer.alloc(1 << 20, "a")]))`;
    const text = `require("node:net").createServer((connection) => {
      const [hello, start, output] = ${JSON.stringify([frame("H", HELLO), frame("S"), Buffer.from("O\0\x10\0\0")])}.map(({ data }) => Buffer.from(data));
      let told = 0;
      connection.on("error", () => {}).on("data", () => {
        if (told++ === 0) return connection.write(hello);
        connection.write(start);
        ${output};
        connection.end();
      });
    }).listen(${JSON.stringify(socket)}, () => console.log("up"))`;
    const child = spawn(process.execPath, ["-e", text], { stdio: ["ignore", "pipe", "inherit"] });
    try {
      await once(child.stdout, "data");
      const sandbox = await Sandbox.start({ socket, inputs: {}, level: "landlock", startSeconds: 5 });
      let [all, turn, most] = [0, 0, 0];
      const onOutput = ({ length }: Buffer) => {
        if (turn === 0)
          setImmediate(() => {
            most = Math.max(most, turn);
            turn = 0;
          });
        all += length;
        turn += length;
        for (const end = performance.now() + 0.2; performance.now() < end; ); // slower than it sends
      };
      await assert.rejects(sandbox.run(request, { onOutput }), /connection ended/);
      assert.equal(all, 16 << 20);
      assert.ok(most <= 256 << 10, `${most} bytes in a turn`);
      await sandbox.stop();
    } finally {
      child.kill();
    }
  });

  test("a duration is the zygote's count, and at most the time since the request", async () => {
    const durationOf = async (seconds: number) => {
      const before = performance.now();
      const { result } = await answered(
        [frame("S"), frame("X", { ...END, seconds }), frame("E", NONE), frame("F")],
        400,
      );
      return { duration: result.durationSeconds, since: (performance.now() - before) / 1000 };
    };
    const none = await durationOf(0);
    assert.ok(none.duration < 0.1, `${none.duration}: start and end arrive together`);
    const counted = await durationOf(0.3);
    assert.equal(counted.duration, 0.3);
    const lie = await durationOf(1000);
    assert.ok(lie.duration >= 0.39 && lie.duration <= lie.since, `${lie.duration} of ${lie.since}`);
  });

  test("an invalid report and an unknown reason change nothing of an execution's result", async () => {
    const hostile = {
      ...END,
      status: 1,
      killedFor: "__proto__",
      report: '{"exception":"A B","line":-4,"memory":1}',
      __proto__: null,
    };
    const { result } = await answered([frame("S"), frame("X", hostile), frame("E", NONE), frame("F")]);
    assert.deepEqual([result.outcome, result.detail], ["failed", "exit status 1"]);
  });

  test("a large Hello is cut to the allowed size, and an empty one is refused in one line", async () => {
    const versions = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`n${i}`.repeat(50), "v".repeat(99_9)]));
    const packages = Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`n${i}`, "1"]));
    const much = await zygote(
      frame("H", { ...HELLO, packages, versions: Object.fromEntries(Object.entries(versions).slice(0, 400)) }),
      whole,
    );
    const sandbox = await Sandbox.start({ socket: much.socket, inputs: {}, level: "landlock", startSeconds: 5 });
    assert.equal(Object.keys(sandbox.info.versions).length, 32);
    assert.equal(Object.keys(sandbox.info.packages).length, 2048);
    for (const [name, value] of Object.entries(sandbox.info.versions))
      assert.ok(name.length <= 100 && value.length <= 100);
    await sandbox.stop();
    much.server.close();
    const none = await zygote(frame("H", "null"), []);
    const start = Sandbox.start({ socket: none.socket, inputs: {}, level: "landlock", startSeconds: 5 });
    await assert.rejects(start, { code: "sandbox", message: /first frame cannot be read: JSON that is no object/ });
    none.server.close();
  });
});

describe("blame for a failure", () => {
  test("a sandbox that ends during a program is to blame; one that was stopped or never started it is not", async (t) => {
    const { socket, server } = await zygote(frame("H", HELLO), [frame("S")]);
    t.after(() => server.close());
    const start = () => Sandbox.start({ socket, inputs: {}, level: "landlock", startSeconds: 5 });
    const broken = await start();
    const ended = execute(broken, request);
    setTimeout(() => broken.giveUp("it was killed"), 20);
    assert.deepEqual([(await ended).outcome, (await ended).sandboxBroke], ["lost", true]);
    await broken.stop();

    const stopped = await start();
    const result = execute(stopped, request);
    setTimeout(() => stopped.stop(), 20);
    assert.deepEqual([(await result).outcome, (await result).sandboxBroke], ["lost", false]);

    const { result: early } = await answered([frame("H", { error: "no disk" })]);
    assert.deepEqual([early.outcome, early.sandboxBroke], ["lost", false]);
  });

  test("a full disk is not the program's fault: the attempt is lost and the sandbox is started again", async () => {
    const failed = { ...END, status: 1, diskFull: true, report: '{"exception":"OSError","line":3,"memory":false}' };
    const { sandbox, result } = await answered([frame("S"), frame("X", failed), frame("E", NONE), frame("F")]);
    assert.equal(result.outcome, "lost");
    assert.match(result.detail, /disk .* is full/);
    assert.match(sandbox.fault!.message, /disk .* is full/);
    assert.equal(result.sandboxBroke, false);
    const done = { ...failed, status: 0 };
    const completed = await answered([frame("S"), frame("X", done), frame("E", NONE), frame("F")]);
    assert.equal(completed.result.outcome, "completed");
  });
});
