/** Two iterations of the quickstart, as the README starts it. Ends with 1 if it leaves a file out. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";

const FILES = ["trainingrun.yaml", "metrics.jsonl", "store.sqlite", "report.html", "summary.json"];

const folder = mkdtempSync(join(tmpdir(), "longrun-ci-"));
try {
  const run = join(folder, "run");
  const args = ["run", "--silent", "quickstart", "--", "--out", run, "--set", "spec.stopping.iterations=2"];
  const { status } = spawnSync("npm", args, { stdio: "inherit" });
  const empty = FILES.filter((file) => !(statSync(join(run, file), { throwIfNoEntry: false })?.size ?? 0));
  if (empty.length > 0) throw new Error(`the quickstart left no ${empty.join(", ")}`);
  const lines = readFileSync(join(run, "metrics.jsonl"), "utf8").split("\n").filter(Boolean).length;
  if (lines !== 2) throw new Error(`the quickstart's metrics.jsonl has ${lines} lines, not 2`);
  process.exitCode = status ?? 1;
} catch (error) {
  process.stderr.write(`${(error as Error).message}\n`);
  process.exitCode = 1;
} finally {
  rmSync(folder, { recursive: true, force: true });
}
