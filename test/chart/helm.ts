/** The chart as Helm sees it. */
import { execFile } from "node:child_process";
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { parseAllDocuments } from "yaml";
import type { KubeObject } from "../../controller/kube/types.ts";
import { findBinary, KUBERNETES_VERSION, missingBinaries } from "../cluster/binaries.ts";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url));
export const CHART = `${ROOT}charts/longrun`;
/** The chart of the release before, as `helm package` made it of its tag (`released/README.md`). */
export const RELEASED = join(import.meta.dirname, "released/longrun-0.1.0.tgz");
const VALUES = join(import.meta.dirname, "values");
/** Names of the files of `values/`. */
export const VALUE_SETS = readdirSync(VALUES).map((file) => file.replace(".yaml", ""));
export const valuesFile = (set: string) => join(VALUES, `${set}.yaml`);
/** What `helm template` is told that a cluster with prometheus-operator and Kueue serves. */
export const OPERATORS = ["monitoring.coreos.com/v1", "kueue.x-k8s.io/v1beta2"].flatMap((it) => ["--api-versions", it]);

/** Why the chart cannot be rendered here, on one line with the remedy, or undefined. */
export const helmUnavailable = (): string | undefined => missingBinaries(["helm"]);

/** Standard output. @throws Error with what helm said */
export async function helm(args: string[], env: NodeJS.ProcessEnv = {}): Promise<string> {
  try {
    const options = { env: { ...process.env, ...env }, maxBuffer: 64 << 20 };
    return (await promisify(execFile)(findBinary("helm")!, args, options)).stdout;
  } catch (cause) {
    const { stderr, message } = cause as Error & { stderr?: string };
    throw new Error(`helm ${args[0]}: ${stderr?.trim() || message}`, { cause });
  }
}

/** The one value that an installation needs. */
export const IMAGES = ["--set", "images.registry=registry.example.com/ml"];

/** The text that the chart renders to as release `longrun` in `longrun-system`, as it is documented. */
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
