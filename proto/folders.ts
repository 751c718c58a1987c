/**
 * Makes folders that a user names. Node's `mkdir` with `recursive` never returns where a file system answers ENOENT in an existing folder,
 * as /proc does.
 */
import { existsSync, mkdirSync, mkdtempSync, rmdirSync, statSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { CodedError, describeFileError } from "./errors.ts";

/** A folder cannot be made. The message names the option or setting, the path and the remedy in one line; `cause` is the system's. */
export class FolderError extends CodedError<"input"> {
  constructor(path: string, named: string | undefined, cause: unknown) {
    const isRefused = (cause as NodeJS.ErrnoException).code === "ENOENT";
    const why = isRefused
      ? `${path}: no folder can be created there; choose another place`
      : describeFileError(path, cause);
    super("input", named === undefined ? why : `${named} ${why}`, { cause });
  }
}

/**
 * Makes a folder and the folders above it, unless they are there.
 *
 * @param named the option or setting that names it, for the message
 * @param mode of the new folders
 * @throws FolderError
 */
export function makeFolder(path: string, named?: string, mode?: number): void {
  const folder = resolve(path);
  const missing: string[] = [];
  for (let at = folder; !existsSync(at); at = dirname(at)) missing.unshift(at);
  try {
    for (const each of missing) makeOne(each, mode);
    if (!statSync(folder).isDirectory()) throw Object.assign(new Error("is a file"), { code: "ENOTDIR" });
  } catch (cause) {
    throw new FolderError(folder, named, cause);
  }
}

/** Does nothing where another process was faster. */
function makeOne(path: string, mode: number | undefined): void {
  try {
    mkdirSync(path, mode);
  } catch (cause) {
    if ((cause as NodeJS.ErrnoException).code !== "EEXIST") throw cause;
  }
}

/**
 * Checks that a folder can be made later, before work that takes long: creates and removes one in the nearest existing parent.
 *
 * @throws FolderError
 */
export function checkFolder(path: string, named?: string): void {
  const folder = resolve(path);
  let parent = folder;
  while (!existsSync(parent)) parent = dirname(parent);
  try {
    rmdirSync(mkdtempSync(join(parent, ".longrun-")));
  } catch (cause) {
    throw new FolderError(folder, named, cause);
  }
}
