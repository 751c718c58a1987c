/** `longrun best RUN`: the best program of a run folder on this machine. */
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parseResolved } from "../../crds/trainingrun.ts";
import { ControllerError } from "../errors.ts";
import { MANIFEST } from "../local/run-folder.ts";
import type { Screen } from "../local/terminal/terminal.ts";
import { printBest } from "./best.ts";
import type { BestOptions } from "./run-folder-options.ts";

/** @throws ControllerError as `printBest`, or if this is no run folder */
export async function printBestHere(run: string, options: BestOptions, screen: Screen): Promise<void> {
  const manifest = join(run, MANIFEST);
  if (!existsSync(manifest)) {
    const problem = existsSync(run) ? `this is no run folder: it has no ${MANIFEST}` : "there is no such run folder";
    throw new ControllerError("input", `${run}: ${problem}`);
  }
  const { spec } = parseResolved(readFileSync(manifest, "utf8"), manifest);
  const read = async (path: string) => {
    const file = join(run, path);
    return existsSync(file) ? readFileSync(file, "utf8") : undefined;
  };
  const names = spec.tasks.map(({ name }) => name);
  await printBest(run, names, options, read, screen);
}
