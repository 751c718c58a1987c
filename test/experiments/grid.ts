/**
 * Runs of one manifest that differ in a few settings, each by `longrun run` in a folder of its own. A run that is finished is
 * recognised by its folder and not run again, so that an interrupted experiment goes on with the same command.
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
/** In the folder of a run that is finished: what it was asked for and how long it took. */
const RECORD = "experiment.json";
/** After as many runs that failed, something else is wrong than bad luck. */
const MOST_FAILURES = 3;

export interface AskedRun extends Priced {
  /** Folder below `--runs`; experiments that ask for the same run share it. */
  folder: string;
  /** File in `manifests/`. */
  manifest: string;
  /** `path=value` */
  set: string[];
  /** What it takes, as long as none of its kind was measured. */
  guessSeconds: number;
  /** Does it another way than by `longrun run`; gets the folder, which is there. */
  execute?: (directory: string) => Promise<void>;
}

interface RunRecord {
  asked: string;
  seconds: number;
}

export interface GridFlags {
  budgetSeconds: number;
  seeds: number;
  runs: string;
  prefix: string[];
  only: RegExp;
}

/**
 * Flags of every experiment that runs programs: `--budget 30m`; `--seeds N`; `--runs DIR`, where the run folders are;
 * `--prefix "WORDS"`, put before each `longrun run`, e.g. `nice -n 5` or `flock FILE`; `--only PATTERN`, which of the folders
 * are run now (the page is made of all that are there).
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

/** What was found finished or was run: the folders that a page can be made of. */
export interface Ran<R extends AskedRun = AskedRun> {
  directories: Map<R, string>;
  /** Of the runs themselves, whenever they ran. */
  seconds: number;
  /** Asked for, and not there. */
  missing: number;
}

/** Says what fits, runs it, and gives the folders of what is finished. */
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
    // What was measured meanwhile may have changed what fits.
    if (spent() + secondsOf(run) > flags.budgetSeconds) {
      say(`${plan.now.length - index} runs are left for later: those before took longer than was thought.`);
      break;
    }
    try {
      records.set(run, await execute(run, directoryOf(run), flags.prefix));
      say(`${run.folder}: ${duration(records.get(run)!.seconds)}`);
    } catch (error) {
      // Below its first line is all that the run has printed.
      say(`${run.folder} failed: ${(error as Error).message.split("\n")[0]!.slice(-300)}`);
      if (++failures >= MOST_FAILURES) throw error;
    }
  }
  const done = runs.filter(isFinished);
  // A page of nothing would take the place of one that says something.
  if (done.length === 0) throw new Error(`no run of ${name} is finished yet, so there is no page; raise --budget`);
  return {
    directories: new Map(done.map((run) => [run, directoryOf(run)])),
    seconds: done.reduce((sum, run) => sum + records.get(run)!.seconds, 0),
    missing: runs.length - done.length,
  };
}

async function execute(run: AskedRun, directory: string, prefix: string[]): Promise<RunRecord> {
  // Half a run says nothing; one that goes on later has other times.
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
  // Weights are most of a folder, and no page reads them.
  rmSync(join(directory, "checkpoints"), { recursive: true, force: true });
  writeFileSync(join(directory, RECORD), `${JSON.stringify(record)}\n`);
  return record;
}

/** As the run itself counts, without what a prefix waited for. */
function ownSeconds(directory: string): number | undefined {
  const file = join(directory, "summary.json");
  if (!existsSync(file)) return undefined;
  const { startedAt, updatedAt } = JSON.parse(readFileSync(file, "utf8")) as RunSummary;
  return (Date.parse(updatedAt) - Date.parse(startedAt)) / 1000;
}

/** @throws Error if the folder holds a run with other settings */
function recordOf(directory: string, run: AskedRun): RunRecord | undefined {
  const file = join(directory, RECORD);
  if (!existsSync(file)) return undefined;
  const record = JSON.parse(readFileSync(file, "utf8")) as RunRecord;
  if (record.asked !== digest(run))
    throw new Error(`${directory} was run with other settings; remove it, or give another folder with --runs`);
  return record;
}

/** Of the manifest without its comments, and the settings. */
function digest({ manifest, set }: AskedRun): string {
  const content = manifest === "" ? "" : parse(readFileSync(join(MANIFESTS, manifest), "utf8"));
  return createHash("sha256")
    .update(JSON.stringify([content, set]))
    .digest("hex")
    .slice(0, 16);
}
