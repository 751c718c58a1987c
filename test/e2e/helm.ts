/** Helm, for a release in the namespace of the controllers. */
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureBinaries } from "../cluster/binaries.ts";
import type { TestCluster } from "../cluster/node.ts";

export const CHART = fileURLToPath(new URL("../../charts/longrun", import.meta.url));

/** Runs `helm ARGUMENTS` and returns its output. @throws Error with Helm's message */
export type Helm = (...args: string[]) => Promise<string>;

/** Returns Helm for a namespace of the cluster. */
export async function helmOf(
  { kubeconfig }: TestCluster,
  namespace: string,
  log: (line: string) => void,
): Promise<Helm> {
  const { helm } = await ensureBinaries(["helm"], { log });
  return async (...args) => {
    const env = { ...process.env, KUBECONFIG: kubeconfig };
    try {
      return (await promisify(execFile)(helm, [...args, "--namespace", namespace], { env })).stdout;
    } catch (cause) {
      const { stdout, stderr } = cause as { stdout: string; stderr: string };
      throw new Error(`helm ${args[0]}: ${stderr.trim()}\n${stdout}`, { cause });
    }
  };
}
