/** Reads JSON of a model folder, and writes the folder's files. */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { ModelError, type ModelErrorCode } from "./errors.ts";

const MAX_WRITE_BYTES = 1 << 30; // one write() takes at most 2 GiB

export type Json = Record<string, unknown>;

/** How Git LFS begins the small file that a clone without LFS has in place of a large one. */
const LFS_POINTER = "version https://git-lfs.github.com/spec/";
export const LFS_POINTER_BYTES = LFS_POINTER.length;

/** @param start the first LFS_POINTER_BYTES of a file, or more @throws ModelError of `code` for a pointer of Git LFS */
export function refuseLfsPointer(file: string, start: string, code: ModelErrorCode): void {
  if (!start.startsWith(LFS_POINTER)) return;
  const remedy =
    "run `git lfs install` and `git lfs pull` in its repository, or fetch the model with longrun model fetch";
  throw new ModelError(code, `${file} is a pointer of Git LFS and not the file itself; ${remedy}`);
}

/** @throws ModelError of `code` naming the file, unless it is missing and there is a `fallback` */
export function readJson(folder: string, name: string, code: ModelErrorCode, fallback?: Json): Json {
  const file = path.join(folder, name);
  if (fallback !== undefined && !fs.existsSync(file)) return fallback;
  let text: string;
  try {
    text = fs.readFileSync(file, "utf8");
  } catch (cause) {
    const { code: system = "", message } = cause as NodeJS.ErrnoException;
    const missing =
      system === "ENOTDIR"
        ? `${folder} is a file`
        : fs.existsSync(folder)
          ? `${folder} has no ${name}`
          : `there is no folder ${folder}`;
    const why = ["ENOENT", "ENOTDIR"].includes(system)
      ? `${missing}; give a model folder in Hugging Face format`
      : message;
    throw new ModelError(code, `cannot read ${file}: ${why}`, { cause });
  }
  refuseLfsPointer(file, text, code);
  try {
    return parseObject(text, "expected an object");
  } catch (cause) {
    throw new ModelError(code, `${file} is not usable JSON: ${(cause as Error).message}`, { cause });
  }
}

/** @throws Error, with this message for a value that is no object */
export function parseObject(text: string, otherwise: string): Json {
  const json: unknown = JSON.parse(text);
  if (typeof json !== "object" || json === null || Array.isArray(json)) throw new Error(otherwise);
  return json as Json;
}

export function writeJson(file: string, json: Json): void {
  writeText(file, `${JSON.stringify(json, null, 2)}\n`);
}

export function writeText(file: string, text: string): void {
  writeWhole(file, (descriptor) => writeAll(descriptor, Buffer.from(text)));
}

/** Writes a file completely or not at all: it is written and synced beside its final name, then renamed. */
export function writeWhole(file: string, write: (descriptor: number) => void): void {
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString("hex")}.tmp`;
  try {
    synced(temporary, "wx", write);
    fs.renameSync(temporary, file);
    synced(path.dirname(file), "r"); // so that the rename survives a power cut
  } catch (cause) {
    fs.rmSync(temporary, { force: true });
    throw cause;
  }
}

function synced(file: string, flags: "r" | "wx", write?: (descriptor: number) => void): void {
  const descriptor = fs.openSync(file, flags);
  try {
    write?.(descriptor);
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

export function writeAll(descriptor: number, source: Uint8Array): void {
  for (let done = 0; done < source.length; )
    done += fs.writeSync(descriptor, source, done, Math.min(source.length - done, MAX_WRITE_BYTES));
}
