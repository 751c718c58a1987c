import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheRoot } from "../../actor/python-env.ts";
import { finished } from "./processes.ts";

/**
 * A Python with what the twins need: `$LONGRUN_BENCH_PYTHON`, or an environment of its own under the cache root, made at the
 * first call (of PyTorch and transformers, the default, 5 GB: PyTorch's Linux wheels bring CUDA along).
 * @param requirements file, seen from this folder @param what is said to be installed
 */
export async function peerPython(
  requirements = "requirements.txt",
  what = "PyTorch and transformers",
): Promise<string> {
  const given = process.env.LONGRUN_BENCH_PYTHON;
  if (given) return given;
  const list = fileURLToPath(new URL(requirements, import.meta.url));
  const digest = createHash("sha256")
    .update(await readFile(list))
    .digest("hex")
    .slice(0, 16);
  const directory = join(cacheRoot(), "bench", digest);
  const python = join(directory, "bin", "python");
  if (existsSync(python)) return python;
  process.stderr.write(`making ${directory} with ${what}; this takes minutes\n`);
  const partial = `${directory}.new`;
  await rm(partial, { recursive: true, force: true });
  await finished("python3", ["-m", "venv", partial]);
  await finished(join(partial, "bin", "python"), ["-m", "pip", "install", "--quiet", "-r", list]);
  await rename(partial, directory);
  return python;
}
