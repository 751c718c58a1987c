import { rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { ReportError } from "./errors.ts";
import { renderPage } from "./page.ts";
import { readRunFolder } from "./run-folder.ts";

/** Writes `report.html` of a run folder, whole or not at all, and gives its path. */
export async function writeReport(runDirectory: string): Promise<string> {
  const page = await renderPage(await readRunFolder(runDirectory));
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
