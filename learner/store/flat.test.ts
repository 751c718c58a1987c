/** The statements of an iteration take as long after many samples as after few. */
import assert from "node:assert/strict";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { test } from "node:test";
import { Attempts } from "./attempts.ts";
import { PolicyVersions } from "./iterations.ts";
import { Leases } from "./leases.ts";
import { newResult, newSample } from "./store.fixture.ts";
import { Store } from "./store.ts";
import { finishAll, newStore, taken } from "./store-tests.fixture.ts";

/** Methods that an iteration does not call; they may read every sample. */
const ONCE = [
  // when a learner starts, continues or ends
  ...[
    "beginLineage",
    "continueLineage",
    "originOf",
    "ownerOf",
    "discardOtherTasks",
    "taskNames",
    "nextSequence",
    "iterationRows",
  ],
  ...["startGrace", "close"],
  // by `longrun solve` and `longrun compare`
  "outcomes",
  // when a better program was found
  "gaps",
  // before the first iteration
  ...["addWarmStep", "dropWarmSteps", "warmSteps"],
  // by `longrun samples`, by a replay, for the samples of one evaluation, and while every sample has failed
  ...["allSamples", "samplesOf", "samplesFor", "newestFailed"],
];

/** Scans that a query plan may have, because the table stays small or the scan ends early. */
const SHORT: Record<string, RegExp> = {
  "a handful of rows": /^SCAN (tallies|writer|CONSTANT ROW|sqlite_schema)$/,
  "parameters, and what was computed from submissions": /^SCAN (json_each VIRTUAL TABLE|ranked|kept|\(subquery)/,
  "a checkpoint deletes the others": /^SCAN submissions( USING COVERING INDEX \w+)?$/,
  "partial indexes whose rows leave them":
    /^SCAN \w+ USING (COVERING )?INDEX (samples_ungraded|samples_queued|checkpoints_kept)$/,
  "disrupted attempts alone": /^SCAN attempts USING INDEX attempts_disrupted$/,
};
/** SQLite skips this check of a foreign key while no foreign key is violated. */
const SKIPPED = { sql: /^INSERT +INTO samples/, step: /^SCAN batches$/ };

/** Runs one iteration that calls every other method. Its attempts fail in every way. */
function iterate(store: Store, iteration: number): void {
  const { leases } = store;
  const name = (id: string) => `${iteration}-${id}`;
  const which = { since: iteration - 1, until: iteration };
  const ids = ["a", "b", "c", "d", "e", "f"].map(name);
  store.addSamples(ids.map((id) => newSample(id, { iteration: iteration - 1 })));
  leases.attempts.hasQueued();
  const [settled, lost, failed, disrupted] = [taken(store), taken(store), taken(store), taken(store, "actor-1")];
  leases.fail("actor-0", settled, "its sandbox ended", { sandboxBroke: true });
  leases.settle("actor-0", settled, newResult({ outcome: "outOfMemory" }));
  leases.reconcile("actor-0", [failed]);
  leases.fail("actor-0", failed, "no heartbeat");
  leases.disrupted("actor-0");
  leases.attempts.leasedAtMs(failed);
  leases.attempts.expectation(lost.execution);
  leases.attempts.brokenSandboxes(lost.execution);
  leases.longestDuration(disrupted);
  leases.disruptAll("suspended");
  leases.extend("actor-1", [disrupted]);
  leases.expire();
  leases.overdueSeconds();
  leases.runningOf("actor-0");
  leases.accept("actor-1", disrupted, newResult());
  finishAll(store, { submission: "x" });
  for (const { id, sequence } of store.ungraded())
    store.setGrade(id, { valid: true, score: sequence, reward: 1, reason: "valid" }, { score: 1, reason: "valid" });
  store.privateScore(ids[0]!);
  for (const [id, state] of [
    ["g", "notExecuted"],
    ["h", "queued"],
  ] as const)
    store.together([() => store.addSamples([newSample(name(id), { iteration, state })])]);
  store.checkFence();
  store.totals();
  leases.disruptions();
  store.takeable(which);
  store.unfinished(which);
  store.openGroups(which);
  const batch = store.groupSamples(ids, which);
  assert.equal(batch.length, ids.length);
  assert.ok(store.submission(ids.at(-1)!));
  for (const { id } of batch) store.addPreviousSolution({ id, iteration });
  store.previousSolutions("diamonds", 3);
  store.addFailedSolutions([batch[0]!.id], iteration);
  store.failedSolutions("diamonds", { limit: 3, maxDepth: 3 });
  store.counts();
  store.abandonedSeconds(iteration - 1);
  store.commitIteration({ iteration, sampleIds: ids, droppedIds: [name("g")], metrics: {} });
  assert.equal(store.batchScores("diamonds", { lineage: store.lineage, iteration }).length, ids.length);
  assert.equal(store.scoreBefore(ids[0]!), undefined);
  store.discardUnfinished("the batch is complete");
  store.commitCheckpoint({ iteration, digest: "d", path: `c${iteration}` });
  store.keepCheckpoints(2);
  assert.ok(store.bestSample("diamonds", "Higher"));
  store.samples([ids[0]!]);
  store.nextBatch(9, which);
}

test("no statement of an iteration goes through all samples", async () => {
  const { store, path } = await newStore({ maxAttempts: 9 });
  const called = new Set(ONCE);
  const own = [Store, PolicyVersions, Leases, Attempts].map(({ prototype }) => prototype as unknown as Methods);
  const methods = own.flatMap((prototype) =>
    Object.entries(Object.getOwnPropertyDescriptors(prototype)).flatMap(([name, { value }]) =>
      name === "constructor" || value === undefined ? [] : [{ prototype, name, value }],
    ),
  );
  for (const { prototype, name, value } of methods)
    prototype[name] = function (this: unknown, ...given: unknown[]) {
      called.add(name);
      return value.apply(this, given);
    };
  const statements = new Set<string>();
  const runs = (["all", "get", "run"] as const).map((name) => ({ name, value: StatementSync.prototype[name] }));
  for (const { name, value } of runs)
    StatementSync.prototype[name] = function (this: StatementSync, ...given: never[]) {
      statements.add(this.sourceSQL);
      return (value as (...given: never[]) => never).apply(this, given);
    };
  try {
    iterate(store, 1);
  } finally {
    for (const { name, value } of runs) StatementSync.prototype[name] = value as never;
    for (const { prototype, name, value } of methods) prototype[name] = value;
  }
  const left = methods.filter(({ name }) => !called.has(name)).map(({ name }) => name);
  assert.deepEqual(left, [], "call them in iterate(), or name them in ONCE");

  const database = new DatabaseSync(path, { readOnly: true });
  const long = [...statements].flatMap((sql) => {
    const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all();
    const steps = plan.map(({ detail }) => String(detail)).filter(isLong);
    return steps.filter((step) => !SKIPPED.sql.test(sql) || !SKIPPED.step.test(step)).map((step) => `${step}: ${sql}`);
  });
  assert.deepEqual(long, []);
});

type Methods = Record<string, (...given: unknown[]) => unknown>;

/** Returns whether a step scans a table or an index that grows, or all samples of a purpose or a state. */
const isLong = (step: string): boolean =>
  step.startsWith("SCAN ")
    ? !Object.values(SHORT).some((short) => short.test(step))
    : step.includes("samples_by_state") && !step.includes("(purpose=? AND state=? AND used=?");

test("an iteration takes as long after 16,000 samples as after 1000", async () => {
  const { store, path } = await newStore({ maxAttempts: 9 });
  let iteration = 0;
  /** Returns the shortest of 15 iterations, in milliseconds of this thread's CPU time, which other work on the machine changes little. */
  const shortest = () => {
    const taken = Array.from({ length: 15 }, () => {
      const start = process.threadCpuUsage();
      iterate(store, ++iteration);
      const { user, system } = process.threadCpuUsage(start);
      return (user + system) / 1000;
    });
    return Math.min(...taken);
  };
  shortest(); // compiled by now
  fill(path, 1000);
  const before = shortest();
  fill(path, 15_000);
  const after = shortest();
  assert.ok(after < 2 * before, `${before.toFixed(2)} ms, then ${after.toFixed(2)} ms`);
});

/** Adds copies of a trained sample with its attempt, result and grade, each trained on. */
function fill(path: string, samples: number): void {
  const database = new DatabaseSync(path);
  database.exec(`CREATE TEMP TABLE numbers AS WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${samples})
    SELECT 'copy-${samples}-' || i AS copy FROM n`);
  const copyOf: Record<string, [key: string, without: string]> = {
    samples: ["id", "sequence"],
    attempts: ["execution", "fence"],
    results: ["execution", ""],
    grades: ["sample", ""],
  };
  for (const [table, [key, without]] of Object.entries(copyOf)) {
    const columns = database
      .prepare("SELECT name FROM pragma_table_info(?) WHERE name NOT IN (?, ?)")
      .all(table, key, without)
      .map(({ name }) => name);
    const one = `SELECT * FROM ${table} WHERE ${key} = '1-a' LIMIT 1`;
    database.exec(`INSERT INTO ${table} (${key}, ${columns}) SELECT copy, ${columns} FROM numbers, (${one})`);
  }
  database.close();
}
