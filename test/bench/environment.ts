import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { ensurePythonEnvironment } from "../../actor/python-env.ts";
import { cacheFolder } from "../../proto/cache-folder.ts";
import { finished } from "./processes.ts";

const PREPARE = fileURLToPath(new URL("../../learner/tasks/prepare.ts", import.meta.url));

/** Returns the actors' Python environment and the quickstart's task, and makes them if they are missing. */
export async function benchEnvironment(task = "diamonds") {
  const { directory, python } = await ensurePythonEnvironment();
  const tasks = join(cacheFolder(), "tasks");
  const taskDirectory = join(tasks, task);
  if (!existsSync(join(taskDirectory, "prepared", "public", "train.csv"))) {
    await finished(process.execPath, [PREPARE, "--task", task, "--out", tasks, "--python", python]);
  }
  return { environment: directory, python, taskDirectory };
}
