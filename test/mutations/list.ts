/** The list of mutations, from the YAML files in this folder. README.md explains how to add one. */
import { globSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { transformSync } from "esbuild";
import { parse } from "yaml";

export const ROOT = join(import.meta.dirname, "../..");

/** One fault that a test of `npm test` must find. Paths start at the project's root. */
export interface Mutation {
  id: string;
  /** The file that has the fault. */
  file: string;
  /** The right text, which occurs once in the file. */
  text: string;
  /** The faulty text that replaces it. */
  replacement: string;
  /** Symptom that a user would see. */
  seen: string;
  /** Test files, the nearest first. */
  tests: string[];
}

/** Returns all mutations by area, which is the name of a YAML file. */
export function readMutations(): Map<string, Mutation[]> {
  const files = globSync("*.yaml", { cwd: import.meta.dirname }).sort();
  return new Map(
    files.map((file) => [
      basename(file, ".yaml"),
      parse(readFileSync(join(import.meta.dirname, file), "utf8")) as Mutation[],
    ]),
  );
}

/** Returns the faulty source, or undefined unless `source` contains the text exactly once. */
export function mutate(source: string, { text, replacement }: Pick<Mutation, "text" | "replacement">) {
  const [before, after, ...more] = source.split(text);
  return after === undefined || more.length > 0 ? undefined : `${before}${replacement}${after}`;
}

/** Returns one line that says why a mutation of the project in the folder `root` cannot be made; undefined if it can. */
export function problemOf(mutation: Mutation, root = ROOT): string | undefined {
  const { file, text } = mutation;
  let source: string;
  try {
    source = readFileSync(join(root, file), "utf8");
  } catch {
    return `there is no ${file}: write its path of today`;
  }
  const mutated = mutate(source, mutation);
  const times = source.split(text).length - 1;
  if (mutated === undefined)
    return `${file} has the text ${JSON.stringify(text)} ${times} times, not once: write the text of today, or another mutation`;
  try {
    if (file.endsWith(".ts")) transformSync(mutated, { loader: "ts" });
  } catch (cause) {
    return `${file} is no TypeScript with the replacement: ${(cause as Error).message}`;
  }
  return undefined;
}
