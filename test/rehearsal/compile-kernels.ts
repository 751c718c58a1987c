/**
 * Compiles the kernels of learner/engine/kernels to PTX for two kinds of GPU, with Triton and without a GPU.
 *
 *     node test/rehearsal/compile-kernels.ts           writes ptx/; needs Linux on x86-64, Python 3.11 or later, and PyPI once
 *     node test/rehearsal/compile-kernels.ts --check   writes nothing, exits 1 if the sources or ptx/ changed since
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync } from "node:fs";
import { cp, mkdir, mkdtemp, rename, rm, writeFile } from "node:fs/promises";
import os from "node:os";
import path from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "../../proto/cache-folder.ts";

const run = promisify(execFile);
const HERE = path.join(import.meta.dirname, "../../learner/engine/kernels");
const PTX = path.join(HERE, "ptx");
const DIGESTS = "digests.json";
const REQUIREMENTS = path.join(HERE, "requirements.txt");
/** Enough for 200 MB over a slow line. */
const DOWNLOAD_MILLISECONDS = 900_000;
const COMPILE_MILLISECONDS = 900_000;

const digestOf = (folder: string, files: readonly string[]): string => {
  const digest = createHash("sha256");
  for (const file of [...files].sort()) digest.update(`${file}\0`).update(readFileSync(path.join(folder, file)));
  return digest.digest("hex");
};
const filesIn = (folder: string, ...patterns: string[]) =>
  globSync(patterns, { cwd: folder }).filter((file) => file !== DIGESTS);

/** Returns the digest of the sources, and of what was compiled from them. */
function digests(folder = PTX): { sources: string; compiled: string } {
  const sources = digestOf(HERE, filesIn(HERE, "*.py", "requirements.txt"));
  return { sources, compiled: digestOf(folder, filesIn(folder, "*.ptx", "*.json")) };
}

/** Returns one line that says what changed since the kernels were compiled, or undefined. */
export function outdated(): string | undefined {
  const written = JSON.parse(readFileSync(path.join(PTX, DIGESTS), "utf8")) as ReturnType<typeof digests>;
  const { sources, compiled } = digests();
  const changed = sources !== written.sources ? "the sources" : compiled !== written.compiled ? PTX : undefined;
  return (
    changed && `${changed} changed since the kernels were compiled; run \`node test/rehearsal/compile-kernels.ts\``
  );
}

/** Returns a Python with the pinned Triton, made once below longrun's cache folder. @throws Error, one line with the remedy */
async function compiler(log: (line: string) => void): Promise<string> {
  const digest = createHash("sha256").update(readFileSync(REQUIREMENTS)).digest("hex").slice(0, 16);
  const folder = path.join(cacheFolder(), "triton", digest);
  const python = path.join(folder, "bin/python");
  if (existsSync(python)) return python;
  const work = `${folder}.${process.pid}`;
  try {
    log(`making an environment with Triton from PyPI, once, in ${folder}`);
    await mkdir(path.dirname(folder), { recursive: true });
    await run("python3", ["-m", "venv", work]);
    const install = ["-m", "pip", "install", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"];
    await run(path.join(work, "bin/python"), [...install, "-r", REQUIREMENTS], { timeout: DOWNLOAD_MILLISECONDS });
    await rename(work, folder);
  } catch (cause) {
    await rm(work, { recursive: true, force: true });
    const said = (cause as { stderr?: string }).stderr?.trim().split("\n").at(-1) ?? (cause as Error).message;
    if (!existsSync(python)) throw new Error(`Triton cannot be installed (${said})`, { cause });
  }
  return python;
}

/** Compiles all kernels into a new folder, which the caller removes. @throws Error where Triton cannot be had */
export async function compile(log: (line: string) => void = () => {}): Promise<string> {
  const python = await compiler(log);
  const folder = await mkdtemp(path.join(os.tmpdir(), "longrun-kernels-"));
  const jobs = String(Math.min(8, os.availableParallelism()));
  const env = { ...process.env, TRITON_CACHE_DIR: path.join(folder, "cache"), PYTHONDONTWRITEBYTECODE: "1" };
  await run(python, [path.join(HERE, "compile.py"), folder, jobs], { timeout: COMPILE_MILLISECONDS, env });
  await rm(path.join(folder, "cache"), { recursive: true, force: true });
  await writeFile(path.join(folder, DIGESTS), `${JSON.stringify(digests(folder), null, 2)}\n`);
  return folder;
}

if (import.meta.main) {
  const args = process.argv.slice(2);
  if (args.some((arg) => arg !== "--check")) {
    process.stderr.write("usage: node test/rehearsal/compile-kernels.ts [--check]\n");
    process.exit(2);
  }
  if (args.includes("--check")) {
    const reason = outdated();
    if (reason !== undefined) process.stderr.write(`${reason}\n`);
    process.exit(reason === undefined ? 0 : 1);
  }
  const folder = await compile((line) => process.stderr.write(`${line}\n`));
  await rm(PTX, { recursive: true, force: true });
  await cp(folder, PTX, { recursive: true });
  await rm(folder, { recursive: true });
}
