/** `longrun solve`: a folder like a run's, whose `solve.json` says how solutions are searched for. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { SOLVE_FILE, type SolveSettings } from "../../proto/solve.ts";

/** Purpose of a search's samples in the store. */
export const PURPOSE = "solve";

/** Undefined in any other folder. @throws Error in one line if the file is damaged */
export function readSolve(directory: string): SolveSettings | undefined {
  const path = join(directory, SOLVE_FILE);
  if (!existsSync(path)) return undefined;
  try {
    return JSON.parse(readFileSync(path, "utf8")) as SolveSettings;
  } catch (cause) {
    throw new Error(`${path} cannot be read: ${(cause as Error).message}`, { cause });
  }
}
