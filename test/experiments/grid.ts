/**
 * Runs one manifest with a few different settings, each by `longrun run` in a folder of its own. A finished run is recognised by its folder
 * and not repeated, so an interrupted experiment continues with the same command.
 */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { parse } from "yaml";
import type { RunSummary } from "../../learner/metrics/summary.ts";
import { finished } from "../bench/processes.ts";
import { median } from "../bench/result.ts";
import { describePlan, duration, type Priced, parseBudget, planOf } from "./budget.ts";

const CLI = fileURLToPath(new URL("../../controller/cli.ts", import.meta.url));
const MANIFESTS = fileURLToPath(new URL("./manifests/", import.meta.url));
const RUNS = fileURLToPath(new URL("./runs/", import.meta.url));
/** File in a finished run's folder: its settings and duration. */
const RECORD = "experiment.json";
/** More failed runs have another cause than chance. */
const MOST_FAILURES = 3;

export interface AskedRun extends Priced {
  /** Folder below `--runs`; experiments that need the same run share it. */
  folder: string;
  /** File in `manifests/`. */
  manifest: string;
  /** `path=value` */
  set: string[];
  /** Estimated duration until a run of its kind was measured. */
  guessSeconds: number;
  /** Runs it in another way than by `longrun run`, in the existing folder. */
  execute?: (directory: string) => Promise<void>;
}

interface RunRecord {
  asked: string;
  seconds: number;
}

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
  const spent = () => (performance.now() - began) / 1000;
  let failures = 0;
  for (const [index, run] of plan.now.entries()) {
    // Later measurements may have changed which runs fit.
    if (spent() + secondsOf(run) > flags.budgetSeconds) {
      say(`${plan.now.length - index} runs are left for later: those before took longer than was thought.`);
      break;
    }
    try {
      records.set(run, await execute(run, directoryOf(run), flags.prefix));
      say(`${run.folder}: ${duration(records.get(run)!.seconds)}`);
    } catch (error) {
      // The lines after the first contain all the run's output.
      say(`${run.folder} failed: ${(error as Error).message.split("\n")[0]!.slice(-300)}`);
      if (++failures >= MOST_FAILURES) throw error;
    }
  }
  const done = runs.filter(isFinished);
  // An empty page would replace a useful one.
  if (done.length === 0) throw new Error(`no run of ${name} is finished yet, so there is no page; raise --budget`);
  return {
    directories: new Map(done.map((run) => [run, directoryOf(run)])),
    seconds: done.reduce((sum, run) => sum + records.get(run)!.seconds, 0),
    missing: runs.length - done.length,
  };
}

async function execute(run: AskedRun, directory: string, prefix: string[]): Promise<RunRecord> {
  // An unfinished run is useless, and a continued one would have different times.
  rmSync(directory, { recursive: true, force: true });
  mkdirSync(dirname(directory), { recursive: true });
  const began = performance.now();
  if (run.execute) {
    mkdirSync(directory);
    await run.execute(directory);
  } else {
    const set = run.set.flatMap((setting) => ["--set", setting]);
    const words = [process.execPath, CLI, "run", join(MANIFESTS, run.manifest), "--out", directory, "--json", ...set];
    const [file, ...args] = [...prefix, ...words];
    await finished(file!, args);
  }
  const seconds = ownSeconds(directory) ?? (performance.now() - began) / 1000;
  const record: RunRecord = { asked: digest(run), seconds };
  // Weights are most of a folder's size, and no page reads them.
  rmSync(join(directory, "checkpoints"), { recursive: true, force: true });
  writeFileSync(join(directory, RECORD), `${JSON.stringify(record)}\n`);
  return record;
}

/** Returns the run's own duration, without a prefix's waiting time. */
function ownSeconds(directory: string): number | undefined {
  const file = join(directory, "summary.json");
  if (!existsSync(file)) return undefined;
  const { startedAt, updatedAt } = JSON.parse(readFileSync(file, "utf8")) as RunSummary;
  return (Date.parse(updatedAt) - Date.parse(startedAt)) / 1000;
}

/** @throws Error if the folder contains a run with other settings */
function recordOf(directory: string, run: AskedRun): RunRecord | undefined {
  const file = join(directory, RECORD);
  if (!existsSync(file)) return undefined;
  const record = JSON.parse(readFileSync(file, "utf8")) as RunRecord;
  if (record.asked !== digest(run))
    throw new Error(`${directory} was run with other settings; remove it, or give another folder with --runs`);
  return record;
}

/** Returns the digest of the settings and the manifest without its comments. */
function digest({ manifest, set }: AskedRun): string {
  const content = manifest === "" ? "" : parse(readFileSync(join(MANIFESTS, manifest), "utf8"));
  return createHash("sha256")
    .update(JSON.stringify([content, set]))
    .digest("hex")
    .slice(0, 16);
}
