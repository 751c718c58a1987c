/** What the store of a run says when a learner starts: its tasks, counts and iterations. */
import { accessSync, constants, existsSync } from "node:fs";
import { dirname } from "node:path";
import type { IterationMetrics } from "./metrics/iteration.ts";
import { openStore, type Store } from "./store/store.ts";

/** Returns the tasks that have samples in the run's store; none if the run has not begun. */
export function tasksBegun(path: string): Set<string> {
  if (!existsSync(path)) return new Set();
  accessSync(dirname(path), constants.W_OK); // SQLite reads no store on a read-only volume, and does not say why
  const store = openStore(path, { readOnly: true });
  try {
    return store.taskNames();
  } finally {
    store.close();
  }
}

/** Returns the counts of all executions of the run. */
export const countsOf = (store: Store) => ({ ...store.totals(), disrupted: store.leases.disruptions() });

/** Returns the metrics of the finished iterations, oldest first. */
export const linesOf = (store: Store): IterationMetrics[] =>
  store.iterationRows().map((row) => row.metrics as unknown as IterationMetrics);
