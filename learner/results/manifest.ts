/**
 * `results.json`: the results of a run below a prefix of a bucket. All other objects lie in folders that never change once the manifest
 * names them; it is written last, so its files are always complete.
 */
import { PutObjectCommand } from "@aws-sdk/client-s3";
import { TransferError } from "../hub/errors.ts";
import type { S3Bucket } from "../hub/s3.ts";
import { isByteCount } from "../hub/server.ts";

export interface ResultFile {
  /** Below its folder, with slashes. */
  name: string;
  bytes: number;
  sha256: string;
}

export interface ResultFolder {
  /** In the bucket, below the prefix: its name and a digest of its files. */
  at: string;
  /** In the run folder. */
  path: string;
  files: ResultFile[];
}

export interface ResultCheckpoint extends ResultFolder {
  iteration: number;
}

export interface ResultsManifest {
  format: 1;
  /** Name of the TrainingRun. */
  run: string;
  /** RFC 3339. */
  pushedAt: string;
  /** Newest first. */
  checkpoints: ResultCheckpoint[];
  /** The manifest, the metrics, the report and the best program. */
  folders: ResultFolder[];
}

export const MANIFEST = "results.json";

/** Folders of pushed files below the prefix. A push removes old files there that no manifest names. */
export const ROOTS = ["checkpoints", "best", "run"] as const;

export const keyAt = (prefix: string, path: string): string => (prefix === "" ? path : `${prefix}/${path}`);

/** A manifest as it is in the bucket. */
export interface StoredManifest {
  manifest: ResultsManifest;
  etag: string | undefined;
}

/** Returns the manifest of a prefix, undefined if there is none. @throws TransferError */
export async function readManifest(bucket: S3Bucket, prefix: string): Promise<StoredManifest | undefined> {
  const key = keyAt(prefix, MANIFEST);
  const stored = await bucket.read(key);
  return stored && { manifest: parseManifest(stored.text, `${bucket.name}/${key}`), etag: stored.etag };
}

/**
 * Writes the manifest unless another push has written one meanwhile. A server without conditional writes always writes it.
 *
 * @param earlier the manifest to replace; undefined: there was none
 * @throws TransferError `hash` if another push was faster
 */
export async function writeManifest(
  bucket: S3Bucket,
  prefix: string,
  manifest: ResultsManifest,
  earlier: StoredManifest | undefined,
): Promise<StoredManifest> {
  const Key = keyAt(prefix, MANIFEST);
  const Body = `${JSON.stringify(manifest, null, 2)}\n`;
  const object = { Bucket: bucket.bucket, Key, Body, ContentType: "application/json" };
  const condition = earlier ? { IfMatch: earlier.etag } : { IfNoneMatch: "*" };
  return bucket.persist(async (abortSignal) => {
    const put = async (how: object) =>
      (await bucket.client.send(new PutObjectCommand({ ...object, ...how }), { abortSignal })).ETag;
    try {
      return { manifest, etag: await put(condition) };
    } catch (cause) {
      const status = (cause as { $metadata?: { httpStatusCode?: number } }).$metadata?.httpStatusCode;
      if (status === 501) return { manifest, etag: await put({}) };
      if (status !== 412 && status !== 409 && (cause as Error).name !== "NoSuchKey") throw cause;
      const stored = await bucket.read(Key);
      if (stored?.text === Body) return { manifest, etag: stored.etag }; // the answer to an earlier try was lost
      throw new TransferError("hash", `another push has replaced ${bucket.name}/${Key} meanwhile; push again`, {
        cause,
      });
    }
  }, Body.length);
}

/** @throws TransferError naming `where` the text is from */
export function parseManifest(text: string, where: string): ResultsManifest {
  let manifest: unknown;
  try {
    manifest = JSON.parse(text);
  } catch (cause) {
    throw new TransferError("input", `${where} is no JSON; give a place that longrun has written results to`, {
      cause,
    });
  }
  if (isManifest(manifest)) return manifest;
  throw new TransferError("input", `${where} is no manifest that this version of longrun reads; pull with a newer one`);
}

function isManifest(value: unknown): value is ResultsManifest {
  const { format, run, pushedAt, checkpoints, folders } = Object(value) as Record<string, unknown>;
  const isCheckpoint = (each: unknown) => isFolder(each) && isByteCount((each as ResultCheckpoint).iteration);
  const hasFolders = Array.isArray(checkpoints) && checkpoints.every(isCheckpoint) && Array.isArray(folders);
  return (
    format === 1 && typeof run === "string" && typeof pushedAt === "string" && hasFolders && folders.every(isFolder)
  );
}

/** Whether a folder's files stay inside the target folder, because a manifest is foreign text. */
function isFolder(value: unknown): value is ResultFolder {
  const { at, path, files } = Object(value) as Record<string, unknown>;
  return isInside(at) && (path === "." || isInside(path)) && Array.isArray(files) && files.every(isFile);
}

function isFile(value: unknown): value is ResultFile {
  const { name, bytes, sha256 } = Object(value) as Record<string, unknown>;
  return isInside(name) && isByteCount(bytes) && typeof sha256 === "string" && /^[0-9a-f]{64}$/.test(sha256);
}

const isInside = (path: unknown): path is string =>
  typeof path === "string" && !/[\\\p{Cc}]/u.test(path) && path.split("/").every((part) => !/^\.{0,2}$/.test(part));
