/** `longrun help COMMAND` says what there is to say, also of commands that are programs of other parts. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { describe, test } from "node:test";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const CLI = fileURLToPath(new URL("../../controller/cli.ts", import.meta.url));
const longrun = (...args: string[]) => promisify(execFile)(process.execPath, [CLI, ...args]);

/** What only the command itself knows. */
const SAYS: Record<string, RegExp> = {
  run: /--resume <DIR>/,
  grade: /--batch FILE\.jsonl/,
  task: /--rows N/,
  report: /DIR\/report\.html/,
  pretrain: /--learning-rate R/,
  logprobs: /--adapter DIR/,
  generate: /--temperature T/,
  model: /--shard-size BYTES/,
  serve: /--served-model-name NAME/,
};

describe("longrun help", { concurrency: 2 }, () => {
  for (const [command, expected] of Object.entries(SAYS))
    test(command, async () => {
      const { stdout, stderr } = await longrun("help", command);
      assert.match(stdout, expected);
      assert.equal(stderr, "");
    });

  test("of an unknown command refuses it, and says what is close", async () => {
    const refused = { code: 2, stdout: "", stderr: "error: unknown command 'modle'\n(Did you mean model?)\n" };
    await assert.rejects(longrun("help", "modle"), refused);
  });

  test("--version is the package's", async () =>
    assert.match((await longrun("--version")).stdout, /^\d+\.\d+\.\d+\n$/));
});
