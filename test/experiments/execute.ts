/** Makes one run of an experiment in a folder of its own, and recognises a finished one. */
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import type { RunSummary } from "../../learner/metrics/summary.ts";
import { finished } from "../bench/processes.ts";
import type { Priced } from "./budget.ts";
import { type Part, partOf, removePart, runPart } from "./parts.ts";

const CLI = fileURLToPath(new URL("../../controller/cli.ts", import.meta.url));
const MANIFESTS = fileURLToPath(new URL("./manifests/", import.meta.url));
/** File in a finished run's folder: its settings and duration. */
const RECORD = "experiment.json";

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
  /** The run may be interrupted and go on. Its time and order do not matter then, as several calls may make it. */
  resumes?: boolean;
  /** With `resumes`: program and arguments that make the folder, or go on with it; default `longrun run`. */
  words?: (directory: string) => string[];
}

export interface RunRecord {
  asked: string;
  seconds: number;
  /** Of runs that may be interrupted: processor time of all processes; null: unknown. */
  cpuSeconds?: number | null;
}

/** Makes a run, or goes on with it. @returns undefined if the run was interrupted and will go on */
export async function execute(
  run: AskedRun,
  directory: string,
  prefix: string[],
  leftSeconds: number,
): Promise<RunRecord | undefined> {
  const asked = digest(run);
  const earlier = run.resumes ? partOf(directory, asked) : undefined;
  if (!earlier) {
    // A run that does not resume is useless if it is unfinished: a continued one would have different times.
    rmSync(directory, { recursive: true, force: true });
    mkdirSync(dirname(directory), { recursive: true });
  }
  const record = run.resumes
    ? await executePart(run, directory, prefix, earlier ?? { asked, seconds: 0, cpuSeconds: 0 }, leftSeconds)
    : await executeWhole(run, directory, prefix);
  if (record === undefined) return undefined;
  // Weights are most of a folder's size, and no page reads them.
  rmSync(join(directory, "checkpoints"), { recursive: true, force: true });
  writeFileSync(join(directory, RECORD), `${JSON.stringify(record)}\n`);
  removePart(directory);
  return record;
}

const longrun = (words: string[]) => [process.execPath, CLI, "run", ...words, "--json"];

function wordsOf({ manifest, set }: AskedRun, directory: string): string[] {
  return longrun([join(MANIFESTS, manifest), "--out", directory, ...set.flatMap((setting) => ["--set", setting])]);
}

async function executePart(
  run: AskedRun,
  directory: string,
  prefix: string[],
  earlier: Part,
  leftSeconds: number,
): Promise<RunRecord | undefined> {
  const begin = () => (existsSync(directory) ? longrun(["--resume", directory]) : wordsOf(run, directory));
  const words = run.words?.(directory) ?? begin();
  const { isFinished, ...record } = await runPart([...prefix, ...words], directory, earlier, leftSeconds);
  return isFinished ? record : undefined;
}

async function executeWhole(run: AskedRun, directory: string, prefix: string[]): Promise<RunRecord> {
  const began = performance.now();
  if (run.execute) {
    mkdirSync(directory);
    await run.execute(directory);
  } else {
    const [file, ...args] = [...prefix, ...wordsOf(run, directory)];
    await finished(file!, args);
  }
  return { asked: digest(run), seconds: ownSeconds(directory) ?? (performance.now() - began) / 1000 };
}

/** Returns the run's own duration, without a prefix's waiting time. */
function ownSeconds(directory: string): number | undefined {
  const file = join(directory, "summary.json");
  if (!existsSync(file)) return undefined;
  const { startedAt, updatedAt } = JSON.parse(readFileSync(file, "utf8")) as RunSummary;
  return (Date.parse(updatedAt) - Date.parse(startedAt)) / 1000;
}

/** @throws Error if the folder contains a run with other settings */
export function recordOf(directory: string, run: AskedRun): RunRecord | undefined {
  const file = join(directory, RECORD);
  if (!existsSync(file)) return undefined;
  const record = JSON.parse(readFileSync(file, "utf8")) as RunRecord;
  if (record.asked !== digest(run))
    throw new Error(`${directory} was run with other settings; remove it, or give another folder with --runs`);
  return record;
}

/** Returns the digest of the settings and the manifest without its comments. */
export function digest({ manifest, set }: AskedRun): string {
  const content = manifest === "" ? "" : parse(readFileSync(join(MANIFESTS, manifest), "utf8"));
  return createHash("sha256")
    .update(JSON.stringify([content, set]))
    .digest("hex")
    .slice(0, 16);
}

/** Whether a run is begun, and will go on. */
export const isBegun = (run: AskedRun, directory: string): boolean =>
  run.resumes === true && partOf(directory, digest(run)) !== undefined;
