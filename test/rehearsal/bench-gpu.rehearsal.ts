/** The command for the day when a GPU is there: no minute of it should be lost to a typo. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import path from "node:path";
import test from "node:test";

const ROOT = path.join(import.meta.dirname, "../..");

for (const flags of [
  ["--train", "lora", "--compute", "bfloat16"],
  ["--train", "all", "--compute", "float32"],
])
  test(`npm run bench gpu -- ${flags.join(" ")}: parity and speed run to their end`, () => {
    const shape = ["--shapes", "quickstart", "--batch", "2", "--prompt", "32", "--response", "32", "--rounds", "1"];
    const { status, stdout, stderr } = spawnSync(
      process.execPath,
      ["test/bench/run.ts", "gpu", "--peak-tflops", "60", "--no-peer", ...shape, ...flags],
      { cwd: ROOT, encoding: "utf8", timeout: 300_000 },
    );
    assert.equal(status, 0, `${stdout}${stderr}`);
    for (const row of [
      /PPO step +longrun/,
      /generation +longrun/,
      /log-probs before a step against the CPU/,
      /greedy tokens/,
    ])
      assert.match(stdout, row);
    assert.doesNotMatch(stdout, /written to/);
  });
