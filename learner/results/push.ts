/** Copies a run's newest checkpoint, best program and report into a bucket: the main flow of `longrun results push`. */
import { join, resolve } from "node:path";
import { DeleteObjectCommand } from "@aws-sdk/client-s3";
import { TransferError } from "../hub/errors.ts";
import { TRANSFER_LIMITS, type TransferLimits } from "../hub/limits.ts";
import { Progress, type ProgressOutput } from "../hub/progress.ts";
import { S3Bucket } from "../hub/s3.ts";
import { parseS3Url } from "../hub/s3-url.ts";
import { sideBySide } from "../hub/transfer.ts";
import { type LocalResults, readResults, readRunName } from "./local.ts";
import {
  keyAt,
  MANIFEST,
  type ResultCheckpoint,
  type ResultFolder,
  type ResultsManifest,
  ROOTS,
  readManifest,
  type StoredManifest,
  writeManifest,
} from "./manifest.ts";
import { abortUploads, isLeftOver, uploadFile } from "./upload.ts";

export interface ResultsOptions {
  /** s3://BUCKET/PREFIX. */
  url: string;
  /** Run folder. */
  directory: string;
  env: NodeJS.ProcessEnv;
  output: ProgressOutput;
  limits?: Partial<TransferLimits>;
}

interface Pushed {
  url: string;
  /** Iteration and name of the newest checkpoint in the bucket. */
  iteration: number | undefined;
  checkpoint: string | undefined;
  /** Bytes that this call sent. */
  sentBytes: number;
}

/** Tries of a push. It starts over if a file of the folder changes, or another push replaces the manifest. */
const MOST_TRIES = 3;

/**
 * Copies a run's results to a bucket. Skips files that the bucket has; sends the manifest last, then removes files that it no longer names.
 * Begins anew if another push has replaced the manifest meanwhile.
 *
 * @param keepLast checkpoints that stay in the bucket, the new one among them
 * @throws TransferError; sent files stay, and the same call continues from there
 */
export async function pushResults(options: ResultsOptions & { keepLast: number }): Promise<Pushed> {
  const progress = new Progress(options.output, options.url);
  try {
    for (let tries = 1; ; tries++)
      try {
        return await pushOnce(options, progress);
      } catch (cause) {
        const { code } = cause as { code?: string };
        if ((code !== "hash" && code !== "ENOENT") || tries === MOST_TRIES) throw cause;
      }
  } finally {
    progress.clear();
  }
}

async function pushOnce(
  { url, directory, env, keepLast, limits }: Parameters<typeof pushResults>[0],
  progress: Progress,
): Promise<Pushed> {
  const stop = new AbortController();
  const say = (line: string) => progress.say(line);
  const place = parseS3Url(url);
  const { prefix } = place;
  const run = readRunName(directory);
  using bucket = await S3Bucket.open(place, env, {
    limits: { ...TRANSFER_LIMITS, ...limits },
    signal: stop.signal,
    say,
  });
  // Read before the folder: if another push replaces the manifest from now on, this push starts over.
  const stored = (await readManifest(bucket, prefix)) ?? (await begin(bucket, prefix, run, url));
  const { manifest: before } = stored;
  if (before.run !== run)
    throw new TransferError("input", `${url} has the results of run ${before.run}; give another prefix`);
  const local = await readResults(resolve(directory));
  const [earlier] = before.checkpoints;
  if (earlier && local.checkpoint && isForeign(earlier, local.checkpoint))
    say(
      `${url} has a checkpoint of iteration ${earlier.iteration} that this folder's run did not write: this run takes the prefix over`,
    );
  await upload(bucket, prefix, directory, local, { stop, progress });
  const manifest = nextManifest(before, local, keepLast);
  await writeManifest(bucket, prefix, manifest, stored);
  await removeOthers(bucket, prefix, before, manifest);
  const [newest] = manifest.checkpoints;
  return { url, iteration: newest?.iteration, checkpoint: newest?.path, sentBytes: progress.come };
}

/** Claims an empty prefix for the run, so that no push overwrites or removes files of others. */
async function begin(bucket: S3Bucket, prefix: string, run: string, url: string): Promise<StoredManifest> {
  const [other] = await bucket.list(keyAt(prefix, ""));
  const begun = other && (await readManifest(bucket, prefix)); // another push may have begun a moment ago
  if (begun) return begun;
  if (other)
    throw new TransferError(
      "input",
      `${url} has objects (${other.Key}) and no ${MANIFEST}; give an empty prefix, one for each run`,
    );
  const manifest: ResultsManifest = { format: 1, run, pushedAt: now(), checkpoints: [], folders: [] };
  return writeManifest(bucket, prefix, manifest, undefined);
}

/** Returns whether the bucket's newest checkpoint is later than the folder's, or a different one of the same name. */
function isForeign(theirs: ResultCheckpoint, own: ResultCheckpoint): boolean {
  const [before, after] = [theirs, own].map(({ path }) => (path.match(/\d+/g) ?? []).map(Number)) as [
    number[],
    number[],
  ];
  const order = before[0]! - after[0]! || before[1]! - after[1]!;
  return order > 0 || (order === 0 && theirs.at !== own.at);
}

async function upload(
  bucket: S3Bucket,
  prefix: string,
  directory: string,
  { checkpoint, folders }: LocalResults,
  { stop, progress }: { stop: AbortController; progress: Progress },
): Promise<void> {
  const all = [...(checkpoint ? [checkpoint] : []), ...folders];
  const files = all.flatMap((folder) => folder.files.map((file) => ({ folder, file })));
  progress.expect(
    files.reduce((sum, { file }) => sum + file.bytes, 0),
    0,
  );
  await sideBySide(files, bucket.transfer.limits.filesAtOnce, stop, ({ folder, file }) => {
    const path = join(directory, folder.path, file.name);
    return uploadFile(bucket, keyAt(prefix, `${folder.at}/${file.name}`), path, file, (sent) => progress.count(sent));
  });
}

/** Returns the next manifest: the newest `keepLast` checkpoints, and the present other folders. */
function nextManifest(before: ResultsManifest, local: LocalResults, keepLast: number): ResultsManifest {
  const { checkpoint, folders } = local;
  const earlier = before.checkpoints.filter(({ path }) => path !== checkpoint?.path);
  const checkpoints = [...(checkpoint ? [checkpoint] : []), ...earlier].slice(0, keepLast);
  return { ...before, pushedAt: now(), checkpoints, folders };
}

/** Removes files that the manifest no longer names, and old files of unfinished pushes. Younger files may belong to a running push. */
async function removeOthers(
  bucket: S3Bucket,
  prefix: string,
  before: ResultsManifest,
  manifest: ResultsManifest,
): Promise<void> {
  const keysOf = ({ at, files }: ResultFolder) => files.map(({ name }) => keyAt(prefix, `${at}/${name}`));
  const namedBy = ({ checkpoints, folders }: ResultsManifest) => new Set([...checkpoints, ...folders].flatMap(keysOf));
  const [earlier, kept] = [namedBy(before), namedBy(manifest)];
  for (const root of ROOTS) {
    const below = keyAt(prefix, `${root}/`);
    await abortUploads(bucket, below);
    for (const { Key, LastModified } of await bucket.list(below)) {
      if (kept.has(Key) || !(earlier.has(Key) || isLeftOver(bucket, LastModified))) continue;
      const request = new DeleteObjectCommand({ Bucket: bucket.bucket, Key });
      await bucket.persist((abortSignal) => bucket.client.send(request, { abortSignal }));
    }
  }
}

const now = (): string => new Date().toISOString();
