/** Runs three hostile programs beside an honest one and one that must be stopped, each in its own slot of one actor. */
import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ActorError } from "../../actor/errors.ts";
import { execute } from "../../actor/execution.ts";
import { startIsolated } from "../../actor/isolation.ts";
import { DEFAULT_LIMITS } from "../../actor/limits.ts";
import { ensurePythonEnvironment } from "../../actor/python-env.ts";
import type { Sandbox } from "../../actor/sandbox.ts";
import type { Limits } from "../../proto/execution.ts";

const LIMITS: Limits = {
  ...DEFAULT_LIMITS,
  timeoutSeconds: 3,
  memoryBytes: 256 << 20,
  outputBytes: 64 << 20,
  keptOutputBytes: 8 << 10,
  scratchBytes: 64 << 20,
  scratchFiles: 500,
  processes: 32,
  submissionBytes: 1 << 20,
};
/** How late a program may be stopped after its time limit. */
const LATE_SECONDS = 1;
const HONEST = `
total = sum(number * number for number in range(200_000))
open("submission.csv", "w").write(str(total))
`;
/** They take processors with threads and, if possible, processes; make system calls; and fill and empty their directory. */
const HOSTILE = {
  burns: `
import os, threading
try:
    for _ in range(6):
        os.fork()
except OSError:
    pass
def burn():
    while True:
        os.getppid()
for _ in range(3):
    threading.Thread(target=burn).start()
`,
  prints: `
import os
while True:
    os.write(1, b"\\n" * 4096)
`,
  fills: `
import os, time
while True:
    for number in range(300):
        with open(str(number), "wb") as file:
            file.write(b"x" * 100_000)
    for number in range(300):
        os.unlink(str(number))
`,
};

const environment = (await ensurePythonEnvironment()).directory;
const python = join(environment, "bin", "python");

for (const level of ["namespaces", "landlock"] as const)
  test(`${level}: three hostile neighbours change no outcome of a program and delay no kill`, async (context) => {
    const space = mkdtempSync(join(tmpdir(), "longrun-neighbours-"));
    chmodSync(space, 0o755);
    const sandboxes: Sandbox[] = [];
    try {
      for (let slot = 0; slot < 5; slot++) {
        const options = { python, warm: [], space: join(space, String(slot)), inputs: {}, level };
        sandboxes.push((await startIsolated(options)).sandbox);
      }
      const [honest, stopped, ...others] = sandboxes as [Sandbox, Sandbox, ...Sandbox[]];
      const run = (sandbox: Sandbox, text: string, limits = LIMITS) =>
        execute(sandbox, { task: "", program: Buffer.from(text), nonce: "", limits, seed: 1 });
      const hostile = Object.values(HOSTILE).map((text, index) => run(others[index]!, text));
      const late = run(stopped, "import time\ntime.sleep(60)", { ...LIMITS, timeoutSeconds: 1 });
      for (let times = 0; times < 3; times++) {
        const result = await run(honest, HONEST);
        assert.equal(result.outcome, "completed", result.detail);
        assert.equal(result.submission?.toString(), "2666646666700000");
      }
      const end = await late;
      assert.equal(end.outcome, "timedOut");
      assert.ok(end.durationSeconds < 1 + LATE_SECONDS, `stopped after ${end.durationSeconds} s`);
      for (const [index, result] of (await Promise.all(hostile)).entries()) {
        const said = `${Object.keys(HOSTILE)[index]}: ${result.outcome} ${result.detail}, ${result.durationSeconds} s`;
        assert.ok(["timedOut", "outputLimit", "outOfMemory", "failed"].includes(result.outcome), said);
        assert.ok(result.durationSeconds < LIMITS.timeoutSeconds + LATE_SECONDS, said);
      }
      assert.ok(
        sandboxes.every((sandbox) => sandbox.alive),
        "a sandbox broke",
      );
    } catch (error) {
      if (!(error instanceof ActorError) || error.code !== "isolation") throw error;
      context.skip(error.message);
    } finally {
      await Promise.all(sandboxes.map((sandbox) => sandbox.stop()));
      rmSync(space, { recursive: true, force: true });
    }
  });
