/**
 * A zygote under a program's control may send any bytes in any order. The sandbox then returns one bounded result or is given up within its
 * deadlines, and nothing else happens. LONGRUN_FUZZ_SECONDS lengthens the property test.
 */
import assert from "node:assert/strict";
import { cpus, totalmem } from "node:os";
import { describe, test } from "node:test";
import { setImmediate as nextTurn, setTimeout as sleep } from "node:timers/promises";
import fc from "fast-check";
import { execute } from "./execution.ts";
import { encodeFrame } from "./frames.ts";
import {
  announced,
  deep,
  E,
  END,
  F,
  frame,
  HELLO,
  LIMITS,
  Liar,
  type Lie,
  lied,
  MEBIBYTE,
  NONE,
  nested,
  PATIENT,
  PATIENT_REQUEST,
  REQUEST,
  S,
  startFor,
  X,
} from "./liar.fixture.ts";

const FUZZ_SECONDS = Number(process.env.LONGRUN_FUZZ_SECONDS ?? 3);
const endless: Lie = async (connection) => {
  connection.write(S);
  while (!connection.destroyed) {
    connection.write(frame("O", "x".repeat(2000)));
    await sleep(5);
  }
};

describe("frames of a zygote that was taken over", () => {
  const broken: [name: string, lie: Lie | Buffer[], detail: RegExp][] = [
    ["the end before the start", [X, S, E, F], /unexpected frame "X"/],
    ["output before the start", [frame("O", "a"), S], /unexpected frame "O"/],
    ["progress before the start", [frame("P", { cpuSeconds: 0, memoryBytes: 0 })], /unexpected frame "P"/],
    ["progress after the end", [S, X, frame("P", { cpuSeconds: 0, memoryBytes: 0 })], /unexpected frame "P"/],
    ["ready again", [frame("H", HELLO)], /cannot be read/],
    ["ready again, in the midst", [S, frame("H", HELLO)], /cannot be read/],
    ["started twice", [S, S], /unexpected frame "S"/],
    ["done before the submission is announced", [S, X, F], /unexpected frame "F"/],
    ["done before the end", [S, F], /unexpected frame "F"/],
    ["announced twice", [S, X, announced(1), announced(2)], /unexpected frame "E"/],
    ["announced again when it is there", [S, X, announced(1), frame("D", "a"), announced(9)], /unexpected frame "E"/],
    ["none, and then one", [S, X, E, announced(5), frame("D", "abcde"), F], /unexpected frame "E"/],
    ["a submission that was not announced", [S, X, frame("D", "a")], /unexpected frame "D"/],
    ["a submission where there is none", [S, X, E, frame("D", "a")], /more submission than announced/],
    ["more than was announced", [S, X, announced(2), frame("D", "ab"), frame("D", "c")], /more submission/],
    ["empty pieces of a submission", [S, X, announced(2), frame("D"), frame("D", "ab")], /unexpected frame "D"/],
    ["empty output", [S, frame("O")], /unexpected frame "O"/],
    ["output after the submission was announced", [S, X, announced(2), frame("O", "a")], /unexpected frame "O"/],
    ["a kind that does not exist", [S, frame("Z")], /unexpected frame "Z"/],
    ["ended twice", [S, X, X], /unexpected frame "X"/],
    ["a submission before the end", [S, E], /unexpected frame "E"/],
    ["more in one piece than was announced", [S, X, announced(1), frame("D", "ab")], /more submission/],
    ["less than was announced", [S, X, announced(3), frame("D", "ab"), F], /unexpected frame "F"/],
    ["a submission above its limit", [S, X, announced(1e12)], /above its limit/],
    ["a submission of less than no bytes", [S, X, announced(-1)], /not an amount: -1/],
    ["an amount that is a text", [S, frame("X", { ...END, cpuSeconds: "1" })], /not an amount: 1/],
    ["a duration below 0", [S, frame("X", { ...END, seconds: -1 })], /not an amount: -1/],
    ["an infinite amount", [S, frame("P", '{"cpuSeconds":1e999,"memoryBytes":0}')], /not an amount: Infinity/],
    ["JSON that is no object", [S, frame("X", "null")], /cannot be read/],
    ["a long error in the midst", [S, frame("H", { error: "y".repeat(9000) })], /^.{0,600}$/],
    ["progress in a flood", [S, ...Array(60).fill(frame("P", { cpuSeconds: 0, memoryBytes: 0 }))], /flood/],
    ["a status that there is not", [S, frame("X", { ...END, status: 1e9 })], /from 0 to 255/],
    ["a status with a fraction", [S, frame("X", { ...END, status: 0.5 })], /from 0 to 255/],
    ["a signal that there is not", [S, frame("X", { ...END, signal: 65 })], /from 0 to 64/],
    ["a signal below 0", [S, frame("X", { ...END, signal: -9 })], /not an amount/],
    ["numbers as text of 1 MB", [S, frame("X", { ...END, cpuSeconds: "9".repeat(60_000) })], /not an amount: 9{50}$/],
    ["an amount that is a list in lists", [S, frame("X", `{"status":0,"signal":0,"cpuSeconds":${nested}}`)], /object/],
    ["an object that cannot be text", [S, frame("X", { ...END, cpuSeconds: { toString: 1 } })], /object/],
    ["the name of a prototype", [S, frame("X", '{"__proto__":{"status":0},"constructor":1}')], /from 0 to 255/],
    ["NaN", [S, frame("X", '{"status":NaN}')], /cannot be read/],
    ["1 MiB of lists in lists", [S, frame("X", deep)], /JSON of 1048566 bytes/],
    ["a report of 1 MiB", [S, frame("X", { ...END, report: "x".repeat(MEBIBYTE - 500) })], /JSON of \d+ bytes/],
    ["an error that is a list in lists", [frame("H", `{"error":${nested}}`)], /cannot be read/],
    ["an error of several lines", [frame("H", { error: "a\nb\u001b[31m" })], /cannot be read: a b \[31m/],
    ["a length of 4 GiB", [S, Buffer.from("O\xff\xff\xff\xff", "latin1")], /frame of 4294967295 bytes/],
    ["a frame that does not end", [S, frame("O", "abc").subarray(0, 7)], /end of a killed program did not come/],
    ["silence", [], /the start did not come/],
    ["no end after the kill", [S], /end of a killed program did not come/],
    ["no submission after the end", [S, X], /the submission did not come/],
    ["no end of the submission", [S, X, announced(9), frame("D", "a")], /the submission did not come/],
    ["output without end, after the kill too", endless, /end of a killed program did not come/],
    ["a connection that it ends", (connection) => connection.end(S), /its connection ended/],
    ["a connection that breaks in a frame", (connection) => connection.end(X.subarray(0, 9)), /its connection ended/],
  ];
  for (const [name, lie, detail] of broken)
    test(`the sandbox is given up in time and the execution is lost after ${name}`, async () => {
      const { result, seconds, alive, liar } = await lied(lie);
      const ended = /killed program/.test(String(detail)) ? ["timedOut", "outputLimit"] : ["lost"];
      assert.ok(ended.includes(result.outcome), `${result.outcome} ${result.detail}`);
      if (result.outcome === "lost") assert.match(result.detail, detail);
      assert.equal(alive, false);
      assert.ok(seconds < 2, `${seconds} s`);
      assert.ok(liar.heard.split("K").length - 1 <= 1, liar.heard);
    });

  test("a zygote cannot report more time or memory than the machine has", async (t) => {
    const much = { ...END, status: 255, signal: 0, cpuSeconds: 1e308, peakMemoryBytes: 1e308, seconds: 1e308 };
    const { result, seconds } = await lied([S, frame("X", much), E, F]);
    assert.deepEqual([result.outcome, result.exitStatus, result.peakMemoryBytes], ["failed", 255, totalmem()]);
    assert.ok(result.cpuSeconds <= seconds * cpus().length);
    let most = 0;
    const progress = frame("P", { cpuSeconds: 1e308, memoryBytes: 1e308 });
    const liar = new Liar(frame("H", HELLO), (connection) => connection.write(Buffer.concat([S, progress, X, E, F])));
    const sandbox = await startFor(t, liar);
    await execute(sandbox, REQUEST, { onProgress: ({ cpuSeconds }) => (most = Math.max(most, cpuSeconds)) });
    assert.ok(most > 0 && most < 100, `${most} s`);
  });

  test("frames after the last one make the actor give up the sandbox, and the result counts", async () => {
    const { result, alive } = await lied([S, X, E, F, S], PATIENT_REQUEST, PATIENT);
    assert.deepEqual([result.outcome, alive], ["completed", false]);
  });

  test("a zygote that sends frames between two programs or before the first breaks its sandbox", async (t) => {
    const liar = new Liar(frame("H", HELLO), (connection) => {
      connection.write(Buffer.concat([S, X, E, F]));
      setTimeout(() => connection.write(S), 20);
    });
    t.after(() => liar.close());
    const sandbox = await liar.start({ deadlines: PATIENT });
    assert.equal((await execute(sandbox, PATIENT_REQUEST)).outcome, "completed");
    await sandbox.ended;
    assert.match(sandbox.fault!.message, /while nothing runs/);
    const hasty = new Liar(Buffer.concat([frame("H", HELLO), S, X, E, F]), () => {});
    t.after(() => hasty.close());
    await assert.rejects(hasty.start(), { code: "sandbox", message: /frame "S" while nothing runs/ });
  });

  test("frames that arrive byte by byte make an execution like any other", async () => {
    const { result, alive } = await lied(
      async (connection) => {
        for (const byte of Buffer.concat([S, frame("O", "out"), X, announced(3), frame("D", "abc"), F])) {
          connection.write(Buffer.from([byte]));
          await nextTurn();
        }
      },
      PATIENT_REQUEST,
      PATIENT,
    );
    const { outcome, terminalOutput, submission } = result;
    assert.deepEqual([outcome, String(terminalOutput), String(submission), alive], ["completed", "out", "abc", true]);
  });

  test("a zygote that does not read its programs gets no more of them", async () => {
    const program = Buffer.concat([REQUEST.program, Buffer.alloc(4 * MEBIBYTE)]);
    const { result, alive } = await lied(
      (connection) => {
        connection.pause();
        connection.write(Buffer.concat([S, X, E, F]));
      },
      { ...REQUEST, program },
    );
    assert.deepEqual([result.outcome, alive], ["lost", false]);
    assert.match(result.detail, /has not read/);
  });
});

// --- Any frames ------------------------------------------------------------------------------------------------------

const number = fc.oneof(
  fc.constantFrom(0, 1, 9, 255, 64, 65, -1, 0.5, 1e9, 1e15, 1e308, Number.MAX_SAFE_INTEGER),
  fc.double(),
);
const value = fc.oneof(number, fc.jsonValue(), fc.constantFrom(null, true, "NaN", "1", [], {}, { toString: 1 }));
const fieldsOf = (...names: string[]) =>
  fc.record(Object.fromEntries(names.map((name) => [name, value])), { requiredKeys: [] });
const json = fc.oneof(
  fieldsOf("status", "signal", "cpuSeconds", "peakMemoryBytes", "seconds", "killedFor", "diskFull", "report"),
  fieldsOf("bytes", "refused", "present", "error", "level", "cpuSeconds", "memoryBytes"),
  fc.constantFrom(END, NONE, HELLO, { bytes: 2, present: true }, { cpuSeconds: 0, memoryBytes: 0 }),
);
const payload = fc.oneof(
  json.map((it) => Buffer.from(JSON.stringify(it) ?? "")),
  fc.constantFrom("", "{", "null", "NaN", '{"__proto__":{"end":1}}', nested, "ab").map((text) => Buffer.from(text)),
  fc.uint8Array({ maxLength: 2000 }).map((bytes) => Buffer.from(bytes)),
);
const anyFrame = fc
  .tuple(fc.constantFrom(..."HSOPXEDFCRK\0\xff"), payload)
  .map(([kind, bytes]) => encodeFrame(kind, bytes));
/** The right order of frames, in which some are missing, repeated or replaced. */
const almostRight = fc
  .array(fc.oneof({ arbitrary: fc.constant("right"), weight: 8 }, fc.constantFrom("left out", "twice"), anyFrame), {
    minLength: 8,
    maxLength: 8,
  })
  .map((changes) =>
    [S, frame("O", "text\n"), frame("P", { cpuSeconds: 0, memoryBytes: 0 }), X, announced(2), frame("D", "ab"), F, E]
      .flatMap((right, index) => {
        const change = changes[index]!;
        if (typeof change !== "string") return [right, change];
        return change === "left out" ? [] : change === "twice" ? [right, right] : [right];
      })
      .slice(0, -1),
  );
const bytes = fc.oneof(
  almostRight.map((list) => Buffer.concat(list)),
  fc.array(anyFrame, { maxLength: 12 }).map((list) => Buffer.concat([S, ...list])),
  fc.uint8Array({ maxLength: 3000 }).map((list) => Buffer.from(list)),
);
/** How the frames are sent: in chunks of a size, cut off at a share of them, with the connection ended or left open. */
const manner = fc.record({
  chunkBytes: fc.constantFrom(1, 7, 100, 1 << 20),
  share: fc.oneof({ arbitrary: fc.constant(1), weight: 4 }, fc.double({ min: 0, max: 1, noNaN: true })),
  ends: fc.boolean(),
});
type Manner = { chunkBytes: number; share: number; ends: boolean };

test("any bytes give one bounded result in time and leave the neighbour, the timers and the process alone", async (t) => {
  const faults: unknown[] = [];
  const note = (fault: unknown) => faults.push(fault);
  process.on("unhandledRejection", note).on("uncaughtExceptionMonitor", note);
  const honest = new Liar(frame("H", HELLO), (connection) => connection.write(Buffer.concat([S, X, E, F])));
  const neighbour = await startFor(t, honest, { deadlines: {} });
  await execute(neighbour, PATIENT_REQUEST);
  const timersBefore = count("Timeout");
  const request = { ...REQUEST, limits: { ...LIMITS, timeoutSeconds: 0.03 } };
  const deadlines = { programStartSeconds: 0.03, killSeconds: 0.03, submissionSeconds: 0.03 };
  const tryBytes = async (all: Uint8Array, { chunkBytes, share, ends }: Manner) => {
    const sent = all.subarray(0, Math.ceil(all.length * share));
    const send: Lie = async (connection) => {
      for (let at = 0; at < sent.length && !connection.destroyed; at += Math.max(chunkBytes, sent.length >> 5)) {
        connection.write(sent.subarray(at, at + Math.max(chunkBytes, sent.length >> 5)));
        if (chunkBytes < 100) await nextTurn();
      }
      if (ends) connection.end();
    };
    const { seconds } = await lied(send, request, deadlines);
    assert.ok(seconds < 2, `${seconds} s`);
    assert.equal((await execute(neighbour, PATIENT_REQUEST)).outcome, "completed");
  };
  const started = performance.now();
  /** Settles when the newest try has ended: at the end of its time, fast-check leaves one behind. */
  let newest: Promise<void> | undefined;
  await fc.assert(
    fc.asyncProperty(bytes, manner, (all, how) => {
      newest = tryBytes(all, how);
      return newest;
    }),
    { numRuns: 1e9, interruptAfterTimeLimit: FUZZ_SECONDS * 1000, markInterruptAsFailure: false },
  );
  await newest;
  await sleep(50);
  assert.ok(count("Timeout") <= timersBefore, "timers are left");
  assert.deepEqual(faults, []);
  assert.ok(performance.now() - started < (FUZZ_SECONDS + 10) * 1000);
  process.off("unhandledRejection", note).off("uncaughtExceptionMonitor", note);
});

const count = (resource: string) => process.getActiveResourcesInfo().filter((name) => name === resource).length;
