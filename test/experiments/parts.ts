/** A run that may take several calls of its experiment: it is stopped when the budget is spent, and goes on with the next call. */
import { spawn } from "node:child_process";
import { existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";

/** What a run has taken so far. */
export interface Part {
  /** Digest of its settings. */
  asked: string;
  seconds: number;
  /** Processor time of all its processes; null: a call ended before it was counted. */
  cpuSeconds: number | null;
}

/** Exit status of a command that was interrupted and can go on. */
const INTERRUPTED = 130;
/** Linux counts processor time in these parts of a second (sysconf(_SC_CLK_TCK)). */
const TICKS = 100;

/** Beside the folder, because `longrun run` makes the folder itself. */
const fileOf = (directory: string) => `${directory}.part.json`;

/** Returns what was done of a run with these settings, if its folder is still there. */
export function partOf(directory: string, asked: string): Part | undefined {
  if (!existsSync(directory) || !existsSync(fileOf(directory))) return undefined;
  const part = JSON.parse(readFileSync(fileOf(directory), "utf8")) as Part;
  return part.asked === asked ? part : undefined;
}

/**
 * Starts or continues a run, and interrupts it after some seconds.
 *
 * @param words program and arguments; a second call with the same folder must go on
 * @param before what was done earlier
 * @returns what was done in all, and whether the run is finished
 * @throws Error if the command fails
 */
export async function runPart(
  words: readonly string[],
  directory: string,
  before: Part,
  stopAfterSeconds: number,
): Promise<Part & { isFinished: boolean }> {
  const write = (part: Part) => writeFileSync(fileOf(directory), `${JSON.stringify(part)}\n`);
  write({ ...before, cpuSeconds: null });
  const [began, cpu] = [performance.now(), cpuSecondsOfChildren()];
  const [file, ...args] = words;
  const child = spawn(file!, args, { stdio: ["ignore", "ignore", "pipe"] });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said = (said + text).slice(-2000);
  });
  const timer = setTimeout(() => child.kill("SIGTERM"), stopAfterSeconds * 1000);
  const status = await new Promise<number | null>((resolve, reject) => {
    child.on("error", reject);
    child.on("close", resolve);
  });
  clearTimeout(timer);
  const part: Part = {
    asked: before.asked,
    seconds: before.seconds + (performance.now() - began) / 1000,
    cpuSeconds: before.cpuSeconds === null ? null : before.cpuSeconds + cpuSecondsOfChildren() - cpu,
  };
  write(part);
  if (status !== 0 && status !== INTERRUPTED)
    throw new Error(`${words.join(" ")} ended with ${status}: ${said.trim().split("\n").slice(-3).join("; ")}`);
  return { ...part, isFinished: status === 0 };
}

export const removePart = (directory: string): void => rmSync(fileOf(directory), { force: true });

/** Returns user and system time of this process's children that have ended, with those that they waited for. */
function cpuSecondsOfChildren(): number {
  const stat = readFileSync("/proc/self/stat", "utf8");
  // the name, in brackets, may contain spaces; cutime and cstime are fields 16 and 17
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[13]) + Number(fields[14])) / TICKS;
}
