/**
 * Runs test files one after another in this process: `node --test-… together.ts FILE …`, paths from the project's root. A file that leaves
 * the process changed fails.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, describe, test } from "node:test";
import { pathToFileURL } from "node:url";
import { ROOT } from "./imports.ts";

/** Returns what the next file would notice. */
function stateOfProcess() {
  const signals = ["SIGINT", "SIGTERM", "uncaughtException", "unhandledRejection"];
  return {
    ...{ environment: { ...process.env }, folder: process.cwd(), exitCode: process.exitCode },
    replaceable: [setTimeout, setInterval, setImmediate, Date, performance.now, fetch],
    listeners: Object.fromEntries(signals.map((event) => [event, process.listenerCount(event)])),
  };
}

// A suite's tests begin after its file was evaluated, and its hooks are the file's own. Only a test can be waited for.
for (const file of process.argv.slice(2))
  await test(file, () => {
    const before = stateOfProcess();
    describe(file, async () => {
      await import(pathToFileURL(join(ROOT, file)).href);
      // Hooks run in the order of their registration: after the file's own.
      after(() => assert.deepEqual(stateOfProcess(), before, `${file} leaves the process changed`));
    });
  });
