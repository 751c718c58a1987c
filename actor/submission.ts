/** Packs a submission for the learner: compressed, with a digest, in chunks. */
import { createHash } from "node:crypto";
import { promisify } from "node:util";
import { deflate } from "node:zlib";
import { CHUNK_BYTES, type longrun } from "../proto/service.ts";

const compress = promisify<Uint8Array, Buffer>(deflate);

export interface PackedSubmission {
  info: longrun.v1alpha1.SubmissionInfo.$Properties;
  chunks: Buffer[];
}

/** Compresses with zlib (deflate with header) on another thread, so heartbeats continue. A chunk has at most CHUNK_BYTES. */
export async function packSubmission(submission: Buffer, chunkBytes = CHUNK_BYTES): Promise<PackedSubmission> {
  const compressed = await compress(submission);
  const chunks: Buffer[] = [];
  for (let start = 0; start < compressed.length; start += chunkBytes)
    chunks.push(compressed.subarray(start, start + chunkBytes));
  const sha256 = createHash("sha256").update(submission).digest("hex");
  const info = { bytes: submission.length, sha256, compressedBytes: compressed.length, chunks: chunks.length };
  return { info, chunks };
}
