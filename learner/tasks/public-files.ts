/** Lists the public folder of a task as programs find it below `./input/`: files with their sizes, folders summed up. */
import { opendirSync, readdirSync, statSync } from "node:fs";
import { join, relative } from "node:path";
import { profileFile, type TableFacts, type Unreadable } from "./profile.ts";

/** Most files that are counted below one folder; a higher number is shown as "more than". */
const maxFolderFiles = 200_000;

export interface PublicFile {
  name: string;
  /** For a folder, the total of its counted files. */
  bytes: number;
  /** For a .csv file, or a .json file with a list of objects. */
  table?: TableFacts | Unreadable;
  folder?: FolderFacts;
}

interface FolderFacts {
  files: number;
  more: boolean;
  folders: number;
  /** Number of files by extension, the most frequent first. */
  extensions: [string, number][];
  /** The first file by name, relative to the folder. */
  example?: string;
}

/** Returns training data first, then test data, then the rest, without description.md and hidden files. */
export function listPublicFiles(folder: string): PublicFile[] {
  return readdirSync(folder, { withFileTypes: true })
    .filter(({ name }) => name !== "description.md" && !name.startsWith("."))
    .map(({ name }) => {
      const path = join(folder, name);
      const facts = statSync(path);
      if (facts.isDirectory()) return { name: `${name}/`, ...folderFacts(path) };
      const table = profileFile(path);
      return { name, bytes: facts.size, ...(table && { table }) };
    })
    .sort((a, b) => rank(a.name) - rank(b.name) || (a.name < b.name ? -1 : 1));
}

function rank(name: string): number {
  return name.startsWith("train") ? 0 : name.startsWith("test") ? 1 : 2;
}

export function isSampleSubmission(name: string): boolean {
  return /^sample_?submission.*\.csv$/i.test(name);
}

/** Returns for `train.csv` e.g. `1.2 MB, 3,000 rows`; for `images/` e.g. `1,821 .jpg files, 786 MB, such as Test_0.jpg`. */
export function describeFile({ bytes, table, folder }: PublicFile): string {
  if (folder === undefined) {
    const rows = table && "rows" in table ? table.rows : undefined;
    return rows === undefined ? size(bytes) : `${size(bytes)}, ${count(rows, "row")}`;
  }
  const [[extension, files] = ["", 0], ...others] = folder.extensions;
  const kinds = others.length === 0 ? `${extension} file`.trim() : "file";
  const total = `${folder.more ? "more than " : ""}${count(others.length === 0 ? files : folder.files, kinds)}`;
  const within = folder.folders === 0 ? "" : ` in ${count(folder.folders, "folder")}`;
  const example = folder.example === undefined ? "" : `, such as ${folder.example}`;
  return `${total}${within}, ${size(bytes)}${example}`;
}

function folderFacts(root: string): { bytes: number; folder: FolderFacts } {
  const extensions = new Map<string, number>();
  const facts: FolderFacts = { files: 0, more: false, folders: 0, extensions: [] };
  let bytes = 0;
  const open = opendirSync(root, { recursive: true });
  try {
    for (let entry = open.readSync(); entry !== null; entry = open.readSync()) {
      if (entry.isDirectory()) {
        facts.folders++;
        continue;
      }
      if (facts.files === maxFolderFiles) {
        facts.more = true;
        break;
      }
      facts.files++;
      const path = join(entry.parentPath, entry.name);
      const extension = /\.[^.]+$/.exec(entry.name)?.[0].toLowerCase() ?? "";
      extensions.set(extension, (extensions.get(extension) ?? 0) + 1);
      bytes += statSync(path).size;
      // Sorted, because the file system determines the order of a folder's entries; `2.jpg` precedes `10.jpg`.
      const name = relative(root, path);
      const { example = name } = facts;
      facts.example =
        name.length < example.length || (name.length === example.length && name < example) ? name : example;
    }
  } finally {
    open.closeSync();
  }
  facts.extensions = [...extensions].sort(([a, m], [b, n]) => n - m || (a < b ? -1 : 1));
  return { bytes, folder: facts };
}

function size(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`;
  const [unit, divisor] = bytes < 1e6 ? ["kB", 1e3] : bytes < 1e9 ? ["MB", 1e6] : ["GB", 1e9];
  const value = bytes / Number(divisor);
  return `${value < 10 ? value.toFixed(1) : value.toFixed(0)} ${unit}`;
}

/** Returns e.g. `1 row` or `2,878 rows`. */
export function count(n: number, noun: string): string {
  return `${n.toLocaleString("en-US")} ${noun}${n === 1 ? "" : "s"}`;
}
