/**
 * `npm run test:rehearsal [FILE …]`: runs the tests that need the rehearsal (README.md). Options are those of test/run.ts. If it
 * cannot be built they are skipped, and one line says why. `npm run test:rehearsal -- --plans [--missing]` rehearses the table of plans
 * instead (plans.ts).
 */
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
import { join } from "node:path";
import { missingRehearsal, rehearsalEnvironment } from "./build.ts";

const missing = missingRehearsal();
if (missing !== undefined) {
  process.stderr.write(`skipped: ${missing}\n`);
  process.exit(0);
}
const given = process.argv.slice(2);
if (given[0] === "--plans") {
  const { rehearsePlans } = await import("./plans.ts");
  process.exit(rehearsePlans(given[1] === "--missing"));
}
// Two files at once take up to 11 GB of memory.
const files = given.some((it) => it.endsWith(".ts")) ? [] : globSync(`${import.meta.dirname}/*.rehearsal.ts`).sort();
const run = join(import.meta.dirname, "../run.ts");
const { status } = spawnSync(
  process.execPath,
  [run, "--seconds", "1200", "--force-exit", "--waiting", "2", ...given, ...files],
  {
    stdio: "inherit",
    env: { ...process.env, ...rehearsalEnvironment() },
  },
);
process.exit(status ?? 1);
