/** Copies pushed results back as a run folder: the main flow of `longrun results pull`. */
import { existsSync, readdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { makeFolder } from "../../proto/folders.ts";
import { bytesThere, downloadFile } from "../hub/download.ts";
import { TransferError } from "../hub/errors.ts";
import { asDiskError, checkSpace, holdFolder } from "../hub/folder.ts";
import { TRANSFER_LIMITS } from "../hub/limits.ts";
import { Progress } from "../hub/progress.ts";
import { S3Bucket } from "../hub/s3.ts";
import { parseS3Url } from "../hub/s3-url.ts";
import type { FileServer, RepoFile } from "../hub/server.ts";
import { sideBySide } from "../hub/transfer.ts";
import { keyAt, MANIFEST, parseManifest, type ResultFolder, type ResultsManifest, readManifest } from "./manifest.ts";
import type { ResultsOptions } from "./push.ts";

interface Pulled {
  /** Absolute path of the run folder. */
  folder: string;
  run: string;
  iteration: number | undefined;
  /** Absolute path of the newest checkpoint's folder, for `initFrom.path`. */
  checkpoint: string | undefined;
  fetchedBytes: number;
}

/**
 * Fetches the newest checkpoint, the best program, the metrics and the report.
 *
 * @param options.directory a new or empty folder, or the folder of an earlier pull of the same run; its older files are replaced
 * @throws TransferError; fetched bytes stay, and the same call continues from there
 */
export async function pullResults(options: ResultsOptions): Promise<Pulled> {
  const { url, env, output } = options;
  const place = parseS3Url(url);
  const folder = resolve(options.directory);
  const progress = new Progress(output, url);
  const stop = new AbortController();
  const limits = { ...TRANSFER_LIMITS, ...options.limits };
  const transfer = { limits, signal: stop.signal, say: (line: string) => progress.say(line) };
  try {
    using bucket = await S3Bucket.open(place, env, transfer);
    const stored = await readManifest(bucket, place.prefix);
    if (!stored) throw new TransferError("input", `there are no results in ${url}; give what was pushed to`);
    const { manifest } = stored;
    await using _ = await holdFolder(folder, transfer.say);
    const [checkpoint] = manifest.checkpoints;
    const wanted = [...manifest.folders, ...(checkpoint ? [checkpoint] : [])];
    const earlier = readPulled(folder, manifest.run);
    checkFolder(folder, [...wanted, ...earlier]);
    removeOld(folder, earlier, wanted);
    const files = wanted.flatMap((it) => it.files.map((file) => fileOf(bucket, place.prefix, folder, it, file)));
    const sum = (sizes: number[]) => sizes.reduce((a, b) => a + b, 0);
    const presentBytes = sum(files.map((it) => bytesThere(it.folder, it.file)));
    const bytes = sum(files.map(({ file }) => file.bytes));
    try {
      writePulled(folder, { ...manifest, checkpoints: checkpoint ? [checkpoint] : [] });
      checkSpace(folder, bytes - presentBytes, url);
      progress.expect(bytes, presentBytes);
      await sideBySide(files, limits.filesAtOnce, stop, async ({ server, file, folder: into }) => {
        makeFolder(dirname(join(into, file.name)));
        await downloadFile(server, file, into, (count) => progress.count(count));
      });
    } catch (cause) {
      throw asDiskError(cause, folder);
    }
    const { run } = manifest;
    const at = checkpoint && join(folder, checkpoint.path);
    return { folder, run, iteration: checkpoint?.iteration, checkpoint: at, fetchedBytes: progress.come };
  } finally {
    progress.clear();
  }
}

/** Returns the folders that an earlier pull has fetched, or begun to fetch. @throws TransferError for results of another run */
function readPulled(folder: string, run: string): ResultFolder[] {
  const path = join(folder, MANIFEST);
  if (!existsSync(path)) return [];
  const pulled = parseManifest(readFileSync(path, "utf8"), path);
  if (pulled.run !== run)
    throw new TransferError("input", `${folder} has results of run ${pulled.run}; give a new or empty folder`);
  return [...pulled.checkpoints, ...pulled.folders];
}

/** Writes the manifest of the pull before its first file. */
function writePulled(folder: string, manifest: ResultsManifest): void {
  makeFolder(folder, "--out");
  const path = join(folder, MANIFEST);
  writeFileSync(`${path}.new`, `${JSON.stringify(manifest, null, 2)}\n`);
  renameSync(`${path}.new`, path);
}

/** Removes older files of an earlier pull: otherwise a file of the same name and length would count as the new one. */
function removeOld(folder: string, earlier: ResultFolder[], wanted: ResultFolder[]): void {
  const namesOf = ({ path, files }: ResultFolder) =>
    files.map(({ name, sha256 }) => [join(path, name), sha256] as const);
  const hashes = new Map(wanted.flatMap(namesOf));
  for (const [name, sha256] of earlier.flatMap(namesOf)) {
    if (hashes.get(name) === sha256) continue;
    for (const left of [name, `${name}.${sha256.slice(0, 12)}.part`]) rmSync(join(folder, left), { force: true });
  }
  for (const { path } of earlier)
    if (/^checkpoints\/[^/]+$/.test(path) && !wanted.some((it) => it.path === path))
      rmSync(join(folder, path), { recursive: true, force: true });
}

/** @throws TransferError for a folder with other files, which would count as files of these results */
function checkFolder(folder: string, wanted: ResultFolder[]): void {
  if (!existsSync(folder)) return;
  const known = new Set(wanted.flatMap(({ path, files }) => files.map(({ name }) => join(path, name))));
  for (const name of [MANIFEST, `${MANIFEST}.new`]) known.add(name);
  const other = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => join(parentPath, name).slice(folder.length + 1))
    .find((path) => !known.has(path.replace(/\.[0-9a-f]{12}\.part$/, "")));
  if (other)
    throw new TransferError(
      "input",
      `${folder} has ${other}, which is not of these results; give a new or empty folder`,
    );
}

function fileOf(
  bucket: S3Bucket,
  prefix: string,
  folder: string,
  { at, path }: ResultFolder,
  { name, bytes, sha256 }: { name: string; bytes: number; sha256: string },
): { server: FileServer; file: RepoFile; folder: string } {
  const server: FileServer = {
    repo: bucket.name,
    endpoint: bucket.endpoint,
    transfer: bucket.transfer,
    open: (_, start) => bucket.get(keyAt(prefix, `${at}/${name}`), start),
    explain: (cause) => bucket.explain(cause),
  };
  return { server, file: { name, bytes, algorithm: "sha256", hash: sha256 }, folder: join(folder, path) };
}
