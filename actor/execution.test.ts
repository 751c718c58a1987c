import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { type ExecutionResult, execute, judge } from "./execution.ts";
import { DEFAULT_LIMITS } from "./limits.ts";
import type { RunHandlers, Sandbox } from "./sandbox.ts";
import type { RunEnd } from "./zygote-messages.ts";

const STARVED = fileURLToPath(new URL("starved.fixture.ts", import.meta.url));

const end = (change: Partial<RunEnd> = {}): RunEnd => ({
  status: 0,
  signal: 0,
  durationSeconds: 1,
  cpuSeconds: 1,
  peakMemoryBytes: 1,
  ...change,
});

describe("judge", () => {
  const cases: [
    name: string,
    end: RunEnd | undefined,
    reason: Parameters<typeof judge>[1],
    outcome: string,
    detail: RegExp,
  ][] = [
    ["status 0", end(), undefined, "completed", /^$/],
    ["status 1", end({ status: 1 }), undefined, "failed", /exit status 1/],
    [
      "an exception",
      end({ status: 1, exception: { type: "ValueError", line: 7, memory: false } }),
      undefined,
      "failed",
      /^ValueError in line 7$/,
    ],
    [
      "an exception without a line",
      end({ status: 1, exception: { type: "ValueError", memory: false } }),
      undefined,
      "failed",
      /^ValueError$/,
    ],
    [
      "MemoryError",
      end({ status: 1, exception: { type: "_ArrayMemoryError", memory: true } }),
      undefined,
      "outOfMemory",
      /Array/,
    ],
    [
      "MemoryError that was claimed and survived",
      end({ exception: { type: "MemoryError", memory: true } }),
      undefined,
      "completed",
      /^$/,
    ],
    ["a signal", end({ signal: 11 }), undefined, "failed", /signal 11/],
    ["SIGKILL that nobody of us sent", end({ signal: 9 }), undefined, "failed", /signal 9/],
    ["the memory watch", end({ signal: 9, killedFor: "memory" }), undefined, "outOfMemory", /memory/],
    ["too many processes", end({ signal: 9, killedFor: "processes" }), undefined, "failed", /processes/],
    ["too many files", end({ signal: 9, killedFor: "scratch" }), undefined, "failed", /scratch/],
    ["the clock", end({ signal: 9 }), "timeout", "timedOut", /after 5 s/],
    ["the clock, and it had ended by itself", end({ status: 0 }), "timeout", "completed", /^$/],
    ["the clock, and a sandbox that broke over it", undefined, "timeout", "timedOut", /after 5 s/],
    ["too much output", end({ signal: 9 }), "output", "outputLimit", /printed/],
    ["too much output, ended before the signal", end(), "output", "outputLimit", /printed/],
    ["revoked", end({ signal: 9 }), "revoked", "lost", /revoked/],
    ["a broken sandbox", undefined, undefined, "lost", /it broke/],
  ];
  for (const [name, ended, reason, outcome, detail] of cases)
    test(`${name} has the outcome ${outcome}`, () => {
      const judged = judge(ended, reason, 5, "it broke");
      assert.equal(judged.outcome, outcome);
      assert.match(judged.detail, detail);
    });
});

test("a program that prints more than outputBytes is ended; the excess is not kept and its markers do not count", async () => {
  const nonce = "0123456789abcdef".repeat(2);
  const allowed = `${nonce}:loaded data\n`;
  for (const chunks of [[`${allowed}${nonce}:trained model\n`], [allowed, `${nonce}:trained model\n`]]) {
    let kills = 0;
    const sandbox = {
      run: async (_: unknown, { onStart, onOutput }: Required<RunHandlers>) => {
        onStart();
        for (const chunk of chunks) onOutput(Buffer.from(chunk));
        return end({ signal: 9 });
      },
      kill: () => ++kills > 0,
    } as unknown as Sandbox;
    const limits = { ...DEFAULT_LIMITS, outputBytes: allowed.length };
    const result = await execute(sandbox, { task: "task", program: Buffer.of(), nonce, limits, seed: 1 });
    assert.deepEqual([result.outcome, kills], ["outputLimit", 1]);
    assert.deepEqual(
      result.markers.map(({ name }) => name),
      ["loaded data"],
    );
    assert.equal(result.terminalOutput.toString(), "loaded data\n");
  }
});

const AUTOGROUP = "/proc/self/autogroup";
const skip = !existsSync(AUTOGROUP) && `there is no ${AUTOGROUP}, by which the zygote is starved here`;

test("a duration covers the whole program even if the zygote gets hardly any processor time", {
  skip,
}, async () => {
  const space = mkdtempSync(join(tmpdir(), "lr-starved-"));
  try {
    // a session of its own is also a scheduling group of its own
    const child = spawn(process.execPath, [STARVED, space], {
      ...{ detached: true, stdio: ["ignore", "pipe", "inherit"], timeout: 60_000 },
    });
    const found = JSON.parse(await text(child.stdout)) as ExecutionResult[];
    assert.equal(found.length, 5);
    for (const { outcome, durationSeconds, cpuSeconds } of found) {
      assert.equal(outcome, "completed");
      assert.ok(cpuSeconds > 0.02 && durationSeconds > 0.8 * cpuSeconds, `${durationSeconds} s of ${cpuSeconds}`);
    }
  } finally {
    rmSync(space, { recursive: true, force: true });
  }
});
