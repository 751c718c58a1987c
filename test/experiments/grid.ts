/**
 * Runs one manifest with a few different settings, each by `longrun run` in a folder of its own. A finished run is recognised by its folder
 * and not repeated, so an interrupted experiment continues with the same command. Long runs continue in the middle (parts.ts).
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { median } from "../bench/result.ts";
import { describePlan, duration, parseBudget, planOf } from "./budget.ts";
import { type AskedRun, execute, isBegun, type RunRecord, recordOf } from "./execute.ts";

const RUNS = fileURLToPath(new URL("./runs/", import.meta.url));
/** More failed runs have another cause than chance. */
const MOST_FAILURES = 3;

interface GridFlags {
  budgetSeconds: number;
  seeds: number;
  runs: string;
  prefix: string[];
  only: RegExp;
}

/**
 * Flags of every experiment that runs programs: `--budget 30m`; `--seeds N`; `--runs DIR`, the parent of run folders; `--prefix "WORDS"`,
 * put before each `longrun run`, e.g. `nice -n 5` or `flock FILE`; `--only PATTERN`, the folders to run now (the page includes all existing
 * ones).
 */
export function gridFlags(flags: string[], defaults: { budget: string; seeds?: number }): GridFlags {
  const { values } = parseArgs({
    args: flags,
    options: {
      budget: { type: "string", default: defaults.budget },
      seeds: { type: "string", default: String(defaults.seeds ?? 5) },
      runs: { type: "string", default: RUNS },
      prefix: { type: "string", default: "" },
      only: { type: "string", default: "" },
    },
  });
  const seeds = Number(values.seeds);
  if (!Number.isInteger(seeds) || seeds < 1)
    throw new RangeError(`--seeds is ${values.seeds}; give a whole number from 1`);
  const budgetSeconds = values.budget === "0" ? 0 : parseBudget(values.budget);
  const prefix = values.prefix.split(" ").filter((word) => word !== "");
  return { budgetSeconds, seeds, runs: values.runs, prefix, only: new RegExp(values.only) };
}

/** Finished runs, old and new, for a page. */
export interface Ran<R extends AskedRun = AskedRun> {
  directories: Map<R, string>;
  /** Folders of runs that will go on. */
  begun: Map<R, string>;
  /** Processor time of the finished runs that may be interrupted, seconds; null: unknown. */
  cpuSeconds: Map<R, number | null>;
  /** Total duration of the runs themselves, whenever they ran. */
  seconds: number;
  /** Number of missing runs. */
  missing: number;
}

/** Prints which runs fit, runs them, and returns the folders of finished ones. */
export async function runGrid<R extends AskedRun>(name: string, runs: readonly R[], flags: GridFlags): Promise<Ran<R>> {
  const directoryOf = (run: AskedRun) => join(flags.runs, run.folder);
  const records = new Map<AskedRun, RunRecord>();
  for (const run of runs) {
    const record = recordOf(directoryOf(run), run);
    if (record) records.set(run, record);
  }
  const secondsOf = (run: AskedRun) => {
    const alike = [...records].filter(([other]) => other.kind === run.kind).map(([, { seconds }]) => seconds);
    return alike.length > 0 ? median(alike) : run.guessSeconds;
  };
  const isFinished = (run: AskedRun) => records.has(run);
  const say = (line: string) => process.stdout.write(`${name}: ${line}\n`);
  const chosen = runs.filter(({ folder }) => flags.only.test(folder));
  if (chosen.length < runs.length) say(`${chosen.length} of ${runs.length} runs are asked for now (--only).`);
  const plan = planOf(chosen, { budgetSeconds: flags.budgetSeconds, isFinished, secondsOf });
  for (const line of describePlan(plan, chosen.length, flags.budgetSeconds)) say(line);

  const began = performance.now();
  const left = () => flags.budgetSeconds - (performance.now() - began) / 1000;
  const open = chosen.filter((run) => !isFinished(run));
  let failures = 0;
  for (const [index, run] of open.entries()) {
    // Later measurements may have changed which runs fit.
    const isPart = run.resumes === true && secondsOf(run) > left();
    if (secondsOf(run) > left() && !(isPart && left() > 0)) {
      if (index < plan.now.length)
        say(`${plan.now.length - index} runs are left for later: those before took longer than was thought.`);
      break;
    }
    if (isPart) say(`${run.folder} is begun, and goes on with the same command later`);
    try {
      const record = await execute(run, directoryOf(run), flags.prefix, left());
      if (record === undefined) break;
      records.set(run, record);
      say(`${run.folder}: ${duration(record.seconds)}`);
    } catch (error) {
      // The lines after the first contain all the run's output.
      say(`${run.folder} failed: ${(error as Error).message.split("\n")[0]!.slice(-300)}`);
      if (++failures >= MOST_FAILURES) throw error;
    }
  }
  const done = runs.filter(isFinished);
  // An empty page would replace a useful one.
  const begun = runs.filter((run) => !isFinished(run) && isBegun(run, directoryOf(run)));
  if (done.length + begun.length === 0)
    throw new Error(`no run of ${name} is finished yet, so there is no page; raise --budget`);
  const folders = (some: R[]) => new Map(some.map((run) => [run, directoryOf(run)]));
  return {
    ...{ directories: folders(done), begun: folders(begun) },
    cpuSeconds: new Map(done.map((run) => [run, records.get(run)!.cpuSeconds ?? null])),
    seconds: done.reduce((sum, run) => sum + records.get(run)!.seconds, 0),
    missing: runs.length - done.length,
  };
}
