/** Watches a real `longrun run` of many small iterations for growth. Also has the code that the soak of executions shares. */
import { globSync, mkdirSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync, type StatementSync } from "node:sqlite";
import { descendants } from "../../actor/descendants.fixture.ts";
import { mean } from "../../learner/evaluation/bootstrap.ts";
import { RealRun, temporaryFolder } from "../faults/real-run.ts";
import { proportionalMemory } from "./process-memory.ts";
import { type BenchResult, median } from "./result.ts";

/** A measured field. `growth`: the most that it may grow, as a share of its value in the first quarter. */
export interface Shown<Look> {
  what: string;
  field: keyof Look;
  show: (value: number) => string;
  growth?: number;
  /** The field is an increase since the previous measurement, in whole pages of a file: its mean counts, not its median. */
  increase?: true;
}

export const megabytes = (bytes: number) => `${(bytes / 2 ** 20).toFixed(1)} MiB`;
export const wholeBytes = (bytes: number) => `${bytes.toFixed(0)} bytes`;
export const rounded = (count: number) => count.toFixed(1);

/** How `growthOf` compares; a part of the method. */
export const COMPARISON = "medians of the first and of the last quarter, of increases means";

/** Compares the first and the last quarter. */
export function growthOf<Look extends Record<keyof Look, number>>(looks: Look[], shown: Shown<Look>[]) {
  const quarter = Math.ceil(looks.length / 4);
  const of = (some: Look[], { field, increase }: Shown<Look>) => {
    const values = some.map((one) => one[field]);
    return increase ? mean(values) : median(values);
  };
  const compared = shown.map((one) => ({
    ...one,
    before: of(looks.slice(0, quarter), one),
    after: of(looks.slice(-quarter), one),
  }));
  const rows = compared.map(({ what, show, before, after }) => ({
    what,
    "first quarter": show(before),
    "last quarter": show(after),
  }));
  const goals = compared.flatMap(({ what, show, growth, before, after }) =>
    growth === undefined
      ? []
      : {
          what,
          goal: growth > 0 ? `grows by at most ${100 * growth} %` : "does not grow",
          measured: `${show(before)} -> ${show(after)}`,
          met: after <= (1 + growth) * before,
        },
  );
  return { rows, goals };
}

export interface Queries {
  queries: number;
  /** Processor time within statements, without BEGIN and COMMIT, which wait for the disk. Other work on the machine does not count. */
  milliseconds: number;
}

/** Counts SQLite's statements in this process from now on. It uses no name from outside, because other processes run its text, too. */
export function countQueries(statements: typeof StatementSync): Queries {
  const counted = { queries: 0, milliseconds: 0 };
  for (const name of ["all", "get", "run"] as const) {
    const original = statements.prototype[name] as (...given: unknown[]) => unknown;
    statements.prototype[name] = function (this: StatementSync, ...given: unknown[]) {
      const start = process.threadCpuUsage();
      try {
        return original.apply(this, given);
      } finally {
        const { user, system } = process.threadCpuUsage(start);
        counted.queries++;
        counted.milliseconds += (user + system) / 1000;
      }
    } as never;
  }
  return counted;
}

/** Makes each process of Node that starts from now on write its `Queries` to `folder/PID`, twice a second. */
function countInChildren(folder: string): void {
  mkdirSync(folder);
  const code = `import { StatementSync } from "node:sqlite";
    import { renameSync, writeFileSync } from "node:fs";
    const counted = (${countQueries})(StatementSync);
    const file = ${JSON.stringify(folder)} + "/" + process.pid;
    setInterval(() => {
      if (counted.queries === 0) return;
      writeFileSync(file + ".new", JSON.stringify(counted));
      renameSync(file + ".new", file);
    }, 500).unref();`;
  process.env.NODE_OPTIONS = `--import data:text/javascript,${encodeURIComponent(code)}`;
}

/** Measurements at the end of an iteration. */
interface Look {
  iteration: number;
  seconds: number;
  learnerBytes: number;
  learnerDescriptors: number;
  learnerThreads: number;
  /** Memory of the supervisor and its sandboxes. */
  actorBytes: number;
  actorDescriptors: number;
  commandBytes: number;
  commandDescriptors: number;
  /** The store's growth for each sample since the previous measurement. */
  storeBytesPerSample: number;
  walBytes: number;
  checkpointBytes: number;
  checkpointFiles: number;
  /** Growth of metrics, logs, TensorBoard's events and the report. */
  otherBytes: number;
  otherFiles: number;
  queries: number;
  queryMilliseconds: number;
}

const SHOWN: Shown<Look>[] = [
  { what: "memory of the learner", field: "learnerBytes", show: megabytes, growth: 0.05 },
  { what: "memory of the actor with its sandboxes", field: "actorBytes", show: megabytes, growth: 0.05 },
  { what: "memory of `longrun run`", field: "commandBytes", show: megabytes, growth: 0.1 },
  { what: "descriptors of the learner", field: "learnerDescriptors", show: String, growth: 0 },
  { what: "threads of the learner", field: "learnerThreads", show: String, growth: 0 },
  { what: "descriptors of the actor with its sandboxes", field: "actorDescriptors", show: String, growth: 0 },
  { what: "descriptors of `longrun run`", field: "commandDescriptors", show: String, growth: 0 },
  {
    what: "the store's growth by each sample",
    field: "storeBytesPerSample",
    show: wholeBytes,
    growth: 0.05,
    increase: true,
  },
  { what: "the store's write-ahead log", field: "walBytes", show: megabytes, growth: 0.05 },
  { what: "checkpoints", field: "checkpointBytes", show: megabytes, growth: 0.001 },
  { what: "files of checkpoints", field: "checkpointFiles", show: String, growth: 0 },
  {
    ...{ what: "growth of all other files by each iteration", field: "otherBytes", show: wholeBytes },
    ...{ growth: 0.05, increase: true },
  },
  { what: "number of other files", field: "otherFiles", show: String, growth: 0 },
  { what: "the learner's statements in an iteration", field: "queries", show: rounded, growth: 0.05 },
  // A query that reads every sample would take seven times as long.
  {
    what: "their processor time, without commits",
    field: "queryMilliseconds",
    show: (ms) => `${ms.toFixed(2)} ms`,
    growth: 0.5,
  },
  { what: "an iteration", field: "seconds", show: (seconds) => `${seconds.toFixed(2)} s` },
];

/** Measures the processes and the folder of a run at the end of each iteration. */
export async function soakIterations(iterations: number): Promise<BenchResult> {
  const folder = temporaryFolder();
  const counts = join(folder.path, "queries");
  countInChildren(counts);
  const directory = join(folder.path, "run");
  const run = new RealRun(directory, { iterations });
  const looks: Look[] = [];
  try {
    let before = { at: performance.now(), store: 0, samples: 0, other: 0, queries: 0, milliseconds: 0 };
    for (let iteration = 1; iteration < iterations; iteration++) {
      await run.until(`iteration ${iteration}`, () => linesOf(join(directory, "metrics.jsonl")) >= iteration);
      const [learner, actor] = [run.find("learner/main.ts")!, run.find("actor/main.ts")!];
      const sandboxes = descendants(actor);
      const entries = (pid: number, of: string) => readdirSync(`/proc/${pid}/${of}`).length;
      const sandboxed = (count: (pid: number) => number) =>
        sandboxes.reduce((total, pid) => total + unlessGone(() => count(pid), 0), 0);
      const memory = (pid: number) => proportionalMemory([pid]).anonymous;
      const files = filesBelow(directory);
      const bytes = (some: typeof files) => some.reduce((total, { size }) => total + size, 0);
      const store = files.filter(({ path }) => path.startsWith("store.sqlite"));
      const checkpoints = files.filter(({ path }) => path.startsWith("checkpoints/"));
      const other = files.filter((file) => !store.includes(file) && !checkpoints.includes(file));
      const now = {
        at: performance.now(),
        ...storeSize(join(directory, "store.sqlite")),
        other: bytes(other),
        ...(JSON.parse(readFileSync(join(counts, String(learner)), "utf8")) as Queries),
      };
      looks.push({
        iteration,
        seconds: (now.at - before.at) / 1000,
        learnerBytes: memory(learner),
        learnerDescriptors: entries(learner, "fd"),
        learnerThreads: entries(learner, "task"),
        actorBytes: memory(actor) + sandboxed(memory),
        actorDescriptors: entries(actor, "fd") + sandboxed((pid) => entries(pid, "fd")),
        commandBytes: memory(run.child.pid!),
        commandDescriptors: entries(run.child.pid!, "fd"),
        storeBytesPerSample: (now.store - before.store) / Math.max(1, now.samples - before.samples),
        walBytes: bytes(store.filter(({ path }) => path.endsWith("-wal"))),
        checkpointBytes: bytes(checkpoints),
        checkpointFiles: checkpoints.length,
        otherBytes: now.other - before.other,
        otherFiles: other.length,
        queries: now.queries - before.queries,
        queryMilliseconds: now.milliseconds - before.milliseconds,
      });
      before = now;
    }
    const { status, output } = await run.ended;
    if (status !== 0) throw new Error(`the run ended with ${status}:\n${output}`);
  } finally {
    run.stop();
    folder.remove();
  }
  const method =
    `longrun run of the quickstart with a batch of 4 and a critic, ${iterations} iterations; looked at from outside after each, ` +
    `the first and the last left out; ${COMPARISON}`;
  return { ...growthOf(looks.slice(1), SHOWN), method, raw: looks, part: "iterations" };
}

/** Returns `otherwise` if a process or a folder is gone: processes of sandboxes and temporary folders disappear at any time. */
function unlessGone<Found>(look: () => Found, otherwise: Found): Found {
  try {
    return look();
  } catch (error) {
    if (["ENOENT", "ESRCH"].includes((error as NodeJS.ErrnoException).code!)) return otherwise;
    throw error;
  }
}

function linesOf(file: string): number {
  return globSync(file).length === 0 ? 0 : readFileSync(file, "utf8").split("\n").length - 1;
}

/** Returns every file with its size. Leaves out a folder that disappears meanwhile, such as a checkpoint's folder before its rename. */
function filesBelow(directory: string, below = ""): { path: string; size: number }[] {
  const names = unlessGone(() => readdirSync(join(directory, below)), []);
  return names.flatMap((name) => {
    const path = join(below, name);
    const found = statSync(join(directory, path), { throwIfNoEntry: false });
    if (found?.isDirectory()) return filesBelow(directory, path);
    return found ? { path, size: found.size } : [];
  });
}

/** Returns the bytes of the store's pages in use, including pages that are still in the log, and the number of its samples. */
function storeSize(path: string): { store: number; samples: number } {
  const database = new DatabaseSync(path, { readOnly: true });
  try {
    const sql = `SELECT (SELECT page_count FROM pragma_page_count) * (SELECT page_size FROM pragma_page_size) AS store,
      (SELECT count(*) FROM samples) AS samples`;
    return { ...database.prepare(sql).get() } as { store: number; samples: number };
  } finally {
    database.close();
  }
}
