/** Finds tasks' public data. The private data beside it is never given to a sandbox. */
import { readdir, readFile, realpath, stat } from "node:fs/promises";
import { basename, join } from "node:path";
import { parse } from "yaml";
import { ActorError } from "./errors.ts";

/**
 * Returns {task name: directory with its public data}. `directory` is a task's folder (`task.yaml`, `prepared/public/`) or
 * contains such folders. Throws ActorError `task` if it has none.
 */
export async function findPublicData(directory: string): Promise<Record<string, string>> {
  const found: Record<string, string> = {};
  const own = await publicData(directory);
  if (own) found[await nameOf(directory)] = own;
  else
    for (const name of await readdir(directory).catch(() => [])) {
      const path = await publicData(join(directory, name));
      if (path) found[await nameOf(join(directory, name))] = path;
    }
  if (Object.keys(found).length === 0)
    throw new ActorError("task", `task: there is no prepared/public in or below ${directory}; prepare the task first`);
  return found;
}

async function publicData(taskDirectory: string): Promise<string | undefined> {
  const path = join(taskDirectory, "prepared", "public");
  const isDirectory = await stat(path).then(
    (entry) => entry.isDirectory(),
    () => false,
  );
  return isDirectory ? realpath(path) : undefined;
}

/** Returns the name in task.yaml, else the folder's name. */
async function nameOf(taskDirectory: string): Promise<string> {
  try {
    const { name } = parse(await readFile(join(taskDirectory, "task.yaml"), "utf8"));
    if (typeof name === "string" && name !== "") return name;
  } catch {
    // task.yaml is missing or invalid: use the folder's name.
  }
  return basename(taskDirectory);
}
