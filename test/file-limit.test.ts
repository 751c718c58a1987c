import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { text } from "node:stream/consumers";
import { test } from "node:test";

const LIMIT = new URL("./file-limit.ts", import.meta.url).href;

/** Runs a program as a test file of `npm test`, and returns its status and what it printed, once nobody has its output any more. */
async function ended(program: string, fileSeconds: number) {
  const env = { ...process.env, NODE_TEST_CONTEXT: "child", LONGRUN_TEST_PROCESS: undefined };
  const child = spawn(process.execPath, [`--import=${LIMIT}?seconds=${fileSeconds}`, "--eval", program], {
    ...{ env, timeout: 60_000 },
    stdio: ["ignore", "ignore", "pipe"],
  });
  const [[status], stderr] = await Promise.all([once(child, "close"), text(child.stderr)]);
  return { status, stderr };
}

test("A child that a test left ends with the test file, so that Node's runner does not wait for its output", {
  skip: process.platform !== "linux" && "looks into /proc, which only Linux has",
  timeout: 60_000,
}, async () => {
  const leaves = 'require("node:child_process").spawn("sleep", ["1000"], { stdio: "inherit" }).unref()';
  const { status, stderr } = await ended(leaves, 240);
  assert.equal(status, 0);
  assert.match(stderr, /: the tests left process \d+: sleep 1000\n$/);
});

test("A test file that does not end is ended at its limit, and what kept it is named", async () => {
  const stays = `require("node:net").createServer().listen(0, "127.0.0.1")
    require("node:child_process").spawn("sleep", ["1000"], { stdio: ["pipe", "ignore", "ignore"] })`;
  const { status, stderr } = await ended(stays, 1);
  assert.equal(status, 1);
  assert.match(
    stderr,
    /: did not end within 1 s; still active: .*TCPServerWrap.*; process \d+ sleep 1000; tcp 127\.0\.0\.1:\d+\n/s,
  );
});
