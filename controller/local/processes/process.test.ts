import assert from "node:assert/strict";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../../test/until.ts";
import {
  backoffSeconds,
  describeExit,
  type Exit,
  lastWords,
  readableLine,
  SupervisedProcess,
  type Supervision,
} from "./process.ts";

const directory = mkdtempSync(join(tmpdir(), "longrun-process-"));
after(() => rmSync(directory, { recursive: true, force: true }));
const restart = { backoffSeconds: 0.02, maxBackoffSeconds: 0.05, stableSeconds: 60, maxFailures: 2 };

const supervised: SupervisedProcess[] = [];
afterEach(() => {
  for (const child of supervised.splice(0)) child.kill();
});

let count = 0;
/** Supervises a script; each start of it appends a line to the file `starts`. */
function supervise(script: string, supervision: Partial<Supervision> = {}) {
  const name = `child-${count++}`;
  const file = join(directory, `${name}.mjs`);
  const starts = join(directory, `${name}.starts`);
  const logFile = join(directory, `${name}.log`);
  writeFileSync(
    file,
    `import { appendFileSync, readFileSync } from 'node:fs';
     appendFileSync(process.argv[2], process.pid + '\\n');
     const starts = readFileSync(process.argv[2], 'utf8').trim().split('\\n').length;
     ${script}`,
  );
  const child = new SupervisedProcess(
    { name, file, args: () => [starts], logFile },
    { restart, isEnd: ({ status }) => status === 0, ...supervision },
  );
  supervised.push(child);
  // A file that is there and still empty has no start.
  const pids = (): number[] =>
    existsSync(starts) ? readFileSync(starts, "utf8").split("\n").filter(Boolean).map(Number) : [];
  return { child, pids, log: () => readFileSync(logFile, "utf8") };
}

const alive = (pid: number): boolean => {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
};
describe("a supervised process", () => {
  test("is started again until it ends by itself", async () => {
    const exits: Exit[] = [];
    const { child, pids, log } = supervise(
      "console.log('start ' + starts); if (starts < 3) process.kill(process.pid, 'SIGKILL');",
      {
        onRestart: (exit) => exits.push(exit),
      },
    );
    const fate = await child.fate;
    assert.equal(fate.kind, "ended");
    assert.equal(pids().length, 3);
    assert.deepEqual(exits.map(describeExit), ["signal SIGKILL", "signal SIGKILL"]);
    assert.match(log(), /start 1\nstart 2\nstart 3\n/);
  });

  test("is given up after too many failures in a row, with its last lines", async () => {
    const { child, pids } = supervise(
      `console.error(JSON.stringify({ level: 60, msg: 'cannot go on', err: { message: 'no such file' } })); process.exit(7);`,
    );
    const { kind, exit } = await child.fate;
    assert.equal(kind, "gaveUp");
    assert.equal(describeExit(exit), "status 7: cannot go on: no such file");
    assert.equal(pids().length, 1 + restart.maxFailures);
  });

  test("has its failures forgotten when it lived for long", async () => {
    let clock = 0;
    const { child, pids } = supervise("process.exit(starts < 6 ? 1 : 0);", { now: () => (clock += 60_000) });
    assert.equal((await child.fate).kind, "ended");
    assert.equal(pids().length, 6);
  });

  test("It can send and receive messages", async () => {
    const messages: unknown[] = [];
    const { child } = supervise("process.send({ type: 'listening', port: 7 }, () => process.exit(0));", {
      onMessage: (m) => messages.push(m),
    });
    await child.fate;
    assert.deepEqual(messages, [{ type: "listening", port: 7 }]);
  });

  test("stops when asked, and is not started again", async () => {
    const { child, pids } = supervise(
      "process.on('SIGTERM', () => process.exit(3)); process.send('ready'); setInterval(() => {}, 1000);",
    );
    await until(() => pids().length === 1, "the process runs");
    await sleep(100);
    const { kind, exit } = await child.stop(5);
    assert.deepEqual([kind, describeExit(exit)], ["stopped", "status 3"]);
    assert.equal(pids().length, 1);
  });

  test("is killed with its children when it does not stop in time", async () => {
    const { child, pids, log } = supervise(
      `import { spawn } from 'node:child_process';
       process.on('SIGTERM', () => {});
       console.log(spawn('sleep', ['1000']).pid);
       setInterval(() => {}, 1000);`,
    );
    await until(() => pids().length === 1 && /\d+\n/.test(log()), "the process runs");
    const { kind, exit } = await child.stop(0.1);
    assert.deepEqual([kind, describeExit(exit)], ["stopped", "signal SIGKILL"]);
    await until(() => !alive(Number(log())), "its child is gone");
  });

  test("can be stopped while it waits to be started again", async () => {
    const { child, pids } = supervise("process.exit(1);", {
      restart: { ...restart, backoffSeconds: 100, maxBackoffSeconds: 100 },
    });
    await until(() => pids().length === 1 && !alive(pids()[0]!), "the process has failed");
    await sleep(50);
    assert.equal((await child.stop(1)).kind, "stopped");
  });

  test("counts a forced restart as a failure", async () => {
    const { child, pids } = supervise("if (starts === 1) setInterval(() => {}, 1000);");
    await until(() => pids().length === 1, "the process runs");
    child.restartNow();
    assert.equal((await child.fate).kind, "ended");
    assert.equal(pids().length, 2);
  });
});

test("The back-off doubles up to its bound", () => {
  const policy = { backoffSeconds: 0.5, maxBackoffSeconds: 30, stableSeconds: 60, maxFailures: 9 };
  assert.deepEqual(
    [1, 2, 3, 6, 7, 8, 100].map((failures) => backoffSeconds(failures, policy)),
    [0.5, 1, 2, 16, 30, 30, 30],
  );
});

test("Log lines become readable", () => {
  const cases: [line: string, expected: string][] = [
    ["plain text", "plain text"],
    ['{"level":30,"msg":"hello"}', "hello"],
    ['{"level":50,"msg":"failed","err":{"message":"disk full"}}', "failed: disk full"],
    ['{"level":50,"msg":"disk full","err":{"message":"disk full"}}', "disk full"],
    ['{"level":50}', '{"level":50}'],
    ["{broken", "{broken"],
    ["null", "null"],
    ['{"msg":"refused: \\u001b]52;c;eA\\u0007\\u009b2J"}', "refused: ␛]52;c;eA␇\ufffd2J"],
    ["\u001b[2Jplain", "␛[2Jplain"],
  ];
  for (const [line, expected] of cases) assert.equal(readableLine(line), expected);
});

test("The error's message has the last words of the process", () => {
  const uncaught = [
    "file:///a/b.ts:12",
    "    throw new Error('the disk is full');",
    "          ^",
    "Error: the disk is full",
    "    at f (file:///a/b.ts:12:11)",
    "    at async main {",
    "  code: 'ENOSPC',",
    "  [cause]: undefined",
    "}",
    "Node.js v24.21.0",
  ];
  const cases: [lines: string[], expected: string][] = [
    [[], ""],
    [["one", "two"], "two"],
    [uncaught, "Error: the disk is full"],
    [['{"level":50,"msg":"the run failed","err":{"message":"disk full"}}'], "the run failed: disk full"],
  ];
  for (const [lines, expected] of cases) assert.equal(lastWords(lines), expected);
});
