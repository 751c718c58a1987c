/** A command ends quietly if its reader closes the pipe early, as `head -1` does. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { CLOSED_PIPE } from "../../proto/closed-pipe.ts";

const ROOT = join(import.meta.dirname, "../..");
const COMMANDS: Record<string, string> = {
  "--help": "controller/cli.ts --help",
  "help of a part": "controller/cli.ts help model",
  "a part's answer": "controller/cli.ts model info manifests/quickstart/policy",
  "what installations call": "controller/longrun.mjs --help",
  "the plugin of kubectl": "controller/plugin/kubectl-longrun.ts --help",
  "bad input whose message nobody reads": "controller/cli.ts validate nowhere.yaml 2>&1",
};

for (const [name, command] of Object.entries(COMMANDS))
  test(`${name}: a closed pipe gives no stderr and status ${CLOSED_PIPE}, as a shell reports SIGPIPE`, {
    skip: !existsSync("/bin/bash") && "bash, whose PIPESTATUS this reads, is not installed",
  }, () => {
    // The reader closes the pipe before the command writes.
    const script = `{ sleep 0.5; exec "$NODE" ${command}; } | true; exit "\${PIPESTATUS[0]}"`;
    const env = { ...process.env, NODE: process.execPath };
    const { status, stderr } = spawnSync("/bin/bash", ["-c", script], { cwd: ROOT, env, encoding: "utf8" });
    assert.equal(stderr, "");
    assert.equal(status, CLOSED_PIPE);
  });
