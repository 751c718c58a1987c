/**
 * `results.json`: the results of a run below a prefix of a bucket. All other objects lie in folders that never change once the manifest
 * names them; it is written last, so its files are always complete.
 */
import { TransferError } from "../hub/errors.ts";
import type { S3Bucket } from "../hub/s3.ts";

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

/** Folders of pushed files below the prefix. A push removes files there that no manifest names. */
export const ROOTS = ["checkpoints", "best", "run"] as const;

/** Returns a key of the bucket. */
export const keyAt = (prefix: string, path: string): string => (prefix === "" ? path : `${prefix}/${path}`);

/** Returns the manifest of a prefix, undefined if there is none. @throws TransferError */
export async function readManifest(bucket: S3Bucket, prefix: string): Promise<ResultsManifest | undefined> {
  const text = await bucket.read(keyAt(prefix, MANIFEST));
  return text === undefined ? undefined : parseManifest(text, `${bucket.name}/${keyAt(prefix, MANIFEST)}`);
}

/** @throws TransferError naming `where` the text is from */
export function parseManifest(text: string, where: string): ResultsManifest {
  let manifest: ResultsManifest;
  try {
    manifest = JSON.parse(text) as ResultsManifest;
  } catch (cause) {
    throw new TransferError("input", `${where} is no JSON; give a place that longrun has written results to`, {
      cause,
    });
  }
  const folders = [...(manifest?.checkpoints ?? []), ...(manifest?.folders ?? [])];
  const isKnown = manifest?.format === 1 && Array.isArray(manifest.checkpoints) && Array.isArray(manifest.folders);
  if (isKnown && folders.every(isInside)) return manifest;
  throw new TransferError("input", `${where} is no manifest that this version of longrun reads; pull with a newer one`);
}

/** A manifest is somebody else's text: no file of it leads out of the folder that is pulled into. */
const isInside = ({ at, path, files }: ResultFolder): boolean =>
  [at, ...(path === "." ? [] : [path]), ...files.map(({ name }) => name)].every(
    (text) =>
      typeof text === "string" && !/[\\\0]/.test(text) && text.split("/").every((part) => !/^\.{0,2}$/.test(part)),
  );
