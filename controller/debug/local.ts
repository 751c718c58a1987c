/** Contents of a support bundle for a run folder: the manifest, the progress and the logs. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { BundleFile } from "./pack.ts";

/** Size of a log's newest part that is collected. */
const LOG_BYTES = 4 * 2 ** 20;
const WHOLE = ["trainingrun.yaml", "summary.json", "metrics.jsonl", "fence.json"];

/** Only counts: programs, their output and submissions, and weights are left out. */
const QUERIES: Record<string, string> = {
  samples: "SELECT purpose, state, used, count(*) AS samples FROM samples GROUP BY 1, 2, 3",
  results:
    "SELECT outcome, count(*) AS executions, avg(duration_seconds) AS seconds, max(peak_memory_bytes) AS bytes, sum(forged_markers) AS forged FROM results GROUP BY 1",
  attempts: "SELECT state, reason, count(*) AS attempts FROM attempts GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 100",
  grades: "SELECT valid, reason, count(*) AS samples FROM grades GROUP BY 1, 2 ORDER BY 3 DESC LIMIT 100",
  checkpoints:
    "SELECT lineage, iteration, path, digest, committed_at, superseded_by FROM checkpoints ORDER BY iteration",
};

export function localFiles(directory: string): BundleFile[] {
  const files: BundleFile[] = [];
  for (const name of WHOLE)
    if (existsSync(join(directory, name)))
      files.push({ path: name, text: readFileSync(join(directory, name), "utf8") });
  const logs = join(directory, "logs");
  for (const name of existsSync(logs) ? readdirSync(logs).sort() : [])
    files.push({ path: `logs/${name}`, text: tail(join(logs, name)) });
  files.push({ path: "files.txt", text: listing(directory) });
  const store = join(directory, "store.sqlite");
  if (existsSync(store)) files.push({ path: "store.json", text: counts(store) });
  return files;
}

function tail(path: string): string {
  const bytes = readFileSync(path);
  if (bytes.length <= LOG_BYTES) return bytes.toString("utf8");
  return `[the first ${bytes.length - LOG_BYTES} bytes are left out]\n${bytes.subarray(-LOG_BYTES).toString("utf8")}`;
}

function listing(directory: string): string {
  const entries = readdirSync(directory, { recursive: true, withFileTypes: true }).filter((entry) => entry.isFile());
  const lines = entries.map((entry) => {
    const path = join(entry.parentPath, entry.name);
    return `${String(statSync(path).size).padStart(12)} ${relative(directory, path)}`;
  });
  return `${lines.sort().join("\n")}\n`;
}

function counts(path: string): string {
  const store = new DatabaseSync(path, { readOnly: true });
  try {
    const rows = Object.entries(QUERIES).map(([name, sql]) => {
      try {
        return [name, store.prepare(sql).all()];
      } catch (error) {
        return [name, (error as Error).message]; // the bundle shows that the store is damaged
      }
    });
    return JSON.stringify(Object.fromEntries(rows), null, 2);
  } finally {
    store.close();
  }
}
