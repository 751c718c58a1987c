import { spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdtempDisposableSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { makeFolder } from "../../proto/folders.ts";
import { TaskError } from "./errors.ts";
import type { RegistryEntry } from "./registry.ts";

export function fileSha256(path: string): string {
  return createHash("sha256").update(readFileSync(path)).digest("hex");
}

export function isFile(path: string, sha256: string): boolean {
  return existsSync(path) && fileSha256(path) === sha256;
}

/** Folder with a `setuptools` that builds nothing; build_meta.py explains why. */
const sdistBackend = fileURLToPath(new URL("sdist-backend", import.meta.url));

/**
 * Returns the path of the package's file. If it is not in `downloads` yet, pip fetches it with the user's pip settings. pip checks the
 * pinned hash before it reads the file, and nothing of the package is executed.
 * @throws TaskError `download` (no network, index without the file), `hash`, `python` (no pip)
 */
export function downloadPackage(source: RegistryEntry["source"], downloads: string, python: string): string {
  const path = join(downloads, source.file);
  if (isFile(path, source.sha256)) return path;
  makeFolder(downloads, "--downloads");
  using temporary = mkdtempDisposableSync(join(downloads, ".fetch-"));
  const scratch = temporary.path;
  const requirement = `${source.package}==${source.version}`;
  const requirements = join(scratch, "requirements.txt");
  writeFileSync(requirements, `${requirement} --hash=sha256:${source.sha256}\n`);
  const isSdist = source.format === "sdist";
  const format = isSdist ? "--no-binary :all: --no-build-isolation --use-pep517" : "--only-binary :all:";
  const download = "-m pip --disable-pip-version-check --no-input download --quiet --no-deps --require-hashes";
  const options = [...`${download} --ignore-requires-python ${format}`.split(" "), "--dest", scratch];
  const pip = spawnSync(python, [...options, "--requirement", requirements], {
    encoding: "utf8",
    env: { ...process.env, ...(isSdist && { PYTHONPATH: sdistBackend, LONGRUN_PACKAGE: requirement }) },
  });
  if (pip.error) throw new TaskError("python", `cannot start ${python}: ${pip.error.message}`, pip.error);
  if (pip.status !== 0) throw pipError(pip.stderr, source, downloads, python);
  const fetched = join(scratch, source.file);
  if (!existsSync(fetched))
    throw new TaskError("download", `the package index has no ${source.file}; put it into ${downloads}`);
  if (fileSha256(fetched) !== source.sha256) throw wrongHash(source.file);
  renameSync(fetched, path);
  return path;
}

const wrongHash = (file: string) =>
  new TaskError("hash", `${file} is not the pinned file (SHA-256 differs); check the package index`);

function pipError(stderr: string, source: RegistryEntry["source"], downloads: string, python: string): TaskError {
  const lines = stderr.split("\n").filter((line) => line.trim() !== "");
  if (/No module named pip/.test(stderr))
    return new TaskError("python", `${python} has no pip, which fetches the data; use a venv with pip (--python)`);
  if (/No space left on device/i.test(stderr))
    return new TaskError("disk", `no space left on the disk of ${downloads}`);
  if (/DO NOT MATCH THE HASHES/.test(stderr)) return wrongHash(source.file);
  const said = lines.findLast((line) => /^(ERROR|error)/.test(line)) ?? lines.at(-1) ?? "pip failed";
  return new TaskError(
    "download",
    `cannot download ${source.package} ${source.version} (${said.replace(/^ERROR: /, "")}); ` +
      `check the network, or put ${source.file} into ${downloads}`,
  );
}
