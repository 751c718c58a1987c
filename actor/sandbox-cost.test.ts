/** Tests the time and the memory that a zygote's frames cost. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import type { Socket } from "node:net";
import { join } from "node:path";
import { before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { execute } from "./execution.ts";
import {
  announced,
  deep,
  E,
  F,
  folder,
  frame,
  HELLO,
  LIMITS,
  Liar,
  lied,
  MEBIBYTE,
  REQUEST,
  S,
  startFor,
  X,
} from "./liar.fixture.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import { Sandbox } from "./sandbox.ts";

/** Returns the longest turn of the event loop during `work`, in milliseconds of processor time, which other processes do not lengthen. */
async function longestTurn(work: () => Promise<unknown>): Promise<number> {
  let [longest, watching, before] = [0, true, process.threadCpuUsage()];
  const turn = () => {
    const { user, system } = process.threadCpuUsage();
    longest = Math.max(longest, user + system - before.user - before.system);
    before = { user, system };
    if (watching) setImmediate(turn);
  };
  turn();
  try {
    await work();
    turn();
    return longest / 1000;
  } finally {
    watching = false; // else the turns keep this process alive, and busy
  }
}

describe("the cost of frames", () => {
  let collectGarbage: () => void;
  before(() => {
    setFlagsFromString("--expose-gc");
    collectGarbage = runInNewContext("gc");
  });

  test("a submission in pieces of one byte takes the memory of its bytes", async (t) => {
    const bytes = 300_000;
    const pieces = Buffer.concat(Array(bytes).fill(frame("D", "a")));
    collectGarbage();
    const heapBefore = process.memoryUsage().heapUsed;
    let grown = 0;
    const measure = async (connection: Socket) => {
      connection.write(Buffer.concat([S, X, announced(bytes)]));
      await new Promise<void>((written) => connection.write(pieces, () => written()));
      await sleep(200);
      collectGarbage();
      grown = process.memoryUsage().heapUsed - heapBefore;
      connection.write(F);
    };
    const liar = new Liar(frame("H", HELLO), measure);
    const sandbox = await startFor(t, liar, { deadlines: {} });
    const limits = { ...LIMITS, timeoutSeconds: 60, submissionBytes: bytes };
    const result = await execute(sandbox, { ...REQUEST, limits });
    assert.deepEqual([result.outcome, result.submission?.length], ["completed", bytes], result.detail);
    assert.ok(result.submission!.equals(Buffer.alloc(bytes, "a")));
    assert.ok(grown < 8 * MEBIBYTE, `${grown} bytes for ${bytes}`);
  });

  const floods: [name: string, flood: Buffer][] = [
    ["output of one byte each", Buffer.concat(Array(Math.floor(MEBIBYTE / 6)).fill(frame("O", "a")))],
    ["empty output", Buffer.concat(Array(Math.floor(MEBIBYTE / 5)).fill(frame("O")))],
    ["lists in lists", frame("P", deep)],
    [
      "an object of 100,000 keys",
      frame("P", Object.fromEntries(Array.from({ length: 80_000 }, (_, i) => [`k${i}`, 1]))),
    ],
    ["random bytes", Buffer.from(Array.from({ length: MEBIBYTE }, (_, index) => (index * 7919) % 251))],
  ];
  for (const [name, flood] of floods)
    test(`1 MiB of ${name} does not hold the event loop for 50 ms`, async () => {
      const holds: number[] = [];
      // The best of five rounds, because the first ones compile the code.
      for (let round = 0; round < 5 && !(Math.min(...holds) < 50); round++)
        holds.push(await longestTurn(() => lied((connection) => connection.write(Buffer.concat([S, flood])))));
      assert.ok(Math.min(...holds) < 50, `${holds} ms`);
    });

  for (const [name, line] of [
    ["line feeds", "\n"],
    ["short lines", "a\n"],
    ["markers without a nonce", "loaded data\n"],
    ["forged markers", `${"f".repeat(32)}:loaded data\n`],
  ] as const)
    test(`4 MiB of ${name} make no turn of the event loop long`, async () => {
      const megabyte = frame("O", Buffer.alloc(MEBIBYTE, line));
      const frames = [S, ...new Array(4).fill(megabyte), X, E, F];
      const longest = await longestTurn(async () => {
        const { result } = await lied(frames, { ...REQUEST, limits: DEFAULT_LIMITS });
        assert.deepEqual([result.outcome, result.outputBytes], ["completed", 4 << 20]);
      });
      assert.ok(longest < 60, `${longest} ms`);
    });

  test("no turn of the event loop reads more than 256 KiB from a zygote that sends faster than the actor reads", async (t) => {
    const socket = join(folder, "fast.sock");
    const output = `for (let sent = 0; sent < 16; sent++) connection.write(Buffer.concat([output, Buffer.alloc(1 << 20, "a")]))`;
    const text = `require("node:net").createServer((connection) => {
      const [hello, start, output] = ${JSON.stringify([frame("H", HELLO), S, Buffer.from("O\0\x10\0\0")])}.map(({ data }) => Buffer.from(data));
      let told = 0;
      connection.on("error", () => {}).on("data", () => {
        if (told++ === 0) return connection.write(hello);
        connection.write(start);
        ${output};
        connection.end();
      });
    }).listen(${JSON.stringify(socket)}, () => console.log("up"))`;
    using child = spawn(process.execPath, ["-e", text], { stdio: ["ignore", "pipe", "inherit"] });
    await once(child.stdout, "data");
    const sandbox = await Sandbox.start({ socket, inputs: {}, level: "landlock", startSeconds: 5 });
    t.after(() => sandbox.stop());
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
    await assert.rejects(sandbox.run(REQUEST, { onOutput }), /connection ended/);
    assert.equal(all, 16 << 20);
    assert.ok(most <= 256 << 10, `${most} bytes in a turn`);
  });
});
