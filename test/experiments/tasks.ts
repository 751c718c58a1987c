/** Bundled tasks with fewer rows, so that programs take tenths of seconds and many runs fit into a night. */
import { existsSync, mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readRegistry } from "../../learner/tasks/registry.ts";
import { benchEnvironment } from "../bench/environment.ts";

const FOLDER = fileURLToPath(new URL("./runs/tasks/", import.meta.url));
/** The tasks' folder, relative to the manifests. */
const FROM_MANIFESTS = "../runs/tasks";

export interface SmallTask {
  /** The bundled task of which it is a part. */
  name: string;
  /** Number of rows. */
  train: number;
  test: number;
  /** Fields of the grader and of the item of `spec.tasks` that differ from the bundled task's. */
  grader?: Record<string, unknown>;
  fields?: Record<string, unknown>;
}

/** Returns the item of `spec.tasks`. */
export function smallTask({ name, train, test, grader = {}, fields = {} }: SmallTask) {
  const bundled = readRegistry()[name]!.task as { grader: Record<string, unknown> };
  const path = `${FROM_MANIFESTS}/${folderOf({ name, train, test })}`;
  return {
    ...{ ...bundled, ...fields, name },
    publicData: { path: `${path}/public` },
    privateData: { path: `${path}/private` },
    grader: { ...bundled.grader, ...grader },
  };
}

/** Makes the task's folder if it is missing. @returns the folder, with `public/` and `private/` */
export async function prepareSmallTask({ name, train, test }: SmallTask): Promise<string> {
  const { taskDirectory } = await benchEnvironment(name);
  const folder = join(FOLDER, folderOf({ name, train, test }));
  if (!existsSync(folder)) cut(join(taskDirectory, "prepared"), folder, train, test);
  return folder;
}

const folderOf = ({ name, train, test }: SmallTask) => `${name}-${train}-${test}`;

/** Copies the first rows of each file: bundled tasks are shuffled, and every row is one line. */
function cut(from: string, folder: string, train: number, test: number): void {
  const partial = `${folder}.partial`;
  rmSync(partial, { recursive: true, force: true });
  mkdirSync(join(partial, "public"), { recursive: true });
  mkdirSync(join(partial, "private"), { recursive: true, mode: 0o700 });
  const head = (file: string, rows: number): string => {
    const lines = readFileSync(join(from, file), "utf8").trimEnd().split("\n");
    if (lines.length <= rows) throw new Error(`${file} has ${lines.length - 1} rows, fewer than ${rows}`);
    writeFileSync(join(partial, file), `${lines.slice(0, rows + 1).join("\n")}\n`);
    const ids = lines.slice(1, rows + 1).map((line) => line.slice(0, line.indexOf(",")));
    return ids.join();
  };
  head("public/train.csv", train);
  const ids = head("public/test.csv", test);
  for (const file of ["public/sample_submission.csv", "private/answers.csv"])
    if (head(file, test) !== ids) throw new Error(`${from}: ${file} has other rows than test.csv, or in another order`);
  writeFileSync(join(partial, "public/description.md"), readFileSync(join(from, "public/description.md")));
  renameSync(partial, folder);
}
