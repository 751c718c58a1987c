/**
 * Tables of the store. The comments are stored in the file: `sqlite3 store.sqlite .schema` shows them.
 *
 * The store can also be opened during a run (WAL: readers never block the writer):
 *
 *     sqlite3 -readonly store.sqlite "SELECT state, count(*) FROM samples GROUP BY state"
 *     sqlite3 -readonly store.sqlite "SELECT iteration, metrics ->> '$.rewardMean' FROM iterations WHERE superseded_by IS NULL"
 *
 * Times are Unix milliseconds. Token arrays are little-endian int32, log-probs little-endian float32.
 */

/** Raised with every change of the tables; a store of a later version is refused. */
export const SCHEMA_VERSION = 9;

/** With these indexes no statement of an iteration reads every sample. Part of `SCHEMA` and of the upgrade to version 6. */
const INDEXES = `
CREATE INDEX samples_by_state ON samples (purpose, state, used, iteration);
CREATE INDEX samples_ungraded ON samples (sequence) WHERE ungraded AND state IN ('finished', 'notExecuted');
CREATE INDEX attempts_lost ON attempts (actor) WHERE state IN ('expired', 'failed');
CREATE INDEX checkpoints_kept ON checkpoints (iteration, lineage) WHERE superseded_by IS NULL AND NOT deleted;

CREATE TABLE tallies (
  -- How many samples are in each state. The triggers below update it.
  purpose TEXT NOT NULL,
  state TEXT NOT NULL,
  used TEXT NOT NULL,                          -- '': samples.used is NULL
  samples INTEGER NOT NULL,
  retries INTEGER NOT NULL,                    -- attempts after the first of their execution
  PRIMARY KEY (purpose, state, used)
) STRICT, WITHOUT ROWID;
INSERT INTO tallies SELECT purpose, state, coalesce(used, ''), count(*), sum(max(attempts - 1, 0)) FROM samples GROUP BY 1, 2, 3;
CREATE TRIGGER samples_added AFTER INSERT ON samples BEGIN
  INSERT INTO tallies VALUES (NEW.purpose, NEW.state, coalesce(NEW.used, ''), 1, max(NEW.attempts - 1, 0))
    ON CONFLICT DO UPDATE SET samples = samples + 1, retries = retries + excluded.retries;
END;
CREATE TRIGGER samples_changed AFTER UPDATE OF state, used, attempts ON samples BEGIN
  UPDATE tallies SET samples = samples - 1, retries = retries - max(OLD.attempts - 1, 0)
    WHERE purpose = OLD.purpose AND state = OLD.state AND used = coalesce(OLD.used, '');
  INSERT INTO tallies VALUES (NEW.purpose, NEW.state, coalesce(NEW.used, ''), 1, max(NEW.attempts - 1, 0))
    ON CONFLICT DO UPDATE SET samples = samples + 1, retries = retries + excluded.retries;
END;
`;

/** Part of `SCHEMA` and of the upgrade to version 7. */
const FAILED_SOLUTIONS = `
CREATE TABLE failed_solutions (
  -- Programs that failed, which debug prompts draw from.
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  sample TEXT NOT NULL UNIQUE REFERENCES samples (id),
  task TEXT NOT NULL,
  iteration INTEGER NOT NULL                   -- that added it
) STRICT;
CREATE INDEX failed_solutions_by_task ON failed_solutions (task, position);
`;

/** Part of `SCHEMA` and of the upgrade to version 8. */
const WARM_STEPS = `
CREATE TABLE warm_steps (
  -- Supervised training before the first iteration (warmStart); the lines of warm-start/sft.jsonl that are steps.
  step INTEGER PRIMARY KEY,                    -- from 1
  metrics TEXT NOT NULL,                       -- JSON
  committed_at INTEGER NOT NULL
) STRICT;
`;

/** Part of `SCHEMA` and of the upgrade to version 9. */
const PRIVATE_SCORES = `
CREATE TABLE private_scores (
  -- Scores of valid submissions on the private part of the answers: for reports, never for training.
  sample TEXT PRIMARY KEY REFERENCES samples (id),
  score REAL,                                  -- in the task's own unit; NULL: there is none
  reason TEXT NOT NULL                         -- valid, or why there is no score
) STRICT;
`;

/** SQL that upgrades a store to the next version. A store that is opened for reading stays unchanged and lacks the additions. */
export const UPGRADES: Readonly<Record<number, string>> = {
  2: `ALTER TABLE grades ADD COLUMN guards TEXT NOT NULL DEFAULT '[]';
      ALTER TABLE grades ADD COLUMN clamped INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE grades ADD COLUMN capped INTEGER NOT NULL DEFAULT 0;
      ALTER TABLE attempts ADD COLUMN sandbox_broke INTEGER NOT NULL DEFAULT 0;`,
  3: `ALTER TABLE attempts ADD COLUMN disrupted INTEGER NOT NULL DEFAULT 0;
      CREATE INDEX attempts_disrupted ON attempts (execution) WHERE disrupted;`,
  4: "ALTER TABLE samples ADD COLUMN truncated INTEGER;",
  5: `ALTER TABLE samples ADD COLUMN ungraded INTEGER;
      UPDATE samples SET ungraded = 1 WHERE id NOT IN (SELECT sample FROM grades);
      DROP INDEX samples_by_state;
      ${INDEXES}`,
  // A new column, because SQLite cannot change the CHECK of one.
  6: `ALTER TABLE samples RENAME COLUMN kind TO kind_6;
      ALTER TABLE samples ADD COLUMN kind TEXT NOT NULL DEFAULT 'scratch' CHECK (kind IN ('scratch', 'improve', 'debug'));
      UPDATE samples SET kind = kind_6;
      ALTER TABLE samples DROP COLUMN kind_6;
      ALTER TABLE samples ADD COLUMN depth INTEGER;
      ALTER TABLE samples ADD COLUMN previous_step TEXT;
      ${FAILED_SOLUTIONS}`,
  7: WARM_STEPS,
  8: PRIVATE_SCORES,
};
export const OLDEST_VERSION = Math.min(...Object.keys(UPGRADES).map(Number));

/** PRAGMA application_id, which distinguishes a store from other SQLite files. ASCII `lrun`. */
export const APPLICATION_ID = 0x6c72756e;

export const SCHEMA = `
CREATE TABLE writer (
  -- Whoever opens the store to write adds 1; a write by a process that holds a smaller number is refused.
  id INTEGER PRIMARY KEY CHECK (id = 1),
  fence INTEGER NOT NULL
) STRICT;
INSERT INTO writer VALUES (1, 0);

CREATE TABLE lineages (
  -- One per start of a learner. (lineage, iteration) names a policy version and is never used twice.
  lineage INTEGER PRIMARY KEY AUTOINCREMENT,
  from_lineage INTEGER,    -- the checkpoint that it went on from, if any
  from_iteration INTEGER NOT NULL,
  started_at INTEGER NOT NULL
) STRICT;

CREATE TABLE samples (
  sequence INTEGER PRIMARY KEY AUTOINCREMENT,  -- order of dispatch; numbers of samples that were never stored are missing
  id TEXT NOT NULL UNIQUE,                     -- also the execution's
  purpose TEXT NOT NULL,                       -- training or the name of an evaluation
  iteration INTEGER NOT NULL,                  -- (lineage, iteration): the policy version that wrote it
  lineage INTEGER NOT NULL,
  task TEXT NOT NULL,
  kind TEXT NOT NULL CHECK (kind IN ('scratch', 'improve', 'debug')),
  previous TEXT,                               -- sample that an improve or debug prompt shows
  depth INTEGER,                               -- debug prompts in a row that led to it; NULL: none
  previous_step TEXT,                          -- how far the program came that a debug prompt shows
  prompt_group TEXT,                           -- first sample of those that were dispatched together with one prompt
  execution_seed INTEGER NOT NULL,
  instrumenter TEXT NOT NULL,
  inserted_markers TEXT NOT NULL,              -- JSON array
  state TEXT NOT NULL CHECK (state IN ('queued', 'leased', 'finished', 'notExecuted', 'lost', 'discarded')),
  attempts INTEGER NOT NULL DEFAULT 0,
  created_at INTEGER NOT NULL,
  finished_at INTEGER,
  used TEXT CHECK (used IN ('trained', 'dropped')),  -- NULL: can still be trained on
  used_iteration INTEGER,                            -- by which iteration
  truncated INTEGER,                           -- 1: the response was cut at maxResponseTokens; NULL: an older longrun did not say
  ungraded INTEGER,                            -- 1: it has no row in grades; NULL: it has
  -- Long values last: what stands behind them costs reads of their overflow pages.
  prompt_tokens BLOB NOT NULL,
  response_tokens BLOB NOT NULL,
  behaviour_log_probs BLOB NOT NULL,
  solution TEXT NOT NULL,
  plan TEXT NOT NULL,
  program TEXT,
  instrumented TEXT,
  CHECK ((used IS NULL) = (used_iteration IS NULL)),
  CHECK (used IS NULL OR state IN ('finished', 'notExecuted'))
) STRICT;
CREATE INDEX samples_queued ON samples (sequence) WHERE state = 'queued';
CREATE INDEX samples_by_use ON samples (used_iteration) WHERE used_iteration IS NOT NULL;

CREATE TABLE attempts (
  fence INTEGER PRIMARY KEY AUTOINCREMENT,
  execution TEXT NOT NULL REFERENCES samples (id),
  number INTEGER NOT NULL,                     -- from 1
  actor TEXT NOT NULL,
  nonce TEXT NOT NULL,                         -- of its marker lines
  state TEXT NOT NULL CHECK (state IN ('running', 'accepted', 'expired', 'failed', 'revoked')),
  reason TEXT,                                 -- why it expired, failed or was revoked
  elapsed_seconds REAL,                        -- that it had run when it ended without a result, as far as known
  leased_at INTEGER NOT NULL,
  ended_at INTEGER,
  sandbox_broke INTEGER NOT NULL DEFAULT 0,    -- it was lost because its sandbox ended under the program
  disrupted INTEGER NOT NULL DEFAULT 0,        -- its actor was evicted, preempted or told to stop: it does not count towards maxAttempts
  UNIQUE (execution, number)
) STRICT;
CREATE INDEX attempts_running ON attempts (actor) WHERE state = 'running';
CREATE INDEX attempts_disrupted ON attempts (execution) WHERE disrupted;

CREATE TABLE results (
  execution TEXT PRIMARY KEY REFERENCES samples (id),
  attempt INTEGER NOT NULL,
  actor TEXT NOT NULL,
  outcome TEXT NOT NULL CHECK (outcome IN ('completed', 'failed', 'timedOut', 'outOfMemory', 'outputLimit')),
  exit_status INTEGER NOT NULL,
  signal INTEGER NOT NULL,
  duration_seconds REAL NOT NULL,
  cpu_seconds REAL NOT NULL,
  queue_seconds REAL NOT NULL,
  peak_memory_bytes INTEGER NOT NULL,
  markers TEXT NOT NULL,                       -- JSON array of {name, value, atSeconds}
  forged_markers INTEGER NOT NULL,
  imitated_markers INTEGER NOT NULL,
  terminal_output TEXT NOT NULL,
  output_bytes INTEGER NOT NULL,
  submission_bytes INTEGER,                    -- uncompressed
  submission_sha256 TEXT,                      -- of the uncompressed file
  submission_refused TEXT NOT NULL,
  detail TEXT NOT NULL,
  isolation_level TEXT NOT NULL
) STRICT;

CREATE TABLE submissions (
  -- Kept until a checkpoint holds what was learned from it; the best one of each task stays.
  execution TEXT PRIMARY KEY REFERENCES samples (id),
  deflated BLOB NOT NULL                       -- zlib
) STRICT;

CREATE TABLE grades (
  sample TEXT PRIMARY KEY REFERENCES samples (id),
  valid INTEGER NOT NULL,
  score REAL,                                  -- in the task's own unit
  reward REAL NOT NULL,
  reason TEXT NOT NULL,
  family TEXT,
  guards TEXT NOT NULL DEFAULT '[]',           -- JSON array: sampleSubmission, constant, perfect
  clamped INTEGER NOT NULL DEFAULT 0,          -- the reward was raised to the grader's rewardFloor
  capped INTEGER NOT NULL DEFAULT 0            -- it was lowered to the task's guardedRewardCap
) STRICT;

CREATE TABLE previous_solutions (
  -- Valid solutions that improve prompts draw from.
  position INTEGER PRIMARY KEY AUTOINCREMENT,
  sample TEXT NOT NULL UNIQUE REFERENCES samples (id),
  task TEXT NOT NULL,
  iteration INTEGER NOT NULL                   -- that added it
) STRICT;
CREATE INDEX previous_solutions_by_task ON previous_solutions (task, position);
${FAILED_SOLUTIONS}
CREATE TABLE iterations (
  lineage INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  metrics TEXT NOT NULL,                       -- JSON, the line of metrics.jsonl
  committed_at INTEGER NOT NULL,
  superseded_by INTEGER,                       -- the lineage that went back before it
  PRIMARY KEY (lineage, iteration)
) STRICT;

CREATE TABLE batches (
  -- What each iteration trained on, in order: a replay trains on the same.
  lineage INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  position INTEGER NOT NULL,
  sample TEXT NOT NULL REFERENCES samples (id),
  PRIMARY KEY (lineage, iteration, position),
  FOREIGN KEY (lineage, iteration) REFERENCES iterations (lineage, iteration)
) STRICT, WITHOUT ROWID;

CREATE TABLE checkpoints (
  lineage INTEGER NOT NULL,
  iteration INTEGER NOT NULL,
  digest TEXT NOT NULL,
  path TEXT NOT NULL,
  committed_at INTEGER NOT NULL,
  superseded_by INTEGER,                       -- the lineage that went back before it
  deleted INTEGER NOT NULL DEFAULT 0,          -- its files are gone: checkpoint.keepLast
  PRIMARY KEY (lineage, iteration)
) STRICT;
${WARM_STEPS}${PRIVATE_SCORES}${INDEXES}`;
