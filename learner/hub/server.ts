/** The interface of a server with models: the hub (`repo.ts`), S3 (`s3-model.ts`), a registry (`oci-model.ts`). */
import type { TransferError } from "./errors.ts";
import type { OpenAnswer, Transfer } from "./transfer.ts";

export interface RepoFile {
  /** At the root of the repository: without a slash. */
  name: string;
  bytes: number;
  /**
   * `sha256` and `md5` of the bytes; `git`: SHA-1 of git's blob; `md5-parts`: MD5 of the parts' MD5s, which S3 has for an object that
   * was uploaded in parts.
   */
  algorithm: "sha256" | "git" | "md5" | "md5-parts";
  /** In hexadecimal; with `md5-parts` followed by `-` and the number of parts. */
  hash: string;
  /** With `md5-parts`: length of all parts but the last. */
  partBytes?: number;
}

/** Files on a server, in one folder. */
export interface FileServer {
  /** The model's name in messages: OWNER/NAME, or s3://BUCKET/PREFIX. */
  readonly repo: string;
  readonly endpoint: string;
  readonly transfer: Transfer;
  /** Requests a file's bytes from `start` on. One try. */
  open(file: RepoFile, start: number): Promise<OpenAnswer>;
  /** Returns the error of a request of `open` that got no answer, or whose answer broke off. */
  explain(cause: unknown): TransferError;
}

/** One model on a server, at one version. */
export interface ModelServer extends FileServer {
  /** Version of the content, 40 hexadecimal digits. */
  readonly commit: string;
  /** Returns the files at the root. @throws TransferError */
  list(): Promise<RepoFile[]>;
}

/**
 * Whether a server's text can name a file of a model folder: it stays in the folder, is not hidden, and leaves room for the end of a
 * partial file's name.
 */
export const isPlainName = (name: unknown): name is string =>
  typeof name === "string" &&
  /^[^.\\/\p{Cc}][^\\/\p{Cc}]*$/u.test(name) &&
  Buffer.byteLength(name) <= LONGEST_NAME_BYTES;

/** File systems take 255 bytes. */
const LONGEST_NAME_BYTES = 200;

export const isByteCount = (value: unknown): value is number => Number.isSafeInteger(value) && (value as number) >= 0;
