/** Reads the data of supervised training: files of JSON lines, run folders, folders of programs. */
import { existsSync, readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Message } from "../engine/index.ts";
import { DataError, type Example, parseExample } from "./examples.ts";
import { examplesOfPrograms, holdsPrograms } from "./program-examples.ts";
import { examplesOfRun, STORE } from "./run-examples.ts";

const LINES = ".jsonl";

interface SourceOptions {
  /** most samples of each task of a run folder; default all valid ones */
  best?: number | undefined;
  /** Returns the prompt for a folder of programs. */
  taskPrompt: (folder: string) => readonly Message[];
}

/** Data at a path. @param facts one line about it */
export interface Source {
  examples: Example[];
  facts: string;
}

/** @throws DataError for a path that is none of these, and for a line, sample or program that is no example */
export function readSource(path: string, { best, taskPrompt }: SourceOptions): Source {
  if (!existsSync(path)) throw new DataError(`${path}: there is no such file or folder; check --data`);
  if (!statSync(path).isDirectory()) {
    const examples = examplesOfFile(path);
    return { examples, facts: `${path}: ${examples.length} examples` };
  }
  if (existsSync(join(path, STORE))) {
    const { examples, leftOut } = examplesOfRun(path, best);
    const { invalid, flagged, alike, beaten } = leftOut;
    const reasons = Object.entries({
      "not valid": invalid,
      flagged,
      "the same program": alike,
      "not the best": beaten,
    });
    const said = reasons.flatMap(([why, count]) => (count > 0 ? [`${count} ${why}`] : []));
    const left = said.length > 0 ? ` (left out: ${said.join(", ")})` : "";
    return { examples, facts: `${path}: ${examples.length} samples${left}` };
  }
  if (!holdsPrograms(path))
    throw new DataError(`${path}: it has neither ${STORE}, as a run folder, nor programs (.py); check --data`);
  const examples = examplesOfPrograms(path, taskPrompt(path));
  return { examples, facts: `${path}: ${examples.length} programs` };
}

/** @throws DataError for a line that is no example, or a folder without such files */
export function examplesOfLines(path: string): Example[] {
  if (!existsSync(path)) throw new DataError(`${path}: there is no such file or folder`);
  if (!statSync(path).isDirectory()) return examplesOfFile(path);
  const names = readdirSync(path).filter((name) => name.endsWith(LINES));
  if (names.length === 0) throw new DataError(`${path}: the folder has no file that ends in ${LINES}`);
  return names.sort().flatMap((name) => examplesOfFile(join(path, name)));
}

function examplesOfFile(path: string): Example[] {
  const lines = readFileSync(path, "utf8").split("\n");
  return lines.flatMap((text, index) => {
    if (text.trim() === "") return [];
    const place = `${path}, line ${index + 1}`;
    return [parseExample(parseJson(text, place), place)];
  });
}

function parseJson(text: string, place: string): Record<string, unknown> {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch (cause) {
    throw new DataError(`${place}: not JSON: ${(cause as Error).message}`, { cause });
  }
  if (typeof json === "object" && json !== null && !Array.isArray(json)) return json as Record<string, unknown>;
  throw new DataError(`${place}: expected a JSON object`);
}
