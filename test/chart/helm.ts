/** Runs Helm on the chart. */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import { findBinary, KUBERNETES_VERSION, missingBinaries } from "../cluster/binaries.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const CHART = `${ROOT}charts/longrun`;
/** The chart of the previous release, packaged by `helm package` from its tag (`released/README.md`). */
export const RELEASED = join(import.meta.dirname, "released/longrun-0.1.0.tgz");
const VALUES = join(import.meta.dirname, "values");
/** Names of the files in `values/`. */
export const VALUE_SETS = readdirSync(VALUES).map((file) => file.replace(".yaml", ""));
export const valuesFile = (set: string) => join(VALUES, `${set}.yaml`);
/** API versions of a cluster with prometheus-operator and Kueue, for `helm template`. */
export const OPERATORS = ["monitoring.coreos.com/v1", "kueue.x-k8s.io/v1beta2"].flatMap((it) => ["--api-versions", it]);

/** Returns why the chart cannot be rendered on this machine, in one line with the remedy, or undefined. */
export const helmUnavailable = (): string | undefined => missingBinaries(["helm"]);

/** Returns standard output. @throws Error with Helm's message */
export async function helm(args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  try {
    const options = { env: { ...process.env, ...env }, maxBuffer: 64 << 20 };
    return (await promisify(execFile)(findBinary("helm")!, args, options)).stdout;
  } catch (cause) {
    const { stderr, message } = cause as Error & { stderr?: string };
    throw new Error(`helm ${args[0]}: ${stderr?.trim() || message}`, { cause });
  }
}

/** The one value that every installation needs. */
export const IMAGES = ["--set", "images.registry=registry.example.com/ml"];

/** Returns the rendered chart as release `longrun` in `longrun-system`, the documented names. */
export function template(args: string[] = [], chart = CHART): Promise<string> {
  const kubeVersion = ["--kube-version", KUBERNETES_VERSION];
  return helm(["template", "longrun", chart, "--namespace", "longrun-system", ...kubeVersion, ...IMAGES, ...args]);
}

export const objectsOf = (text: string): KubeObject[] =>
  parseAllDocuments(text)
    .map((document) => document.toJS() as KubeObject | null)
    .filter((object) => object !== null);

export const isHook = ({ metadata }: KubeObject) => metadata.annotations?.["helm.sh/hook"] !== undefined;
export const keyOf = ({ kind, metadata: { namespace, name } }: KubeObject) => `${kind} ${namespace ?? ""}/${name}`;
