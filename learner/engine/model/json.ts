/** JSON files of a model folder. */
import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { ModelError, type ModelErrorCode } from "./errors.ts";

export type Json = Record<string, unknown>;

/** @throws ModelError of `code` naming the file, unless it is missing and there is a `fallback` */
export function readJson(folder: string, name: string, code: ModelErrorCode, fallback?: Json): Json {
  const file = path.join(folder, name);
  if (fallback !== undefined && !fs.existsSync(file)) return fallback;
  let text: string;
  try {
    text = fs.readFileSync(file, "utf8");
  } catch (cause) {
    throw new ModelError(code, `cannot read ${file}: ${(cause as Error).message}`, { cause });
  }
  try {
    const json: unknown = JSON.parse(text);
    if (typeof json !== "object" || json === null || Array.isArray(json)) throw new Error("expected an object");
    return json as Json;
  } catch (cause) {
    throw new ModelError(code, `${file} is not usable JSON: ${(cause as Error).message}`, { cause });
  }
}

export function writeJson(file: string, json: Json): void {
  writeText(file, `${JSON.stringify(json, null, 2)}\n`);
}

/** The file appears whole or not at all. */
export function writeText(file: string, text: string): void {
  const temporary = `${file}.${process.pid}.${randomBytes(4).toString("hex")}.tmp`;
  fs.writeFileSync(temporary, text, { flush: true });
  fs.renameSync(temporary, file);
}
