/** `longrun compare FOLDER…` */
import { writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Values } from "../../proto/command-line.ts";
import { makeFolder } from "../../proto/folders.ts";
import { InputError, printLine, runCommand } from "../commands/command.ts";
import { compare, type Effort } from "../solve/compare.ts";
import { compareCsv, compareMarkdown } from "../solve/compare-table.ts";
import { effortsOf } from "../solve/efforts.ts";

export const COMPARE = {
  name: "longrun compare",
  description: "compare searches and training runs: the best score against executions and time, with intervals",
  arguments: { "<FOLDER...>": "folders of longrun solve and of runs; those of one model and search are repetitions" },
  options: {
    csv: "print the tables as CSV",
    json: "print them as one object",
    "out <DIR>": "write compare.md, compare.csv and compare.html (with plots) there",
  },
  examples: ["longrun compare runs/short solutions/*", "longrun compare solutions/* --out comparison"],
} as const;

async function compareFolders(values: Values<typeof COMPARE.options>, ...folders: string[]): Promise<void> {
  if (new Set(folders.map((folder) => resolve(folder))).size < folders.length)
    throw new InputError("a folder is given twice; leave one of them out");
  const efforts = asInput(() => folders.flatMap(effortsOf));
  if (efforts.length === 0) throw new InputError(`${folders.join(", ")}: no program has ended yet; compare later`);
  const results = asInput(() => compare(efforts));
  if (values.out !== undefined) await write(values.out, efforts);
  else if (values.json) printLine(results);
  else process.stdout.write(values.csv ? compareCsv(results) : compareMarkdown(results));
}

function asInput<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    throw new InputError((cause as Error).message, { cause });
  }
}

async function write(directory: string, efforts: readonly Effort[]): Promise<void> {
  makeFolder(directory, "--out");
  const { comparePage, plotPlaces } = await import("./compare-page.ts"); // loads Vega
  const results = compare(efforts);
  const files = {
    "compare.md": compareMarkdown(results),
    "compare.csv": compareCsv(results),
    "compare.html": await comparePage(compare(efforts, plotPlaces)),
  };
  for (const [name, text] of Object.entries(files)) {
    const path = join(directory, name);
    writeFileSync(path, text);
    process.stdout.write(`${path}\n`);
  }
}

if (import.meta.main) await runCommand(COMPARE, compareFolders);
