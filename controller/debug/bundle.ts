/** `longrun debug RUN`: writes one file with everything that others need to find a fault. */
import { existsSync, statSync } from "node:fs";
import { dirname, join } from "node:path";
import { ControllerError } from "../errors.ts";
import type { KubeconfigOptions } from "../operator/kube/kubeconfig.ts";
import { type BundleFile, packBundle } from "./pack.ts";

interface DebugOptions extends KubeconfigOptions {
  /** Absent: the context's namespace. */
  namespace?: string | undefined;
  /** Path of the bundle. Absent: `longrun-debug-RUN-TIME.tar.gz` in the working directory. */
  out?: string | undefined;
}

/**
 * Writes a bundle of a run folder, or of a TrainingRun on the cluster.
 *
 * @param run the folder, or `NAME`, or `NAMESPACE/NAME`
 * @returns the bundle's path
 * @throws ControllerError
 */
export async function writeBundle(run: string, options: DebugOptions, now: Date): Promise<string> {
  const files = existsSync(join(run, "trainingrun.yaml"))
    ? (await import("./local.ts")).localFiles(run)
    : await fromCluster(run, options);
  return packBundle(run, files, options.out, now);
}

async function fromCluster(run: string, options: DebugOptions): Promise<BundleFile[]> {
  const parts = run.split("/");
  const looksLikePath =
    parts.length > 2 || run.startsWith(".") || isFolder(run) || (parts.length === 2 && isFolder(dirname(run)));
  if (looksLikePath)
    throw new ControllerError(
      "input",
      existsSync(run)
        ? `${run}: is no run folder, it has no trainingrun.yaml; name one, or a TrainingRun`
        : `${run}: there is no such run folder; name one, or a TrainingRun of a cluster as NAME or NAMESPACE/NAME`,
    );
  const { loadConfig } = await import("../operator/kube/kubeconfig.ts");
  const { clusterFiles } = await import("./cluster.ts");
  try {
    const { config, namespace } = loadConfig(options);
    const [own, name] = parts.length === 2 ? parts : [options.namespace ?? namespace, run];
    return await clusterFiles(config, own!, name!);
  } catch (cause) {
    // The user may have meant a folder.
    if (!(cause instanceof ControllerError)) throw cause;
    const message = `${run}: there is no such run folder, and no such TrainingRun was found: ${cause.message}`;
    throw new ControllerError(cause.code, message, { cause });
  }
}

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() ?? false;
