/** Makes a copy of a task folder without the fields that reveal its labels. Off by default, because published results include them. */
import { cpSync, existsSync, readFileSync, writeFileSync } from "node:fs";
import { extname, join } from "node:path";
import { TaskError } from "./errors.ts";
import { asWritten } from "./exact-json.ts";
import type { Task } from "./task.ts";

/**
 * Removes the leaking fields from every .json file (a list of records) of the copy, training and test. Archives with the same records are
 * not copied.
 * @returns a line for each file that was changed or left out @throws TaskError `input`
 */
export function dropLeaks({ name, directory, mleBench }: Task, out: string): string[] {
  const leaks = mleBench?.leaks ?? [];
  if (leaks.length === 0)
    throw new TaskError("input", `task ${name} has no field that is known to leak; use it as it is`);
  if (existsSync(out)) throw new TaskError("input", `--out ${out} is there already; name a folder that does not exist`);
  const fields = new Set(leaks.map(({ field }) => field));
  const said: string[] = [];
  cpSync(directory, out, {
    recursive: true,
    filter: (source) => {
      if (extname(source) === ".zip") said.push(`left out ${source}`);
      return extname(source) !== ".zip";
    },
  });
  const folder = join(out, "prepared", "public");
  for (const file of mleBench!.files.filter((file) => file.endsWith(".json"))) {
    const path = join(folder, file);
    const records = JSON.parse(readFileSync(path, "utf8"), asWritten) as Record<string, unknown>[];
    const kept = records.map((record) =>
      Object.fromEntries(Object.entries(record).filter(([field]) => !fields.has(field))),
    );
    writeFileSync(path, JSON.stringify(kept, null, 4));
    said.push(`${path}: ${[...fields].join(", ")} left out of ${records.length} records`);
  }
  return said;
}
