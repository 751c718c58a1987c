/** The folder of a run. It is created completely or not at all, and one process at a time holds it. */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { hostname } from "node:os";
import { join, resolve } from "node:path";
import { resolvedText } from "../../crds/resolved.ts";
import type { TrainingRun } from "../../crds/trainingrun.ts";
import { describeFileError } from "../../proto/errors.ts";
import { checkFolder, makeFolder } from "../../proto/folders.ts";
import { placeOfProcesses, startTicks } from "../../proto/temporary-folder.ts";
import { ControllerError } from "../errors.ts";

export const MANIFEST = "trainingrun.yaml";
const LOCK = "lock";

/**
 * @param out the folder itself; absent: `runs/<name>-<UTC time>` below the working directory
 * @returns the path of a new run's folder, which does not exist yet
 * @throws ControllerError or FolderError `input` if the path exists, or if no folder can be made there
 */
export function newRunFolder(run: TrainingRun, out: string | undefined, now: Date): string {
  const directory = resolve(out ?? join("runs", `${run.metadata.name}-${compactTime(now)}`));
  if (existsSync(directory) && !statSync(directory).isDirectory())
    throw new ControllerError("input", `--out ${directory}: is a file; name a folder`);
  if (!existsSync(directory) || readdirSync(directory).length === 0) {
    checkFolder(directory, "--out");
    return directory;
  }
  const resume = existsSync(join(directory, MANIFEST)) ? `, or continue the run in it: --resume ${directory}` : "";
  throw new ControllerError("input", `--out ${directory}: the folder is not empty; choose another one${resume}`);
}

/** Creates the folder with its manifest, completely or not at all, and holds it. */
export function createRunFolder(directory: string, run: TrainingRun): void {
  makeFolder(join(directory, "logs"));
  try {
    writeManifest(directory, run);
  } catch (cause) {
    rmSync(directory, { recursive: true, force: true });
    throw new ControllerError("failed", describeFileError(directory, cause), { cause });
  }
  holdRunFolder(directory);
}

/** Writes the resolved manifest, completely or not at all. */
export function writeManifest(directory: string, run: TrainingRun): void {
  const path = join(directory, MANIFEST);
  const earlier = existsSync(path) ? readFileSync(path, "utf8") : "";
  writeFileSync(`${path}.new`, resolvedText(run, { earlier }), { flush: true });
  renameSync(`${path}.new`, path);
}

/** @throws ControllerError `input` if a running process holds the folder, or one that cannot be seen from here */
export function refuseLiving(directory: string): void {
  const lock = join(directory, LOCK);
  const holder = readHolder(lock);
  if (holder === undefined) return;
  const { pid, host = "an unknown machine", place } = holder;
  if (place === undefined || place !== placeOfProcesses())
    throw new ControllerError(
      "input",
      `${directory}: process ${pid} of ${host} holds this run, and cannot be seen from here; once it has ended, remove ${lock}`,
    );
  if (startTicks(pid) === holder.startTicks)
    throw new ControllerError("input", `${directory}: this run is alive (process ${pid}); stop that one first`);
}

/** Holds the folder until this process ends. @throws ControllerError `input` if another running process holds it */
export function holdRunFolder(directory: string): void {
  const lock = join(directory, LOCK);
  refuseLiving(directory);
  try {
    rmSync(lock, { force: true });
    const holder: Holder = {
      pid: process.pid,
      startTicks: startTicks(process.pid),
      host: hostname(),
      place: placeOfProcesses(),
    };
    writeFileSync(lock, JSON.stringify(holder), { flag: "wx" });
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code === "EEXIST")
      throw new ControllerError("input", `${directory}: another process has just taken this run`, { cause });
    throw new ControllerError("failed", describeFileError(lock, cause), { cause });
  }
}

/** Removes the lock. @throws if it cannot be removed, as on a read-only disk; it holds nothing once this process has ended */
export function releaseRunFolder(directory: string): void {
  rmSync(join(directory, LOCK), { force: true });
}

/** The process that holds a run. Its number has a meaning in `place` alone: one machine and PID namespace. */
interface Holder {
  pid: number;
  startTicks: string | undefined;
  host?: string;
  place: string | undefined;
}

function readHolder(lock: string): Holder | undefined {
  try {
    return JSON.parse(readFileSync(lock, "utf8"));
  } catch {
    // The file is missing or incomplete after a crash: nobody holds the folder.
    return undefined;
  }
}

/** 2026-01-31T09:05:00.000Z -> 20260131T090500Z */
function compactTime(time: Date): string {
  return time.toISOString().replace(/[-:]|\.\d+/g, "");
}
