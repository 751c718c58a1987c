/**
 * The Python environment in which programs run: a venv with pinned requirements that the first run makes. It is cached by digest, so
 * changed requirements or another interpreter lead to a new environment beside the old one.
 *
 *     node actor/python-env.ts [--python python3] [--packages Basic|Paper]
 *
 * prints {"directory","python","digest","created"}.
 */
import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { access, open, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs, promisify } from "node:util";
import { cacheFolder } from "../proto/cache-folder.ts";
import { makeFolder } from "../proto/folders.ts";
import type { PackageSet } from "../proto/packages.ts";
import { ActorError } from "./errors.ts";
import { isAlive } from "./is-alive.ts";

const run = promisify(execFile);

/** For each set of packages: its lock file, the minor versions of Python 3, and its size on disk. */
const SETS = {
  Basic: { file: "requirements.txt", oldest: 10, newest: 14, disk: "600 MB" },
  Paper: { file: "requirements-paper.txt", oldest: 11, newest: 11, disk: "9 GB" },
} satisfies Record<PackageSet, object>;
/** Written last, inside the environment: marks it as complete. */
const STAMP = "longrun.json";

export interface PythonEnvironment {
  directory: string;
  /** The interpreter inside `directory`. */
  python: string;
  /** Digest of requirements, interpreter version and machine; 16 hexadecimal digits. */
  digest: string;
  /** False if the environment existed. */
  created: boolean;
}

interface PythonEnvironmentOptions {
  /** Interpreter to make the environment from. */
  python?: string;
  cacheRoot?: string;
  /** Set of packages. Absent: Basic. */
  packages?: PackageSet;
  /** How long to wait for another process that makes the same environment. */
  waitSeconds?: number;
  /** Called with one line before each slow step. */
  onProgress?: (line: string) => void;
}

/** Finds or makes the environment. Throws ActorError, or FolderError for the cache, with a remedy in one line. */
export async function ensurePythonEnvironment(options: PythonEnvironmentOptions = {}): Promise<PythonEnvironment> {
  const python = options.python ?? "python3";
  const packages = options.packages ?? "Basic";
  const requirements = fileURLToPath(new URL(`./sandbox/${SETS[packages].file}`, import.meta.url));
  const interpreter = await inspectPython(python, packages);
  const digest = createHash("sha256")
    .update(await readFile(requirements))
    .update(`\0${interpreter.version}\0${interpreter.machine}\0${interpreter.prefix}`)
    .digest("hex")
    .slice(0, 16);
  const root = join(options.cacheRoot ?? cacheFolder(), "python");
  const directory = join(root, digest);
  const environment = { directory, python: join(directory, "bin", "python"), digest };

  if (await exists(join(directory, STAMP))) return { ...environment, created: false };
  makeFolder(root, "LONGRUN_CACHE");
  const unlock = await lock(join(root, `.${digest}.lock`), options.waitSeconds ?? 900);
  try {
    if (await exists(join(directory, STAMP))) return { ...environment, created: false };
    options.onProgress?.(`making the Python environment ${directory} (Python ${interpreter.version})`);
    await build(interpreter, requirements, directory, packages);
    return { ...environment, created: true };
  } finally {
    await unlock();
  }
}

interface Interpreter {
  executable: string;
  version: string;
  machine: string;
  prefix: string;
}

const INSPECT = `
import json, platform, sys
missing = []
for name in ("venv", "ensurepip", "ctypes", "ssl"):
    try: __import__(name)
    except ImportError: missing.append(name)
print(json.dumps({"executable": sys.executable, "version": platform.python_version(), "info": list(sys.version_info[:2]),
  "machine": platform.machine(), "prefix": sys.base_prefix, "implementation": sys.implementation.name, "missing": missing}))
`;

async function inspectPython(python: string, packages: PackageSet): Promise<Interpreter> {
  const { oldest, newest } = SETS[packages];
  let text: string;
  try {
    text = (await run(python, ["-I", "-c", INSPECT], { timeout: 60_000 })).stdout;
  } catch (cause) {
    throw new ActorError(
      "pythonMissing",
      `python: cannot run "${python}" (${reasonOf(cause)}); install Python ${oldest === newest ? `3.${oldest}` : `>= 3.${oldest}`} or name one with --python`,
      cause,
    );
  }
  const found = JSON.parse(text);
  const [major, minor] = found.info;
  if (major < 3 || (major === 3 && minor < oldest))
    throw new ActorError(
      "pythonTooOld",
      `python: "${python}" is Python ${found.version}, and ${oldest === newest ? "" : ">= "}3.${oldest} is needed${packages === "Basic" ? "" : ` for actors.packages: ${packages}`}; name ${oldest === newest ? "one" : "a newer one"} with --python`,
    );
  // For a newer Python than Basic is locked for, pip finds out whether wheels exist.
  if (oldest === newest && minor > newest)
    throw new ActorError(
      "pythonPackages",
      `python: "${python}" is Python ${found.version}, and actors.packages: ${packages} is locked for 3.${newest} alone; name one with --python`,
    );
  if (found.implementation !== "cpython")
    throw new ActorError("pythonMissing", `python: "${python}" is ${found.implementation}; CPython is needed`);
  if (found.missing.length > 0)
    throw new ActorError(
      "pythonVenv",
      `python: "${python}" lacks the modules ${found.missing.join(", ")}; on Debian and Ubuntu: apt install python3-venv`,
    );
  return found;
}

/** Builds the environment under a temporary name and renames it at the end, so a broken installation never looks complete. */
async function build(
  { executable, version }: Interpreter,
  requirements: string,
  directory: string,
  packages: PackageSet,
): Promise<void> {
  const temporary = `${directory}.${process.pid}.new`;
  // Programs may run as another user, so everyone must be able to read installed files.
  const umask = process.umask(0o022);
  try {
    await rm(temporary, { recursive: true, force: true });
    await step("pythonVenv", packages, directory, executable, ["-I", "-m", "venv", temporary]);
    const pip = ["-I", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-input"];
    const pinned = ["--require-hashes", "--only-binary", ":all:", "--no-deps", "-r", requirements];
    await step("pythonPackages", packages, directory, join(temporary, "bin", "python"), [...pip, ...pinned]);
    await writeFile(join(temporary, STAMP), `${JSON.stringify({ python: version })}\n`);
    await rm(directory, { recursive: true, force: true });
    await rename(temporary, directory);
  } catch (error) {
    await rm(temporary, { recursive: true, force: true }).catch(() => {});
    if (error instanceof ActorError) throw error;
    await asDiskErrors(directory, () => Promise.reject(error));
  } finally {
    process.umask(umask);
  }
}

async function step(
  code: "pythonVenv" | "pythonPackages",
  packages: PackageSet,
  directory: string,
  file: string,
  args: string[],
) {
  try {
    await run(file, args, { timeout: 1_800_000, maxBuffer: 64 << 20 });
  } catch (cause) {
    throw explainFailure(
      code,
      packages,
      directory,
      `${(cause as { stderr?: string }).stderr ?? ""}\n${reasonOf(cause)}`,
      cause,
    );
  }
}

/** Returns one line with a remedy for what `venv` or `pip` printed. */
export function explainFailure(
  code: "pythonVenv" | "pythonPackages",
  packages: PackageSet,
  directory: string,
  printed: string,
  cause?: unknown,
): ActorError {
  const { oldest, newest } = SETS[packages];
  const versions = newest === oldest ? `3.${oldest}` : `3.${oldest} to 3.${newest}`;
  const needed = `CPython ${versions} on x86_64 or aarch64 with glibc >= 2.28 is needed`;
  if (/No space left on device|Errno 28|Disk quota exceeded|ENOSPC/.test(printed))
    return new ActorError(
      "diskFull",
      `python environment: the disk is full at ${directory}; about ${SETS[packages].disk} are needed: free some, or set LONGRUN_CACHE to another disk`,
      cause,
    );
  const network =
    /NewConnectionError|ConnectionError|Max retries|Name or service not known|name resolution|Network is unreachable|ProxyError|SSLError|CERTIFICATE_VERIFY_FAILED|timed? ?out|No route to host|Connection refused/i;
  if (network.test(printed))
    return new ActorError(
      "pythonPackages",
      "python environment: the package index cannot be reached; check the network, or set PIP_INDEX_URL or PIP_FIND_LINKS to a mirror",
      cause,
    );
  // pip prints the same for an index that answers with nothing and for an index without wheels for this machine.
  const nothingOf = /requirement (\S+) \(from versions: none\)/.exec(printed)?.[1];
  if (nothingOf !== undefined)
    return new ActorError(
      "pythonPackages",
      `python environment: the package index offers no ${nothingOf}; check that PyPI, or the mirror in PIP_INDEX_URL, can be reached; if it can, it has no wheels for this machine: ${needed}`,
      cause,
    );
  if (/No matching distribution|Could not find a version|not a supported wheel/.test(printed))
    return new ActorError(
      "pythonPackages",
      `python environment: there are no wheels for this machine; ${needed}`,
      cause,
    );
  if (/THESE PACKAGES DO NOT MATCH THE HASHES|hash/i.test(printed) && code === "pythonPackages")
    return new ActorError(
      "pythonPackages",
      "python environment: a downloaded package does not match its pinned hash; the index or a proxy changes packages: use another with PIP_INDEX_URL",
      cause,
    );
  const line = printed.split("\n").findLast((text) => /error/i.test(text)) ?? printed.trim().split("\n").at(-1) ?? "";
  const what = code === "pythonVenv" ? "venv failed; on Debian and Ubuntu: apt install python3-venv" : "pip failed";
  return new ActorError(code, `python environment: ${what}: ${line.trim().slice(0, 300)}`, cause);
}

/** Takes the lock file `path`, whose content is the holder's process id. Takes over the lock of a dead process. */
async function lock(path: string, waitSeconds: number): Promise<() => Promise<void>> {
  const deadline = performance.now() + waitSeconds * 1000;
  for (;;) {
    try {
      const handle = await open(path, "wx");
      await handle.writeFile(String(process.pid));
      await handle.close();
      return () => rm(path, { force: true });
    } catch (cause) {
      if ((cause as NodeJS.ErrnoException).code !== "EEXIST") await asDiskErrors(path, () => Promise.reject(cause));
    }
    const holder = Number(await readFile(path, "utf8").catch(() => ""));
    if (holder > 0 && !isAlive(holder)) {
      // Only one of several waiters may remove it: the rename succeeds once.
      const stale = `${path}.${process.pid}`;
      await rename(path, stale).then(
        () => rm(stale, { force: true }),
        () => {},
      );
      continue;
    }
    if (performance.now() > deadline)
      throw new ActorError(
        "pythonPackages",
        `python environment: process ${holder || "?"} has held ${path} for ${waitSeconds} s; end it, or remove that file`,
      );
    await sleep(200);
  }
}

async function asDiskErrors<T>(path: string, action: () => Promise<T>): Promise<T> {
  try {
    return await action();
  } catch (cause) {
    const { code } = cause as NodeJS.ErrnoException;
    const full = code === "ENOSPC" || code === "EDQUOT";
    const remedy = full ? "free some space" : "make it writable";
    throw new ActorError(
      full ? "diskFull" : "pythonPackages",
      `python environment: cannot write ${path} (${code ?? reasonOf(cause)}); ${remedy}, or set LONGRUN_CACHE to another folder`,
      cause,
    );
  }
}

async function exists(path: string): Promise<boolean> {
  return access(path).then(
    () => true,
    () => false,
  );
}

function reasonOf(cause: unknown): string {
  const { code, message } = cause as NodeJS.ErrnoException;
  return code === "ENOENT" ? "not found" : String(message ?? cause).split("\n")[0];
}

/** Errors of an interpreter that the user named: bad input. */
const BAD_INTERPRETER = ["pythonMissing", "pythonTooOld"];

if (import.meta.main) {
  let isNamed = false;
  try {
    const { values } = parseArgs({
      options: { python: { type: "string" }, packages: { type: "string", default: "Basic" } },
    });
    const { packages } = values;
    isNamed = values.python !== undefined;
    if (!(packages in SETS))
      throw new Error(`--packages is ${packages}, must be one of ${Object.keys(SETS).join(", ")}`);
    const onProgress = (line: string) => process.stderr.write(`${line}\n`);
    const environment = await ensurePythonEnvironment({
      python: values.python,
      packages: packages as PackageSet,
      onProgress,
    });
    process.stdout.write(`${JSON.stringify(environment)}\n`);
  } catch (error) {
    process.stderr.write(`${(error as Error).message}\n`);
    const isInput = !(error instanceof ActorError) || (isNamed && BAD_INTERPRETER.includes(error.code));
    process.exitCode = isInput ? 2 : 1;
  }
}
