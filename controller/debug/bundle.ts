/** `longrun debug RUN`: one file with what somebody else needs to find out what went wrong. */
import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { arch, cpus, platform, release, tmpdir, totalmem } from "node:os";
import { basename, dirname, join, resolve } from "node:path";
import { ControllerError, describeFileError } from "../errors.ts";
import { redactText } from "./redact.ts";

export interface BundleFile {
  /** Within the bundle. */
  path: string;
  text: string;
}

export interface DebugOptions {
  namespace: string;
  kubeconfig?: string | undefined;
  /** The bundle. Absent: `longrun-debug-RUN-TIME.tar.gz` in the working directory. */
  out?: string | undefined;
}

/**
 * Of a run folder, or of a TrainingRun on the cluster.
 *
 * @param run the folder, or `NAME`, or `NAMESPACE/NAME`
 * @returns the bundle's path
 * @throws ControllerError
 */
export async function writeBundle(run: string, options: DebugOptions, now: Date): Promise<string> {
  const files = existsSync(join(run, "trainingrun.yaml"))
    ? (await import("./local.ts")).localFiles(run)
    : await fromCluster(run, options);
  const time = now.toISOString().replaceAll(/[-:]|\.\d+/g, "");
  const name = `longrun-debug-${basename(resolve(run))}-${time}`;
  const path = resolve(options.out ?? `${name}.tar.gz`);
  if (existsSync(path)) throw new ControllerError("input", `${path}: is there already; name another file with --out`);
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

async function fromCluster(run: string, { namespace, kubeconfig }: DebugOptions): Promise<BundleFile[]> {
  const parts = run.split("/");
  const looksLikePath = parts.length > 2 || run.startsWith(".") || (existsSync(run) && statSync(run).isDirectory());
  if (looksLikePath)
    throw new ControllerError(
      "input",
      `${run}: is no run folder, it has no trainingrun.yaml; name one, or a TrainingRun`,
    );
  const { loadConfig } = await import("../kube/kubeconfig.ts");
  const { clusterFiles } = await import("./cluster.ts");
  const [own, name] = parts.length === 2 ? parts : [namespace, run];
  return clusterFiles(loadConfig({ kubeconfig }).config, own!, name!);
}

/** Of the machine that makes the bundle. */
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
