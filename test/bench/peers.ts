import { execFileSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, readFileSync } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { cacheFolder } from "../../proto/cache-folder.ts";
import { finished } from "./processes.ts";

/**
 * Returns a Python with the twins' packages: `$LONGRUN_BENCH_PYTHON`, or an environment of its own below the cache root, made at the first
 * call (5 GB for the default, PyTorch and transformers, because PyTorch's Linux wheels include CUDA).
 * @param requirements file, relative to this folder @param what names the packages in messages
 */
export async function peerPython(
  requirements = "requirements.txt",
  what = "PyTorch and transformers",
): Promise<string> {
  const given = process.env.LONGRUN_BENCH_PYTHON;
  if (given) return given;
  const { list, directory, python } = environmentOf(requirements);
  if (existsSync(python)) return python;
  process.stderr.write(`making ${directory} with ${what}; this takes minutes\n`);
  const partial = `${directory}.new`;
  await rm(partial, { recursive: true, force: true });
  await finished("python3", ["-m", "venv", partial]);
  await finished(join(partial, "bin", "python"), ["-m", "pip", "install", "--quiet", "-r", list]);
  await rename(partial, directory);
  return python;
}

/** Returns the environment for a list of requirements, which may not exist yet. */
function environmentOf(requirements: string) {
  const list = fileURLToPath(new URL(requirements, import.meta.url));
  const digest = createHash("sha256").update(readFileSync(list)).digest("hex").slice(0, 16);
  const directory = join(cacheFolder(), "bench", digest);
  return { list, directory, python: join(directory, "bin", "python") };
}

const IMPORT_MILLISECONDS = 60_000;

/**
 * Returns a Python with PyTorch and transformers: `$LONGRUN_BENCH_PYTHON`, the machine's `python3`, or the environment of `peerPython`.
 * Installs nothing, because time on a GPU is short.
 *
 * @param cuda whether PyTorch must find a GPU
 * @returns the program, or why there is none, with the remedy
 */
export function torchPython(cuda: boolean): { python: string } | { missing: string } {
  const given = process.env.LONGRUN_BENCH_PYTHON;
  const candidates = given ? [given] : ["python3", environmentOf("requirements.txt").python];
  const script = `import torch; from transformers import Qwen2ForCausalLM; assert torch.cuda.is_available() or not ${cuda ? 1 : 0}`;
  for (const python of candidates)
    try {
      execFileSync(python, ["-c", script], { timeout: IMPORT_MILLISECONDS, stdio: "ignore" });
      return { python };
    } catch {
      // try the next one
    }
  const what = `PyTorch${cuda ? " that finds the GPU" : ""} and transformers`;
  return { missing: `ours alone: no ${what} (make them: node test/bench/peers.ts, or set LONGRUN_BENCH_PYTHON)` };
}

/** `node test/bench/peers.ts` makes the environment with PyTorch and prints its Python. */
if (import.meta.main) process.stdout.write(`${await peerPython()}\n`);
