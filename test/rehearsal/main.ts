/**
 * `npm run test:rehearsal [FILE …]`: runs the tests that need the rehearsal (README.md), one file after the other. If it cannot be built
 * they are skipped, and one line says why. `npm run test:rehearsal -- --plans [--missing]` rehearses the table of plans instead (plans.ts).
 */
import { spawnSync } from "node:child_process";
import { globSync } from "node:fs";
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
const files = given.length > 0 ? given : globSync(`${import.meta.dirname}/*.rehearsal.ts`).sort();
const { status } = spawnSync(
  process.execPath,
  ["--test", "--test-concurrency=1", "--test-timeout=600000", "--test-force-exit", ...files],
  { stdio: "inherit", env: { ...process.env, ...rehearsalEnvironment() } },
);
process.exit(status ?? 1);
