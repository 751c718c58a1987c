/** Selects the files of a run folder that are copied to a bucket, and hashes them. */
import { createHash } from "node:crypto";
import { createReadStream, existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { parse } from "yaml";
import { TransferError } from "../hub/errors.ts";
import { checkpointFolders } from "../store/checkpoint-folders.ts";
import type { ResultCheckpoint, ResultFile, ResultFolder } from "./manifest.ts";

/** At the root of the run folder. The store is not among them: it changes while it is read. */
const RUN_FILES = ["trainingrun.yaml", "metrics.jsonl", "summary.json", "evaluation.md", "report.html"];

export interface LocalResults {
  /** The newest one. */
  checkpoint: ResultCheckpoint | undefined;
  folders: ResultFolder[];
}

/** Returns the name of a folder's run. @throws TransferError for a folder of no run */
export function readRunName(directory: string): string {
  const manifest = join(directory, "trainingrun.yaml");
  if (!existsSync(manifest))
    throw new TransferError("input", `${directory} is no folder of a run (it has no trainingrun.yaml); give one`);
  return (parse(readFileSync(manifest, "utf8")) as { metadata: { name: string } }).metadata.name;
}

/** Returns the files to push. */
export async function readResults(directory: string): Promise<LocalResults> {
  const own = await folderOf(
    directory,
    "run",
    RUN_FILES.filter((name) => existsSync(join(directory, name))),
  );
  const best = await folderOf(directory, "best", filesBelow(join(directory, "best")), "best");
  return {
    checkpoint: await newestCheckpoint(directory),
    folders: [own, best].filter(({ files }) => files.length > 0),
  };
}

/** Returns the newest checkpoint that can be read whole. A running learner may remove one meanwhile; then there is a newer one. */
async function newestCheckpoint(directory: string): Promise<ResultCheckpoint | undefined> {
  for (const { name, iteration } of checkpointFolders(directory)) {
    const path = `checkpoints/${name}`;
    try {
      return { ...(await folderOf(directory, path, filesBelow(join(directory, path)), path)), iteration };
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "ENOENT") throw cause;
    }
  }
  return undefined;
}

/** @param path of the folder in the run folder; absent: the run folder itself */
async function folderOf(directory: string, at: string, names: string[], path?: string): Promise<ResultFolder> {
  const files: ResultFile[] = [];
  for (const name of names) files.push({ name, ...(await hashFile(join(directory, path ?? "", name))) });
  const digest = createHash("sha256").update(JSON.stringify(files)).digest("hex").slice(0, 12);
  return { at: `${at}-${digest}`.replace(/^(best|run)-/, "$1/"), path: path ?? ".", files };
}

function filesBelow(folder: string): string[] {
  if (!existsSync(folder)) return [];
  return readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .sort();
}

async function hashFile(path: string): Promise<{ bytes: number; sha256: string }> {
  const hash = createHash("sha256");
  let bytes = 0;
  for await (const chunk of createReadStream(path, { highWaterMark: 1 << 20 })) {
    hash.update(chunk as Buffer);
    bytes += (chunk as Buffer).length;
  }
  return { bytes, sha256: hash.digest("hex") };
}
