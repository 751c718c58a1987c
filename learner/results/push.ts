/** Copies a run's newest checkpoint, best program and report into a bucket: the main flow of `longrun results push`. */
import { join, resolve } from "node:path";
import { DeleteObjectCommand, PutObjectCommand } from "@aws-sdk/client-s3";
import { TransferError } from "../hub/errors.ts";
import { TRANSFER_LIMITS, type TransferLimits } from "../hub/limits.ts";
import { Progress, type ProgressOutput } from "../hub/progress.ts";
import { S3Bucket } from "../hub/s3.ts";
import { parseS3Url } from "../hub/s3-url.ts";
import { sideBySide } from "../hub/transfer.ts";
import { type LocalResults, readResults } from "./local.ts";
import { keyAt, MANIFEST, type ResultFolder, type ResultsManifest, ROOTS, readManifest } from "./manifest.ts";
import { abortUploads, uploadFile } from "./upload.ts";

export interface ResultsOptions {
  /** s3://BUCKET/PREFIX. */
  url: string;
  /** Run folder. */
  directory: string;
  env: NodeJS.ProcessEnv;
  output: ProgressOutput;
  limits?: Partial<TransferLimits>;
}

export interface Pushed {
  url: string;
  /** Iteration and name of the newest checkpoint in the bucket. */
  iteration: number | undefined;
  checkpoint: string | undefined;
  /** Bytes that this call sent. */
  sentBytes: number;
}

/** How often a folder is read anew because a file of it changed meanwhile. */
const MOST_READS = 3;

/**
 * Copies a run's results to a bucket. Skips files that the bucket has; sends the manifest last, then removes files that it does not name.
 *
 * @param keepLast checkpoints that stay in the bucket, the new one among them
 * @throws TransferError; sent files stay, and the same call continues from there
 */
export async function pushResults(options: ResultsOptions & { keepLast: number }): Promise<Pushed> {
  const progress = new Progress(options.output, options.url);
  try {
    for (let reads = 1; ; reads++)
      try {
        return await pushOnce(options, progress);
      } catch (cause) {
        const { code } = cause as { code?: string };
        if ((code !== "hash" && code !== "ENOENT") || reads === MOST_READS) throw cause;
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
  const local = await readResults(resolve(directory));
  using bucket = await S3Bucket.open(place, env, {
    ...{ limits: { ...TRANSFER_LIMITS, ...limits }, signal: stop.signal, say },
  });
  const before = (await readManifest(bucket, prefix)) ?? (await begin(bucket, prefix, local.run, url));
  if (before.run !== local.run)
    throw new TransferError("input", `${url} has the results of run ${before.run}; give another prefix`);
  await upload(bucket, prefix, directory, local, { stop, progress });
  const manifest = nextManifest(before, local, keepLast);
  await writeManifest(bucket, prefix, manifest);
  await removeOthers(bucket, prefix, manifest);
  const [newest] = manifest.checkpoints;
  return { url, iteration: newest?.iteration, checkpoint: newest?.path, sentBytes: progress.come };
}

/** Claims an empty prefix for the run, so that no push overwrites or removes files of others. */
async function begin(bucket: S3Bucket, prefix: string, run: string, url: string): Promise<ResultsManifest> {
  const [other] = await bucket.list(keyAt(prefix, ""));
  if (other)
    throw new TransferError(
      "input",
      `${url} has objects (${other.Key}) and no ${MANIFEST}; give an empty prefix, one for each run`,
    );
  const manifest: ResultsManifest = { format: 1, run, pushedAt: now(), checkpoints: [], folders: [] };
  await writeManifest(bucket, prefix, manifest);
  return manifest;
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

async function writeManifest(bucket: S3Bucket, prefix: string, manifest: ResultsManifest): Promise<void> {
  const place = { Bucket: bucket.bucket, Key: keyAt(prefix, MANIFEST) };
  const Body = `${JSON.stringify(manifest, null, 2)}\n`;
  const request = new PutObjectCommand({ ...place, Body, ContentType: "application/json" });
  await bucket.persist((abortSignal) => bucket.client.send(request, { abortSignal }), Body.length);
}

/** Removes older checkpoints and the files of a push that ended early. */
async function removeOthers(bucket: S3Bucket, prefix: string, manifest: ResultsManifest): Promise<void> {
  const keysOf = ({ at, files }: ResultFolder) => files.map(({ name }) => keyAt(prefix, `${at}/${name}`));
  const kept = new Set([...manifest.checkpoints, ...manifest.folders].flatMap(keysOf));
  for (const root of ROOTS) {
    const below = keyAt(prefix, `${root}/`);
    await abortUploads(bucket, below);
    for (const { Key } of await bucket.list(below)) {
      if (kept.has(Key!)) continue;
      const request = new DeleteObjectCommand({ Bucket: bucket.bucket, Key });
      await bucket.persist((abortSignal) => bucket.client.send(request, { abortSignal }));
    }
  }
}

const now = (): string => new Date().toISOString();
