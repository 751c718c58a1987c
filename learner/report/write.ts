import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ReportError, readRunFolder } from "./run-folder.ts";

/** Writes `report.html` to a run folder, completely or not at all, and returns its path. */
export async function writeReport(runDirectory: string): Promise<string> {
  const run = await readRunFolder(runDirectory);
  // Loaded only now, because Vega takes most of a second and a wrong folder is refused before.
  const { renderPage } = await import("./page.ts");
  const page = await renderPage(run);
  const path = join(runDirectory, "report.html");
  const next = `${path}.${process.pid}.new`;
  try {
    await writeFile(next, page);
    await rename(next, path);
  } catch (error) {
    await rm(next, { force: true }).catch(() => undefined);
    throw new ReportError("write", `${path} cannot be written: ${(error as Error).message}`, { cause: error });
  }
  return path;
}
