/** Packs a support bundle's files, with facts about this machine, into one archive. Replaces everything that looks like a secret. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { arch, cpus, platform, release, tmpdir, totalmem } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { describeFileError } from "../../proto/errors.ts";
import { makeFolder } from "../../proto/folders.ts";
import { ControllerError } from "../errors.ts";
import { redactText } from "./redact.ts";

export interface BundleFile {
  /** Path within the bundle. */
  path: string;
  text: string;
}

/** @param run name for the bundle. @returns its path. @throws ControllerError */
export function packBundle(run: string, files: BundleFile[], out: string | undefined, now: Date): string {
  const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const name = `longrun-debug-${basename(resolve(run))}-${time}`;
  const path = resolve(out ?? `${name}.tar.gz`);
  if (existsSync(path)) throw new ControllerError("input", `${path}: is there already; name another file with --out`);
  makeFolder(dirname(path), "--out");
  const folder = mkdtempSync(join(tmpdir(), "longrun-debug-"));
  try {
    for (const file of [...files, { path: "machine.json", text: machine() }]) {
      const at = join(folder, name, file.path);
      mkdirSync(dirname(at), { recursive: true });
      writeFileSync(at, redactText(file.text));
    }
    execFileSync("tar", ["-czf", path, "-C", folder, name], { stdio: ["ignore", "ignore", "pipe"] });
  } catch (cause) {
    throw new ControllerError("failed", describeFileError(path, cause), { cause });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
  return path;
}

/** Returns facts about the machine that makes the bundle. */
function machine(): string {
  const facts = {
    platform: platform(),
    release: release(),
    arch: arch(),
    cores: cpus().length,
    memoryBytes: totalmem(),
  };
  return JSON.stringify({ ...facts, node: process.version }, null, 2);
}
