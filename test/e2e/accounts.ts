/** Checks a run's store after any failure: nothing is lost, nothing is counted twice. */
import assert from "node:assert/strict";
import { DatabaseSync } from "node:sqlite";
import { setTimeout as sleep } from "node:timers/promises";
import { auditStore, type Expected } from "../chaos/accounts.ts";

export interface Accounts {
  /** Number of learner starts. */
  learners: number;
  executions: number;
  attempts: number;
  /** Attempts without a result, because their actor or learner ended. */
  attemptsLost: number;
  trained: number;
}

/** @throws AssertionError if a sample was trained on twice, is missing or lost, or a result was accepted twice */
export function assertAccounted(store: string, expected: Expected): Accounts {
  assert.deepEqual(auditStore(store, expected).findings, []);
  const database = new DatabaseSync(store, { readOnly: true });
  try {
    const count = (sql: string) => Number(database.prepare(`SELECT count(*) AS n FROM ${sql}`).get()!.n);
    assert.equal(count("samples WHERE state = 'lost'"), 0, "no execution was given up");
    return {
      learners: count("lineages"),
      executions: count("results"),
      attempts: count("attempts"),
      attemptsLost: count("attempts WHERE state IN ('expired', 'failed')"),
      trained: count("samples WHERE used = 'trained'"),
    };
  } finally {
    database.close();
  }
}

/** Returns how many learners have started work on this run. */
export function learnersOf(store: string): number {
  const database = new DatabaseSync(store, { readOnly: true });
  try {
    return Number(database.prepare("SELECT count(*) AS n FROM lineages").get()!.n);
  } finally {
    database.close();
  }
}

interface RunningAttempt {
  fence: number;
  actor: string;
}

/** Returns an attempt that an actor started less than half a second ago; searches for some seconds. */
export async function runningAttempt(store: string): Promise<RunningAttempt | undefined> {
  const database = new DatabaseSync(store, { readOnly: true });
  try {
    const newest = database.prepare(
      "SELECT fence, actor FROM attempts WHERE state = 'running' AND leased_at > ? ORDER BY fence DESC LIMIT 1",
    );
    for (let tries = 0; tries < 500; tries++) {
      const found = newest.get(Date.now() - 500);
      if (found) return { fence: Number(found.fence), actor: String(found.actor) };
      await sleep(10);
    }
    return undefined;
  } finally {
    database.close();
  }
}

/** Returns whether the attempt has no result yet. */
export function attemptIsOpen(store: string, { fence }: RunningAttempt): boolean {
  const database = new DatabaseSync(store, { readOnly: true });
  try {
    return database.prepare("SELECT state FROM attempts WHERE fence = ?").get(fence)?.state === "running";
  } finally {
    database.close();
  }
}
