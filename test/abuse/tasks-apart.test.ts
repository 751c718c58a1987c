/** One actor has the public data of every task of a run: a program can read only the data of its own task. */
import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ActorError } from "../../actor/errors.ts";
import { execute } from "../../actor/execution.ts";
import { startIsolated } from "../../actor/isolation.ts";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import { ensurePythonEnvironment } from "../../actor/python-env.ts";

const python = join((await ensurePythonEnvironment()).directory, "bin", "python");

for (const level of ["namespaces", "landlock"] as const)
  test(`${level}: a program cannot read the data of another task of the run`, async (context) => {
    const folder = mkdtempSync(join(tmpdir(), "longrun-apart-"));
    const inputs = Object.fromEntries(["mine", "other"].map((task) => [task, join(folder, task)]));
    for (const [task, path] of Object.entries(inputs)) {
      mkdirSync(path);
      writeFileSync(join(path, "train.csv"), `secret of ${task}`);
    }
    // Possible places of the other task's data: its path outside, its path in the sandbox, and beside the program's own input.
    const program = `
import glob
print("own:", open("input/train.csv").read())
places = ["${inputs.other}/train.csv", "input/../../other/train.csv"]
places += glob.glob("/*/inputs/*/train.csv") + glob.glob("/inputs/*/train.csv") + glob.glob("../*/train.csv")
for place in places:
    try:
        text = open(place).read()
        print("BREACH" if "other" in text else "own again", place)
    except OSError:
        print("closed")
`;
    try {
      const { sandbox } = await startIsolated({ python, warm: [], space: join(folder, "space"), inputs, level });
      const run = (task: string) =>
        execute(sandbox, {
          task,
          program: Buffer.from(program),
          nonce: "",
          limits: { ...DEFAULT_LIMITS, timeoutSeconds: 20 },
          seed: 1,
        });
      const mine = (await run("mine")).terminalOutput.toString();
      const other = (await run("other")).terminalOutput.toString();
      await sandbox.stop();
      assert.match(mine, /^own: secret of mine\n/);
      assert.match(mine, /closed/);
      assert.doesNotMatch(mine, /BREACH/);
      assert.match(other, /^own: secret of other\n/, "the same sandbox, of the other task");
    } catch (error) {
      if (!(error instanceof ActorError) || error.code !== "isolation") throw error;
      context.skip(error.message);
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
