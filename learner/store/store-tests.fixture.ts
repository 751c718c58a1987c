/** A store with a clock that tests move, and shortcuts for its leases. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { deflateSync } from "node:zlib";
import { SCHEMA_VERSION } from "./schema.ts";
import { newResult, scratchFolder } from "./store.fixture.ts";
import { openStore, type Store, type StoreOptions } from "./store.ts";

export const folder = scratchFolder();
let files = 0;
export const newPath = () => join(folder, `${files++}.sqlite`);
export const fails = (code: string, pattern = /./) => ({ name: "StoreError", code, message: pattern });

/** Opens a store whose clock stands still until `clock.seconds` is changed. */
export async function newStore(options: StoreOptions = {}, path = newPath()) {
  const clock = { seconds: 1000 };
  const store = openStore(path, {
    leaseSeconds: 10,
    leaseGraceSeconds: 5,
    maxAttempts: 2,
    now: () => clock.seconds * 1000,
    ...options,
  });
  await store.beginLineage(() => true);
  return { store, clock, path };
}

/** Leases every queued execution and hands in a result for it, with `submission` if there is one. */
export function finishAll(
  store: Store,
  { actor = "actor-0", submission }: { actor?: string; submission?: string } = {},
) {
  const result = newResult(submission === undefined ? {} : { submissionBytes: submission.length });
  const deflated = submission === undefined ? undefined : deflateSync(submission);
  for (let lease = store.leases.takeAll([actor])[0]; lease; lease = store.leases.takeAll([actor])[0])
    assert.equal(store.leases.accept(actor, lease, result, deflated), "accepted");
}

/** Leases the next execution. */
export function taken(store: Store, actor = "actor-0") {
  const lease = store.leases.takeAll([actor])[0];
  assert.ok(lease);
  return lease;
}

/** SQL that removes the additions of each version of the schema. */
const DOWNGRADES: Record<number, string> = {
  9: "DROP TABLE private_scores;",
  8: "DROP TABLE warm_steps;",
  7: `DROP TABLE failed_solutions; ALTER TABLE samples DROP COLUMN depth; ALTER TABLE samples DROP COLUMN previous_step;
      ALTER TABLE samples RENAME COLUMN kind TO kind_7;
      ALTER TABLE samples ADD COLUMN kind TEXT NOT NULL DEFAULT 'scratch' CHECK (kind IN ('scratch', 'improve'));
      UPDATE samples SET kind = kind_7;
      ALTER TABLE samples DROP COLUMN kind_7;`,
  6: `DROP TRIGGER samples_added; DROP TRIGGER samples_changed; DROP TABLE tallies;
      DROP INDEX samples_ungraded; DROP INDEX attempts_lost; DROP INDEX checkpoints_kept; DROP INDEX samples_by_state;
      CREATE INDEX samples_by_state ON samples (purpose, state, used, attempts);
      ALTER TABLE samples DROP COLUMN ungraded;`,
  5: "ALTER TABLE samples DROP COLUMN truncated;",
  4: "DROP INDEX attempts_disrupted; ALTER TABLE attempts DROP COLUMN disrupted;",
  3: `ALTER TABLE grades DROP COLUMN guards; ALTER TABLE grades DROP COLUMN clamped; ALTER TABLE grades DROP COLUMN capped;
      ALTER TABLE attempts DROP COLUMN sandbox_broke;`,
};

/** Turns the file into one of an earlier schema version. */
export function downgrade(path: string, version: number): void {
  const old = new DatabaseSync(path);
  for (let from = SCHEMA_VERSION; from > version; from--) old.exec(DOWNGRADES[from]!);
  old.exec(`PRAGMA user_version = ${version}`);
  old.close();
}
