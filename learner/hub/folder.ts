/** The folder that a model is fetched into: one repository at one commit, which its record names. */
import { createHash } from "node:crypto";
import { existsSync, readdirSync, readFileSync, renameSync, statfsSync, statSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { basename, join, resolve } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { makeFolder } from "../../proto/folders.ts";
import { FETCH_RECORD, size } from "../engine/index.ts";
import { TransferError } from "./errors.ts";
import { isByteCount, isPlainName, type RepoFile } from "./server.ts";

/** `fetched.json`: stays beside the model, so that a run can name its origin. */
export interface FetchRecord {
  repo: string;
  /** The requested branch, tag or commit of the hub. */
  revision?: string;
  commit: string;
  endpoint: string;
  /** Whether all files are there. */
  complete: boolean;
  /** Files that were fetched and whose hashes were checked. */
  files: RepoFile[];
}

/** Returns the source of a folder; undefined if it is empty or missing. @throws TransferError for another folder */
export function readRecord(folder: string): FetchRecord | undefined {
  const path = join(folder, FETCH_RECORD);
  if (existsSync(path))
    try {
      return parseRecord(readFileSync(path, "utf8"));
    } catch (cause) {
      throw new TransferError("input", `${path} is damaged; remove the folder, or give another one with --out`, {
        cause,
      });
    }
  if (existsSync(folder) && !statSync(folder).isDirectory())
    throw new TransferError("input", `--out ${folder} is a file; give a new or empty folder`);
  if (existsSync(folder) && readdirSync(folder).some((name) => name !== `${FETCH_RECORD}.new`))
    throw new TransferError("input", `--out ${folder} has files that no fetch has brought; give a new or empty folder`);
  return undefined;
}

function parseRecord(text: string): FetchRecord {
  const record = JSON.parse(text) as FetchRecord;
  const { commit, files } = Object(record) as Partial<FetchRecord>;
  const isFile = (file: unknown) => isPlainName(Object(file).name) && isByteCount(Object(file).bytes);
  if (typeof commit === "string" && Array.isArray(files) && files.every(isFile)) return record;
  throw new Error("it has no commit and files");
}

/** Writes the record, completely or not at all. @throws FolderError */
export function writeRecord(folder: string, record: FetchRecord): void {
  makeFolder(folder);
  const path = join(folder, FETCH_RECORD);
  writeFileSync(`${path}.new`, `${JSON.stringify(record, null, 2)}\n`, { flush: true });
  renameSync(`${path}.new`, path);
}

/** @throws TransferError `disk` naming both numbers */
export function checkSpace(folder: string, missingBytes: number, what: string): void {
  const { bavail, bsize } = statfsSync(folder);
  const free = bavail * bsize;
  if (missingBytes <= free) return;
  throw new TransferError(
    "disk",
    `${what} needs ${size(missingBytes)} more in ${folder}, where ${size(free)} are free; make room, or give --out on a larger disk`,
  );
}

/** Returns the error of a file that cannot be written, with the remedy; other errors as they are. */
export function asDiskError(cause: unknown, folder: string): unknown {
  const { code, syscall, message } = cause as NodeJS.ErrnoException;
  if (cause instanceof TransferError || !syscall || !code) return cause;
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  const problem = isFull
    ? `no space left on the disk of ${folder}; make room and fetch again, it goes on from here`
    : `cannot write to ${folder}: ${message}`;
  return new TransferError("disk", problem, { cause });
}

/** Interval of checks whether another process has finished with the folder. */
const LOOK_SECONDS = 0.5;

/**
 * Locks a folder for this process; waits while another process fetches into it. The lock is a socket's name, which the kernel releases
 * whenever the process ends. It works within one machine or pod.
 */
export async function holdFolder(folder: string, say: (line: string) => void): Promise<AsyncDisposable> {
  const name = createHash("sha256").update(resolve(folder)).digest("hex");
  for (let hasSaid = false; ; hasSaid = true) {
    const server = createServer();
    const isHeld = await new Promise<boolean>((decide, fail) => {
      server.once("listening", () => decide(true));
      server.once("error", (error: NodeJS.ErrnoException) =>
        error.code === "EADDRINUSE" ? decide(false) : fail(error),
      );
      server.listen({ path: `\0longrun-fetch-${name}` });
    });
    if (isHeld) return { [Symbol.asyncDispose]: () => new Promise<void>((done) => void server.close(() => done())) };
    if (!hasSaid) say(`another process fetches into ${basename(folder)}; waiting for it`);
    await sleep(LOOK_SECONDS * 1000);
  }
}
