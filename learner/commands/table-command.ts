/** `longrun evaluate --table RUN…` */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import type { Values } from "../../proto/command-line.ts";
import { makeFolder } from "../../proto/folders.ts";
import { type Evaluated, type Table, tableCsv, tableMarkdown, tableOf } from "../evaluation/table.ts";
import { evaluationsOf, type RunSummary } from "../metrics/summary.ts";
import { InputError, printLine, runCommand } from "./command.ts";

const TABLE = {
  name: "longrun evaluate --table",
  description: "prints the evaluations in run folders as a table like the paper's Table 2",
  arguments: { "<RUN...>": "run folders" },
  options: {
    csv: { help: "as CSV" },
    json: { help: "as one object" },
    out: { value: "DIR", help: "write table.md and table.csv there" },
  },
} as const;

function table(values: Values<typeof TABLE.options>, ...positionals: string[]): void {
  const folders = new Set(positionals.map((folder) => resolve(folder)));
  if (folders.size < positionals.length) throw new InputError("--table: a run is given twice; leave one of them away");
  const found = positionals.flatMap(evaluatedIn);
  const made = asInput(() => tableOf(found));
  if (values.out !== undefined) write(values.out, made);
  else if (values.json) printLine(made);
  else process.stdout.write(values.csv ? tableCsv(made) : tableMarkdown(made));
}

function asInput<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    throw new InputError(`--table: ${(cause as Error).message}`, { cause });
  }
}

/** Returns the results of `longrun evaluate` in a run's or evaluation's folder, else the results of the run's own evaluation phase. */
function evaluatedIn(folder: string): Evaluated[] {
  for (const place of [join(folder, "evaluation"), folder]) {
    const path = join(place, "summary.json");
    if (!existsSync(path)) continue;
    const { evaluation, state } = asInput(() => JSON.parse(readFileSync(path, "utf8")) as Partial<RunSummary>);
    const done = evaluationsOf(evaluation ?? {}).filter(
      (it): it is Evaluated["evaluation"] => it.settings !== undefined,
    );
    if (done.length === 0) continue;
    if (state !== "succeeded") throw new InputError(`--table ${folder}: ${path} says ${state}; finish it first`);
    return done.map((evaluation) => ({ folder, evaluation }));
  }
  throw new InputError(`--table ${folder}: holds no evaluation; make one with: longrun evaluate --run ${folder}`);
}

function write(directory: string, made: Table): void {
  makeFolder(directory, "--out");
  for (const [name, text] of Object.entries({ "table.md": tableMarkdown(made), "table.csv": tableCsv(made) })) {
    const path = join(directory, name);
    writeFileSync(path, text);
    process.stdout.write(`${path}\n`);
  }
}

await runCommand(TABLE, table);
