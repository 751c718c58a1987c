/** Uploads one file in parts, so that the next try sends only the missing ones; the server checks each part by its MD5. */
import { createHash } from "node:crypto";
import { type FileHandle, open } from "node:fs/promises";
import {
  AbortMultipartUploadCommand,
  CompleteMultipartUploadCommand,
  CreateMultipartUploadCommand,
  HeadObjectCommand,
  ListMultipartUploadsCommand,
  ListPartsCommand,
  PutObjectCommand,
  UploadPartCommand,
} from "@aws-sdk/client-s3";
import { TransferError } from "../hub/errors.ts";
import type { S3Bucket } from "../hub/s3.ts";
import { sideBySide } from "../hub/transfer.ts";
import type { ResultFile } from "./manifest.ts";

/** S3's own bound, less a margin. */
const MOST_PARTS = 9_900;
const READ_BYTES = 1 << 20;

/**
 * Uploads `path` to `key`, unless the bucket has the object with this length and hash.
 *
 * @param counted is called with the bytes that were sent
 * @throws TransferError `hash` for a file that has changed since it was hashed
 */
export async function uploadFile(
  bucket: S3Bucket,
  key: string,
  path: string,
  file: ResultFile,
  counted: (bytes: number) => void,
): Promise<void> {
  if (await isThere(bucket, key, file)) return;
  await using handle = await open(path, "r");
  const { partBytes } = bucket.transfer.limits;
  const length = Math.max(partBytes, Math.ceil(file.bytes / MOST_PARTS));
  if (file.bytes <= length) await putWhole(bucket, key, handle, file, counted);
  else await putParts(bucket, key, handle, file, length, counted);
}

async function isThere(bucket: S3Bucket, key: string, { bytes, sha256 }: ResultFile): Promise<boolean> {
  const head = await bucket.persist(async (abortSignal) => {
    const request = new HeadObjectCommand({ Bucket: bucket.bucket, Key: key });
    return bucket.client.send(request, { abortSignal }).catch((cause: Error) => {
      if (cause.name === "NotFound" || cause.name === "NoSuchKey") return undefined;
      throw cause;
    });
  });
  return head?.ContentLength === bytes && head.Metadata?.sha256 === sha256;
}

async function putWhole(
  bucket: S3Bucket,
  key: string,
  handle: FileHandle,
  file: ResultFile,
  counted: (bytes: number) => void,
): Promise<void> {
  const body = await readAt(handle, 0, file.bytes);
  if (createHash("sha256").update(body).digest("hex") !== file.sha256) throw changed(file);
  const place = { Bucket: bucket.bucket, Key: key, Metadata: { sha256: file.sha256 } };
  const request = new PutObjectCommand({ ...place, Body: body, ContentMD5: md5(body).toString("base64") });
  await bucket.persist((abortSignal) => bucket.client.send(request, { abortSignal }), body.length);
  counted(body.length);
}

async function putParts(
  bucket: S3Bucket,
  key: string,
  handle: FileHandle,
  file: ResultFile,
  length: number,
  counted: (bytes: number) => void,
): Promise<void> {
  const { client, transfer } = bucket;
  const place = { Bucket: bucket.bucket, Key: key };
  const UploadId = (await begunUpload(bucket, key)) ?? (await beginUpload(bucket, key, file.sha256));
  const uploaded = await partsThere(bucket, key, UploadId);
  const numbers = Array.from({ length: Math.ceil(file.bytes / length) }, (_, index) => index + 1);
  const stop = new AbortController();
  await sideBySide(numbers, transfer.limits.filesAtOnce, stop, async (PartNumber) => {
    const start = (PartNumber - 1) * length;
    const body = await readAt(handle, start, Math.min(length, file.bytes - start));
    const hash = md5(body);
    if (uploaded.get(PartNumber) === hash.toString("hex")) return;
    const part = { ...place, UploadId, PartNumber, Body: body, ContentMD5: hash.toString("base64") };
    const { ETag } = await bucket.persist(
      (abortSignal) => client.send(new UploadPartCommand(part), { abortSignal }),
      body.length,
    );
    counted(body.length);
    uploaded.set(PartNumber, unquoted(ETag));
  });
  // A report that was rewritten meanwhile must not be stored under the digest of the old one.
  if ((await hashOf(handle, file.bytes)) !== file.sha256) throw changed(file);
  const Parts = numbers.map((PartNumber) => ({ PartNumber, ETag: `"${uploaded.get(PartNumber)}"` }));
  const whole = new CompleteMultipartUploadCommand({ ...place, UploadId, MultipartUpload: { Parts } });
  await bucket.persist((abortSignal) => client.send(whole, { abortSignal }));
}

async function beginUpload(bucket: S3Bucket, key: string, sha256: string): Promise<string> {
  const request = new CreateMultipartUploadCommand({ Bucket: bucket.bucket, Key: key, Metadata: { sha256 } });
  const { UploadId } = await bucket.persist((abortSignal) => bucket.client.send(request, { abortSignal }));
  return UploadId!;
}

/** Returns the unfinished upload that an earlier push has left for this key. Its file is the same, because the key contains a digest. */
async function begunUpload(bucket: S3Bucket, key: string): Promise<string | undefined> {
  return (await uploadsBelow(bucket, key)).find((upload) => upload.key === key)?.id;
}

/** Returns the unfinished uploads below a prefix. One page is enough, because a push leaves a few at most. */
async function uploadsBelow(
  bucket: S3Bucket,
  prefix: string,
): Promise<{ key: string; id: string; begun: Date | undefined }[]> {
  const request = new ListMultipartUploadsCommand({ Bucket: bucket.bucket, Prefix: prefix });
  const { Uploads = [] } = await bucket.persist((abortSignal) => bucket.client.send(request, { abortSignal }));
  return Uploads.map(({ Key, UploadId, Initiated }) => ({ key: Key!, id: UploadId!, begun: Initiated }));
}

/** Returns the MD5s of the uploaded parts, by number. Paging by the library would not end where a server's last page has a marker. */
async function partsThere(bucket: S3Bucket, key: string, id: string): Promise<Map<number, string>> {
  const parts = new Map<number, string>();
  for (let marker: string | undefined; ; ) {
    const request = { Bucket: bucket.bucket, Key: key, UploadId: id, PartNumberMarker: marker };
    const { Parts, IsTruncated, NextPartNumberMarker } = await bucket.persist((abortSignal) =>
      bucket.client.send(new ListPartsCommand(request), { abortSignal }),
    );
    for (const { PartNumber, ETag } of Parts ?? []) parts.set(PartNumber!, unquoted(ETag));
    if (!IsTruncated) return parts;
    marker = NextPartNumberMarker;
  }
}

/** Aborts old unfinished uploads below a prefix, which nobody continues. */
export async function abortUploads(bucket: S3Bucket, prefix: string): Promise<void> {
  for (const { key, id, begun } of await uploadsBelow(bucket, prefix)) {
    if (!isLeftOver(bucket, begun)) continue;
    const request = new AbortMultipartUploadCommand({ Bucket: bucket.bucket, Key: key, UploadId: id });
    await bucket.persist((abortSignal) => bucket.client.send(request, { abortSignal }));
  }
}

/** Returns whether an object that no manifest names is too old to belong to a running push. */
export const isLeftOver = ({ transfer }: S3Bucket, from: Date | undefined): boolean =>
  from !== undefined && Date.now() - from.getTime() >= transfer.limits.leftoverSeconds * 1000;

async function readAt(handle: FileHandle, start: number, bytes: number): Promise<Buffer> {
  const body = Buffer.alloc(bytes);
  for (let done = 0; done < bytes; ) {
    const { bytesRead } = await handle.read(body, done, bytes - done, start + done);
    if (bytesRead === 0) return body.subarray(0, done);
    done += bytesRead;
  }
  return body;
}

/** Returns the SHA-256 of the file's beginning. */
async function hashOf(handle: FileHandle, bytes: number): Promise<string> {
  const hash = createHash("sha256");
  for (let at = 0; at < bytes; at += READ_BYTES)
    hash.update(await readAt(handle, at, Math.min(READ_BYTES, bytes - at)));
  return hash.digest("hex");
}

const md5 = (body: Buffer): Buffer => createHash("md5").update(body).digest();
const unquoted = (etag: string | undefined): string => (etag ?? "").replaceAll('"', "");
const changed = ({ name }: ResultFile) =>
  new TransferError("hash", `${name} has changed while it was pushed; push again`);
