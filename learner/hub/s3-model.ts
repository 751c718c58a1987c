/** A model folder in a bucket: its files, with their hashes in S3 and their bytes. */
import { createHash } from "node:crypto";
import { HeadObjectCommand } from "@aws-sdk/client-s3";
import { TransferError } from "./errors.ts";
import { mayBeNeeded } from "./repo.ts";
import { S3Bucket } from "./s3.ts";
import { parseS3Url, type S3Place } from "./s3-url.ts";
import { isByteCount, isPlainName, type ModelServer, type RepoFile } from "./server.ts";
import type { Transfer } from "./transfer.ts";

/** A file of `sha256sum` beside the model; its hashes replace S3's own. */
const SUMS = "SHA256SUMS";
const LONGEST_SUMS_BYTES = 1 << 20;

/** @throws TransferError */
export async function openS3Model(url: string, env: NodeJS.ProcessEnv, transfer: Transfer): Promise<ModelServer> {
  const place = parseS3Url(url);
  const bucket = await S3Bucket.open(place, env, transfer);
  const objects = await listFolder(bucket, place);
  const files = await withHashes(bucket, place, objects);
  const etags = new Map(objects.map(({ name, etag }) => [name, etag]));
  const content = files.map(({ name, bytes, hash }) => `${name} ${bytes} ${hash}\n`).sort();
  return {
    repo: url,
    endpoint: bucket.endpoint,
    transfer,
    commit: createHash("sha256").update(content.join("")).digest("hex").slice(0, 40),
    list: async () => files,
    // A changed object of the same name is never continued.
    open: ({ name }, start) => bucket.get(keyOf(place, name).Key, start, etags.get(name)),
    explain: (cause) => bucket.explain(cause),
  };
}

interface S3Object {
  name: string;
  bytes: number;
  etag: string;
}

const keyOf = ({ bucket, prefix }: S3Place, name: string) => ({
  Bucket: bucket,
  Key: prefix === "" ? name : `${prefix}/${name}`,
});

/** Returns the objects directly below the prefix, without subfolders. */
async function listFolder(bucket: S3Bucket, { prefix }: S3Place): Promise<S3Object[]> {
  const Prefix = prefix === "" ? "" : `${prefix}/`;
  const listed = await bucket.list(Prefix, "/");
  const found = listed
    .map(({ Key, Size, ETag }) => ({ name: Key.slice(Prefix.length), bytes: Size ?? 0, etag: ETag ?? "" }))
    .filter(({ name, bytes }) => isPlainName(name) && isByteCount(bytes));
  if (found.length > 0) return found;
  const folder = `${bucket.name}/${Prefix}`;
  throw new TransferError("input", `there is nothing in ${folder}; give the folder with config.json in it`);
}

async function withHashes(bucket: S3Bucket, place: S3Place, objects: S3Object[]): Promise<RepoFile[]> {
  const sums = objects.find(({ name }) => name === SUMS);
  const known = sums ? await readSums(bucket, place, sums) : new Map<string, string>();
  const files: RepoFile[] = [];
  for (const { name, bytes, etag } of objects.filter((it) => mayBeNeeded(it.name))) {
    const sha256 = known.get(name);
    const file = sha256 ? ({ algorithm: "sha256", hash: sha256 } as const) : await hashOf(bucket, place, name, bytes);
    if (!file)
      throw new TransferError(
        "input",
        `${bucket.name} has no hash of ${name} that longrun can check (ETag ${etag}); put a file ${SUMS} beside it: sha256sum * >${SUMS}`,
      );
    files.push({ name, bytes, ...file });
  }
  return files;
}

async function readSums(bucket: S3Bucket, place: S3Place, { bytes }: S3Object): Promise<Map<string, string>> {
  if (bytes > LONGEST_SUMS_BYTES) throw new TransferError("input", `${SUMS} has ${bytes} bytes, more than any list`);
  const { text = "" } = (await bucket.read(keyOf(place, SUMS).Key)) ?? {};
  const lines = text.split("\n").map((line) => /^([0-9a-f]{64}) [ *](?:\.\/)?(.+)$/.exec(line));
  return new Map(lines.flatMap((line) => (line ? [[line[2]!, line[1]!] as const] : [])));
}

/**
 * Returns the hash in an object's ETag: the MD5 of its bytes, or of its parts' MD5s. With keys of a KMS or of the client the ETag
 * is no hash of the bytes.
 */
async function hashOf(
  bucket: S3Bucket,
  place: S3Place,
  name: string,
  bytes: number,
): Promise<Omit<RepoFile, "name" | "bytes"> | undefined> {
  const { ETag, ContentLength, ServerSideEncryption, SSECustomerAlgorithm } = await bucket.persist((abortSignal) =>
    bucket.client.send(new HeadObjectCommand({ ...keyOf(place, name), PartNumber: 1 }), { abortSignal }),
  );
  const isCiphertext = ServerSideEncryption?.startsWith("aws:kms") || SSECustomerAlgorithm !== undefined;
  const [, hash, parts] = /^"?([0-9a-f]{32})(?:-(\d+))?"?$/.exec(ETag ?? "") ?? [];
  if (isCiphertext || hash === undefined) return undefined;
  if (parts === undefined) return { algorithm: "md5", hash };
  const partBytes = ContentLength ?? 0;
  if (partBytes === 0 || Math.ceil(bytes / partBytes) !== Number(parts)) return undefined;
  return { algorithm: "md5-parts", hash: `${hash}-${parts}`, partBytes };
}
