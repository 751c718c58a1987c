import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ReportError, readRunFolder } from "./run-folder.ts";

/** Writes `report.html` of a run folder, whole or not at all, and gives its path. */
export async function writeReport(runDirectory: string): Promise<string> {
  const run = await readRunFolder(runDirectory);
  // Vega takes most of a second to load: a wrong folder is refused before.
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
