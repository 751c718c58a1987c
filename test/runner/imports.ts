/** The imports of the project's source files, read as text. */
import { existsSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

export const ROOT = join(import.meta.dirname, "../..");

export interface Import {
  line: number;
  /** A path from the project's root, or a package's name. */
  imported: string;
  /** Node.js removes an import of types before it runs the file. */
  isType: boolean;
}

const IMPORT =
  /(?:(?:^|\n)[ \t]*(?:import|export)\s(?:(type)\s)?[^;"']*?|(?:^|[\s}]))from\s*"([^"]+)"|(?:^|[\s}(])import\s?\(?"([^"]+)"/g;

/** @param file path from the project's root, to which relative imports refer */
export function importsOf(file: string, source: string): Import[] {
  return [...source.matchAll(IMPORT)].map((match) => {
    const name = (match[2] ?? match[3])!;
    return {
      line: source.slice(0, match.index + match[0].length).split("\n").length,
      imported: name.startsWith(".") ? join(dirname(file), name) : name,
      isType: match[1] !== undefined,
    };
  });
}

/** Returns the imports of a file at run time. Each file is read once. */
function read(file: string): string[] {
  const known = cache.get(file);
  if (known !== undefined) return known;
  const imports = importsOf(file, readFileSync(join(ROOT, file), "utf8"));
  const names = [...new Set(imports.filter(({ isType }) => !isType).map(({ imported }) => imported))];
  cache.set(file, names);
  return names;
}
const cache = new Map<string, string[]>();

/** A file of the project, not of a package such as `protobufjs/minimal.js`. */
const SOURCE = /^(?:actor|charts|controller|crds|learner|manifests|proto|test)\/.*\.[mc]?[jt]s$/;

/** Returns the file, every file that it loads directly or not, and the names of the packages that they import. */
export function closureOf(file: string): Set<string> {
  const found = new Set([file]);
  for (const name of found)
    if (SOURCE.test(name) && existsSync(join(ROOT, name))) for (const imported of read(name)) found.add(imported);
  return found;
}
