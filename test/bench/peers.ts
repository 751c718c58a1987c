import { createHash } from "node:crypto";
import { existsSync } from "node:fs";
import { readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheRoot } from "../../actor/python-env.ts";
import { finished } from "./processes.ts";

const REQUIREMENTS = fileURLToPath(new URL("./requirements.txt", import.meta.url));

/**
 * A Python with PyTorch and transformers: `$LONGRUN_BENCH_PYTHON`, or an environment of its own under the cache root,
 * made at the first call (PyTorch's Linux wheels bring CUDA along: 5 GB).
 */
export async function peerPython(): Promise<string> {
  const given = process.env.LONGRUN_BENCH_PYTHON;
  if (given) return given;
  const digest = createHash("sha256")
    .update(await readFile(REQUIREMENTS))
    .digest("hex")
    .slice(0, 16);
  const directory = join(cacheRoot(), "bench", digest);
  const python = join(directory, "bin", "python");
  if (existsSync(python)) return python;
  process.stderr.write(`making ${directory} with PyTorch and transformers; this takes minutes\n`);
  const partial = `${directory}.new`;
  await rm(partial, { recursive: true, force: true });
  await finished("python3", ["-m", "venv", partial]);
  await finished(join(partial, "bin", "python"), ["-m", "pip", "install", "--quiet", "-r", REQUIREMENTS]);
  await rename(partial, directory);
  return python;
}
