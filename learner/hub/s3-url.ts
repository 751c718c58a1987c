/** Names of places in S3: s3://BUCKET/PREFIX. */
import { TransferError } from "./errors.ts";

export interface S3Place {
  bucket: string;
  /** Without a slash first or last; empty: the bucket's root. */
  prefix: string;
}

export const isS3 = (text: string): boolean => text.startsWith("s3://");

/** @throws TransferError that names the fault of `url` */
export function parseS3Url(url: string): S3Place {
  const [, bucket, rest = ""] = /^s3:\/\/([^/]*)(?:\/(.*))?$/.exec(url) ?? [];
  const prefix = rest.replace(/\/+$/, "");
  const segments = prefix.split("/");
  const isPrefix =
    prefix === "" || segments.every((part) => /^[\w!.*'()=@+-]+$/.test(part) && part !== "." && part !== "..");
  if (bucket !== undefined && /^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket) && isPrefix) return { bucket, prefix };
  throw new TransferError("input", `${url} is no place in S3; give s3://BUCKET/PREFIX, such as s3://models/qwen2.5-3b`);
}
