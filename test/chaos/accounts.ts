/** The accounts of a run after any trouble: every sample was trained on once, or the store says why not; the files agree. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";

type Row = Record<string, number | string | null>;

export interface Audit {
  /** One sentence each; empty if all is well. */
  findings: string[];
  /** Numbers of samples and attempts by their end. */
  counts: Record<string, number>;
}

export interface Expected {
  iterations: number;
  batch: number;
}

/** Queries that give no row in a sound store. */
const NEVER: readonly [finding: string, sql: string][] = [
  [
    "a sample counts as trained on and is in no batch, or the other way round",
    `SELECT id FROM samples WHERE (used = 'trained') IS NOT (id IN (SELECT sample FROM used))
       AND (used = 'trained' OR id IN (SELECT sample FROM used))`,
  ],
  [
    "an execution has two accepted results",
    "SELECT execution FROM attempts WHERE state = 'accepted' GROUP BY execution HAVING count(*) > 1",
  ],
  [
    "an accepted attempt and the result of its execution do not belong together",
    `SELECT execution FROM attempts WHERE state = 'accepted'
       AND (execution, number) NOT IN (SELECT execution, attempt FROM results)
     UNION SELECT execution FROM results
       WHERE (execution, attempt) NOT IN (SELECT execution, number FROM attempts WHERE state = 'accepted')`,
  ],
  [
    "a sample is finished without a result, or has a result and is not finished",
    `SELECT id FROM samples WHERE state <> 'discarded' AND (state = 'finished') <> (id IN (SELECT execution FROM results))`,
  ],
  [
    "a finished sample has no grade",
    `SELECT id FROM samples WHERE state IN ('finished', 'notExecuted') AND id NOT IN (SELECT sample FROM grades)`,
  ],
  [
    "an attempt ended without a result and without a reason",
    "SELECT execution FROM attempts WHERE state IN ('expired', 'failed', 'revoked') AND coalesce(reason, '') = ''",
  ],
  [
    "a sample is lost although no attempt of it was",
    "SELECT id FROM samples s WHERE state = 'lost' AND NOT EXISTS (SELECT 1 FROM attempts WHERE execution = s.id AND state IN ('expired', 'failed'))",
  ],
  [
    "an attempt runs although its execution is not leased, or the other way round",
    `SELECT execution FROM attempts JOIN samples ON id = execution WHERE attempts.state = 'running' AND samples.state <> 'leased'
     UNION SELECT id FROM samples WHERE state = 'leased' AND id NOT IN (SELECT execution FROM attempts WHERE state = 'running')`,
  ],
  ["a row refers to a row that is missing", 'SELECT "table" FROM pragma_foreign_key_check'],
  ["SQLite finds the file damaged", "SELECT integrity_check FROM pragma_integrity_check WHERE integrity_check <> 'ok'"],
];

/** Audits the store of a run that has ended. It is only read. */
export function auditStore(path: string, { iterations, batch }: Expected): Audit {
  const findings: string[] = [];
  const counts: Record<string, number> = {};
  let database: DatabaseSync | undefined;
  try {
    database = new DatabaseSync(path, { readOnly: true });
    const query = (sql: string) => database!.prepare(`${USED} ${sql}`).all() as Row[];
    const used = query("SELECT iteration, sample FROM used ORDER BY iteration");
    const sizes = Array.from({ length: iterations }, (_, i) => used.filter((row) => row.iteration === i + 1).length);
    if (sizes.some((size) => size !== batch) || used.length !== iterations * batch)
      findings.push(`${iterations} iterations of ${batch} samples were asked for; they trained on ${sizes}`);
    counts.doubled = used.length - new Set(used.map(({ sample }) => sample)).size;
    if (counts.doubled > 0) findings.push(`${counts.doubled} samples were trained on twice`);
    for (const [finding, sql] of NEVER) {
      const rows = query(sql);
      if (rows.length > 0) findings.push(`${finding}: ${rows.slice(0, 5).flatMap(Object.values)} (${rows.length})`);
    }
    for (const { what, n } of query(FATES)) counts[String(what)] = Number(n);
  } catch (error) {
    findings.push(`${path} cannot be read: ${(error as Error).message}`);
  } finally {
    database?.close();
  }
  return { findings, counts };
}

const USED = `WITH used AS (SELECT iteration, sample FROM batches JOIN iterations USING (lineage, iteration)
  WHERE superseded_by IS NULL)`;

/** Counts samples by their end, and attempts that were lost by the reason. */
const FATES = `SELECT coalesce('samples ' || used, CASE state
    WHEN 'lost' THEN 'samples lost: ' || (SELECT reason FROM attempts WHERE execution = id ORDER BY number DESC LIMIT 1)
    WHEN 'discarded' THEN 'samples discarded' ELSE 'samples left over when the run was over' END) AS what, count(*) AS n
  FROM samples GROUP BY what
  UNION ALL SELECT 'attempts ' || state || coalesce(': ' || reason, ''), count(*) FROM attempts GROUP BY state, reason
  UNION ALL SELECT 'learners', count(*) FROM lineages`;

/** Files of a run that has succeeded, without the files that depend on its programs. */
const FILES = [
  "trainingrun.yaml",
  "metrics.jsonl",
  "summary.json",
  "report.html",
  "store.sqlite",
  "tensorboard",
  "fence.json",
];
/** Names of files that exist only while a run works. */
const PARTIAL = /^lock$|\.new$|\.partial|\.tmp|^fence\.json\.|-journal$/;

/** Audits the folder of a run that has succeeded: each iteration has one line, the summary reports success, and no partial file is left. */
export function auditFolder(directory: string, { iterations, batch }: Expected): string[] {
  const missing = FILES.filter((name) => !existsSync(join(directory, name)));
  if (missing.length > 0) return [`${missing} missing in ${directory}`];
  const findings: string[] = [];
  const read = (name: string) => readFileSync(join(directory, name), "utf8");
  const lines = read("metrics.jsonl")
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Record<string, number>);
  const found = lines.map(({ iteration, samples }) => `${iteration}:${samples}`);
  const wanted = Array.from({ length: iterations }, (_, i) => `${i + 1}:${batch}`);
  if (String(found) !== String(wanted)) findings.push(`metrics.jsonl has the iterations ${found}`);
  const { state, iterations: done } = JSON.parse(read("summary.json")) as { state: string; iterations: number };
  if (state !== "succeeded" || done !== iterations) findings.push(`summary.json says: ${state}, ${done} iterations`);
  const partial = readdirSync(directory, { recursive: true, encoding: "utf8" }).filter((path) =>
    PARTIAL.test(path.slice(path.lastIndexOf("/") + 1)),
  );
  if (partial.length > 0) findings.push(`left over in ${directory}: ${partial}`);
  return findings;
}
