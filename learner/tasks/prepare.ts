/**
 * `node learner/tasks/prepare.ts --task NAME --out DIR --python PYTHON [--downloads DIR]` makes `DIR/NAME/` in MLE-bench layout, completely
 * or not at all, unless it is up to date, and prints one line of JSON, `{"task","directory","created"}`. Exit status: 0 done, 1 failed, 2
 * bad input.
 */
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempDisposableSync, renameSync, statSync, writeFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { stringify } from "yaml";
import { cacheFolder } from "../../proto/cache-folder.ts";
import { FolderError, makeFolder } from "../../proto/folders.ts";
import { downloadPackage, fileSha256, isFile } from "./download.ts";
import { TaskError } from "./errors.ts";
import { type RegistryEntry, readRegistry } from "./registry.ts";

export interface PrepareOptions {
  task: string;
  out: string;
  python: string;
  /** Folder of downloaded packages, kept between runs. */
  downloads: string;
  registry?: Record<string, RegistryEntry>;
}

export function prepareTask(options: PrepareOptions): { task: string; directory: string; created: boolean } {
  const { task, registry = readRegistry() } = options;
  const entry = Object.hasOwn(registry, task) ? registry[task] : undefined;
  if (!entry)
    throw new TaskError("input", `--task: no bundled task "${task}"; there are ${Object.keys(registry).join(", ")}`);
  const directory = join(resolve(options.out), task);
  if (isPrepared(directory, task, entry)) return { task, directory, created: false };
  try {
    const file = downloadPackage(entry.source, options.downloads, options.python);
    makeFolder(options.out, "--out");
    using scratch = mkdtempDisposableSync(join(resolve(options.out), `.${task}-`));
    const made = join(scratch.path, task);
    fillFolder(made, task, entry, file, options.python);
    replaceFolder(made, directory, join(scratch.path, "replaced"));
  } catch (error) {
    throw asTaskError(error, options);
  }
  return { task, directory, created: true };
}

const taskYaml = (task: string, entry: RegistryEntry) => stringify({ name: task, ...entry.task });

function fillFolder(made: string, task: string, entry: RegistryEntry, file: string, python: string): void {
  const prepared = join(made, "prepared");
  mkdirSync(prepared, { recursive: true });
  const split = spawnSync(python, [fileURLToPath(new URL("prepare.py", import.meta.url)), task, file, prepared], {
    encoding: "utf8",
    input: JSON.stringify(entry),
  });
  if (split.error) throw new TaskError("python", `cannot start ${python}: ${split.error.message}`, split.error);
  if (split.status !== 0) {
    const said = split.stderr.trim().split("\n").at(-1) ?? "";
    if (/No space left on device/.test(said)) throw new TaskError("disk", `no space left on the disk of ${made}`);
    throw new TaskError("python", `${python} could not split ${entry.source.file}: ${said}`);
  }
  for (const [path, sha256] of Object.entries(entry.sha256))
    if (fileSha256(join(prepared, path)) !== sha256)
      throw new TaskError(
        "hash",
        `task ${task}: ${path} came out different from registry.yaml; report it with the version of ${python}`,
      );
  writeFileSync(join(prepared, "public", "description.md"), entry.description);
  writeFileSync(join(made, "task.yaml"), taskYaml(task, entry));
}

/** Returns whether the folder contains exactly the files that a preparation would write now. */
function isPrepared(directory: string, task: string, entry: RegistryEntry): boolean {
  const answers = join(directory, "prepared", "private", "answers.csv");
  const same = (path: string, text: string) => existsSync(path) && statSync(path).size === Buffer.byteLength(text);
  return (
    same(join(directory, "task.yaml"), taskYaml(task, entry)) &&
    same(join(directory, "prepared", "public", "description.md"), entry.description) &&
    Object.entries(entry.sha256).every(([path, sha256]) => isFile(join(directory, "prepared", path), sha256)) &&
    (statSync(answers).mode & 0o077) === 0
  );
}

/** Replaces `directory` with `made`; the old content moves to `replaced`. */
function replaceFolder(made: string, directory: string, replaced: string): void {
  for (let attempt = 0; ; attempt++) {
    if (existsSync(directory)) renameSync(directory, join(replaced + attempt));
    try {
      renameSync(made, directory);
      return;
    } catch (error) {
      // Another preparation was faster, between the two renames.
      if (attempt === 3 || !/ENOTEMPTY|EEXIST/.test((error as NodeJS.ErrnoException).code ?? "")) throw error;
    }
  }
}

function asTaskError(error: unknown, options: PrepareOptions): unknown {
  const { code, message } = error as NodeJS.ErrnoException;
  if (error instanceof TaskError || error instanceof FolderError || !code) return error;
  const isFull = code === "ENOSPC" || code === "EDQUOT";
  const { task, out } = options;
  return new TaskError(
    "disk",
    isFull ? `no space left for task ${task} in ${out}` : `cannot write task ${task} to ${out}: ${message}`,
    error,
  );
}

function main(): number {
  try {
    const text = { type: "string" } as const;
    const { values } = parseArgs({ options: { task: text, out: text, python: text, downloads: text } });
    for (const name of ["task", "out", "python"] as const)
      if (!values[name]) throw new TaskError("input", `--${name} is missing; see the head of learner/tasks/prepare.ts`);
    const { task, out, python, downloads = join(cacheFolder(), "downloads") } = values;
    console.log(JSON.stringify(prepareTask({ task: task!, out: out!, python: python!, downloads })));
    return 0;
  } catch (error) {
    console.error(`prepare: ${(error as Error).message}`);
    return /^(input$|ERR_PARSE_ARGS)/.test((error as NodeJS.ErrnoException).code ?? "") ? 2 : 1;
  }
}

if (import.meta.main) process.exitCode = main();
