/** One file of a repository: continued where an earlier fetch broke off, checked, and whole under its name or not there. */
import { createHash, type Hash } from "node:crypto";
import { existsSync, statSync } from "node:fs";
import { type FileHandle, open, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { HubError } from "./errors.ts";
import type { Hub } from "./hub.ts";
import type { RepoFile } from "./repo.ts";

/** How often a file may come with another hash: bytes of a broken disk or proxy are fetched anew once. */
const MOST_WRONG = 2;

/** Whether the file is there under its name. It got the name after its hash was checked. */
export const isThere = (folder: string, { name, bytes }: RepoFile): boolean =>
  statSync(join(folder, name), { throwIfNoEntry: false })?.size === bytes;

/** Bytes that are there of a file, under its name or as the beginning of it. */
export function bytesThere(folder: string, file: RepoFile): number {
  if (isThere(folder, file)) return file.bytes;
  const part = partOf(folder, file);
  return existsSync(part) ? Math.min(statSync(part).size, file.bytes) : 0;
}

/** The name has the hash in it: the beginning of another version is never continued. */
const partOf = (folder: string, { name, hash }: RepoFile): string => join(folder, `${name}.${hash.slice(0, 12)}.part`);

/**
 * @param counted is called with the bytes that have come, fewer than 0 where some are thrown away
 * @throws HubError; the beginning stays, so that the next fetch goes on
 */
export async function downloadFile(
  hub: Hub,
  commit: string,
  file: RepoFile,
  folder: string,
  counted: (bytes: number) => void,
): Promise<void> {
  if (isThere(folder, file)) return;
  const { endpoint, repo } = hub.options;
  const url = `${endpoint}/${repo}/resolve/${commit}/${encodeURIComponent(file.name)}`;
  const path = partOf(folder, file);
  await using handle = await open(path, existsSync(path) ? "r+" : "w+");
  const part = new Part(handle, file, counted);
  for (let wrong = 1; ; wrong++) {
    await part.readBack();
    await hub.persist(url, (progressed) => continuePart(hub, url, part, progressed));
    if (part.digest() === file.hash) break;
    await part.clear();
    const problem = `${file.name} of ${repo} came with another hash than ${endpoint} lists`;
    if (wrong === MOST_WRONG) {
      await rm(path);
      throw new HubError("hash", `${problem}, ${wrong} times; look at the disk and at the proxy or mirror between`);
    }
    hub.options.say(`${problem}; fetching it anew`);
  }
  await handle.sync();
  await rename(path, join(folder, file.name));
}

async function continuePart(hub: Hub, url: string, part: Part, progressed: () => void): Promise<void> {
  if (part.length === part.file.bytes) return;
  const { response, heard, close } = await hub.open(url, part.length);
  try {
    if (response.status === 416) {
      await part.clear();
      throw new HubError("network", `${part.file.name}: the server cannot continue it`, { again: {} });
    }
    if (response.status !== 206) await part.clear(); // the server sends all of it
    checkRange(response, part);
    for await (const chunk of response.body ?? []) {
      heard();
      if (await part.append(chunk)) progressed();
    }
  } finally {
    close();
  }
  if (part.length < part.file.bytes)
    throw new HubError("network", `${part.file.name}: the connection ended early`, { again: {} });
}

/** @throws HubError if the answer is of other bytes than those that are missing */
function checkRange(response: Response, { file, length }: Part): void {
  const range = response.headers.get("content-range");
  const [, start, total] = /^bytes (\d+)-\d+\/(\d+)$/.exec(range ?? "") ?? [];
  if (response.status !== 206 || (Number(start) === length && Number(total) === file.bytes)) return;
  throw new HubError("network", `${file.name}: the server sends ${range} in place of bytes ${length}-/${file.bytes}`, {
    again: {},
  });
}

/** The beginning of a file on disk, and the hash of it. */
class Part {
  readonly file: RepoFile;
  length = 0;
  readonly #handle: FileHandle;
  readonly #counted: (bytes: number) => void;
  #hash: Hash;
  #furthest = 0;

  constructor(handle: FileHandle, file: RepoFile, counted: (bytes: number) => void) {
    this.#handle = handle;
    this.file = file;
    this.#counted = counted;
    this.#hash = this.#newHash();
  }

  /** Takes up what an earlier fetch has left. */
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

  /** Returns whether the file is longer now than it ever was: what comes again is no progress. */
  async append(chunk: Uint8Array): Promise<boolean> {
    if (this.length + chunk.length > this.file.bytes) {
      await this.clear();
      throw new HubError(
        "hash",
        `${this.file.name} comes with more than the ${this.file.bytes} bytes that the hub lists`,
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
    this.#hash = this.#newHash();
  }

  digest(): string {
    return this.#hash.copy().digest("hex");
  }

  #newHash(): Hash {
    const { algorithm, bytes } = this.file;
    return algorithm === "sha256" ? createHash("sha256") : createHash("sha1").update(`blob ${bytes}\0`);
  }
}
