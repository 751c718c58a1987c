/** Fetches one file of a repository: continues where an earlier fetch broke off, checks the hash, and then gives the file its name. */
import { existsSync, statSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { size } from "../engine/index.ts";
import { TransferError } from "./errors.ts";
import { type FileHash, newHash } from "./hash.ts";
import type { FileServer, RepoFile } from "./server.ts";
import { persist } from "./transfer.ts";

/** Downloads of a file with a wrong hash: a broken disk or proxy may have changed bytes, so it is fetched again once. */
const MOST_WRONG = 2;

/** Returns whether the file has its name, which it gets after its hash was checked. */
export const isThere = (folder: string, { name, bytes }: RepoFile): boolean =>
  statSync(join(folder, name), { throwIfNoEntry: false })?.size === bytes;

/** Returns the bytes of a file on disk, complete or partial. */
export function bytesThere(folder: string, file: RepoFile): number {
  if (isThere(folder, file)) return file.bytes;
  const part = partOf(folder, file);
  return existsSync(part) ? Math.min(statSync(part).size, file.bytes) : 0;
}

/** The partial file's name contains the hash, so a part of another version is never continued. */
const partOf = (folder: string, { name, hash }: RepoFile): string => join(folder, `${name}.${hash.slice(0, 12)}.part`);

/**
 * @param counted is called with the received bytes; a negative number if bytes are discarded
 * @throws TransferError; the partial file stays, and the next fetch continues it
 */
export async function downloadFile(
  server: FileServer,
  file: RepoFile,
  folder: string,
  counted: (bytes: number) => void,
): Promise<void> {
  if (isThere(folder, file)) return;
  const { endpoint, repo, transfer } = server;
  const path = partOf(folder, file);
  await using handle = await open(path, existsSync(path) ? "r+" : "w+");
  const part = new Part(handle, file, counted);
  for (let wrong = 1; ; wrong++) {
    await part.readBack();
    await persist(
      transfer,
      (cause) => server.explain(cause),
      (progressed) => continuePart(server, part, progressed),
    ).catch((cause: unknown) => {
      throw withProgress(cause, part);
    });
    if (part.digest() === file.hash) break;
    await part.clear();
    const problem = `${file.name} of ${repo} came with another hash than ${endpoint} lists`;
    if (wrong === MOST_WRONG) {
      await rm(path);
      throw new TransferError(
        "hash",
        `${problem}, ${wrong} times; look at the disk and at the proxy or mirror between`,
      );
    }
    transfer.say(`${problem}; fetching it anew`);
  }
  await handle.sync();
  await rename(path, join(folder, file.name));
}

/** Returns a connection's error with the size of the partial file, which the next fetch continues. */
function withProgress(cause: unknown, { length, file }: Part): unknown {
  if (!(cause instanceof TransferError) || cause.code !== "network") return cause;
  const progress = `${size(length)} of ${size(file.bytes)} of ${file.name} are there`;
  return new TransferError("network", `${cause.message}; ${progress}, and the same command goes on from there`, {
    cause,
  });
}

async function continuePart(server: FileServer, part: Part, progressed: () => void): Promise<void> {
  if (part.length === part.file.bytes) return;
  const answer = await server.open(part.file, part.length);
  try {
    if (answer.status === 416) {
      await part.clear();
      throw new TransferError("network", `${part.file.name}: the server cannot continue it`, { again: {} });
    }
    if (answer.status !== 206) await part.clear(); // the server sends all of it
    checkRange(answer, part);
    for await (const chunk of answer.body) {
      answer.heard();
      if (await part.append(chunk)) progressed();
    }
  } finally {
    answer.close();
  }
  if (part.length < part.file.bytes)
    throw new TransferError(
      "network",
      `${part.file.name}: the answer ended after ${part.length} of ${part.file.bytes} bytes; look at the proxy or mirror between`,
      { again: {} },
    );
}

/** @throws TransferError if the answer has other bytes than the missing ones */
function checkRange({ status, range }: { status: number; range: string | undefined }, { file, length }: Part): void {
  const [, start, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(range ?? "") ?? [];
  if (status !== 206 || (Number(start) === length && Number(total) === file.bytes)) return;
  throw new TransferError(
    "network",
    `${file.name}: the server sends ${range} in place of bytes ${length}-/${file.bytes}`,
    {
      again: {},
    },
  );
}

/** A partial file on disk, and the hash of its bytes. */
class Part {
  readonly file: RepoFile;
  length = 0;
  readonly #handle: FileHandle;
  readonly #counted: (bytes: number) => void;
  #hash: FileHash;
  #furthest = 0;

  constructor(handle: FileHandle, file: RepoFile, counted: (bytes: number) => void) {
    this.#handle = handle;
    this.file = file;
    this.#counted = counted;
    this.#hash = newHash(this.file);
  }

  /** Continues the partial file of an earlier fetch. */
  async readBack(): Promise<void> {
    const { size } = await this.#handle.stat();
    if (size > this.file.bytes) await this.#handle.truncate(0);
    const buffer = Buffer.alloc(1 << 20);
    for (;;) {
      const { bytesRead } = await this.#handle.read(buffer, 0, buffer.length, this.length);
      if (bytesRead === 0) return;
      this.#hash.update(buffer.subarray(0, bytesRead));
      this.length += bytesRead;
    }
  }

  /** Returns whether the file is longer than before; repeated bytes are no progress. */
  async append(chunk: Uint8Array): Promise<boolean> {
    if (this.length + chunk.length > this.file.bytes) {
      await this.clear();
      throw new TransferError(
        "hash",
        `${this.file.name} comes with more than the ${this.file.bytes} bytes that the server lists`,
      );
    }
    for (let done = 0; done < chunk.length; ) {
      const { bytesWritten } = await this.#handle.write(chunk, done, chunk.length - done, this.length + done);
      done += bytesWritten;
    }
    this.#hash.update(chunk);
    this.length += chunk.length;
    this.#counted(chunk.length);
    const isProgress = this.length > this.#furthest;
    if (isProgress) this.#furthest = this.length;
    return isProgress;
  }

  async clear(): Promise<void> {
    await this.#handle.truncate(0);
    this.#counted(-this.length);
    this.length = 0;
    this.#hash = newHash(this.file);
  }

  digest(): string {
    return this.#hash.digest();
  }
}
