/** `longrun evaluate --table RUN…`. Exit status: 0 done, 1 failed, 2 bad input. */
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import type { RunSummary } from "../metrics/summary.ts";
import { type Evaluated, type Table, tableCsv, tableMarkdown, tableOf } from "./table.ts";

/** What the user gave cannot be used. */
class InputError extends Error {}

function main(args: string[]): number {
  try {
    const { values, positionals } = parseArgs({
      args,
      allowPositionals: true,
      options: { csv: { type: "boolean" }, json: { type: "boolean" }, output: { type: "string" } },
    });
    const folders = new Set(positionals.map((folder) => resolve(folder)));
    if (folders.size < positionals.length)
      throw new InputError("--table: a run is given twice; leave one of them away");
    const found = positionals.map(evaluatedIn);
    const table = asInput(() => tableOf(found));
    if (values.output !== undefined) write(values.output, table);
    else if (values.json) process.stdout.write(`${JSON.stringify(table)}\n`);
    else process.stdout.write(values.csv ? tableCsv(table) : tableMarkdown(table));
    return 0;
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    return error instanceof InputError ? 2 : 1;
  }
}

function asInput<Result>(work: () => Result): Result {
  try {
    return work();
  } catch (cause) {
    throw new InputError(`--table: ${(cause as Error).message}`, { cause });
  }
}

/** What `longrun evaluate` left in the run folder, else what the run's own evaluation phase did; an evaluation's folder will do. */
function evaluatedIn(folder: string): Evaluated {
  for (const place of [join(folder, "evaluation"), folder]) {
    const path = join(place, "summary.json");
    if (!existsSync(path)) continue;
    const { evaluation, state } = asInput(() => JSON.parse(readFileSync(path, "utf8")) as Partial<RunSummary>);
    if (evaluation?.settings === undefined) continue;
    if (state !== "succeeded") throw new InputError(`--table ${folder}: ${path} says ${state}; finish it first`);
    return { folder, evaluation: { ...evaluation, settings: evaluation.settings } };
  }
  throw new InputError(`--table ${folder}: holds no evaluation; make one with: longrun evaluate --run ${folder}`);
}

function write(directory: string, table: Table): void {
  mkdirSync(directory, { recursive: true });
  for (const [name, text] of Object.entries({ "table.md": tableMarkdown(table), "table.csv": tableCsv(table) })) {
    const path = join(directory, name);
    writeFileSync(path, text);
    process.stdout.write(`${path}\n`);
  }
}

process.exitCode = main(process.argv.slice(2));
