/** `spec.env` and `spec.caBundle`: what the containers of all pods of a run get, except sandboxes, whose programs see neither. */
import type { V1Container, V1EnvVar, V1PodSpec } from "@kubernetes/client-node";
import type { Run } from "./names.ts";

const CA_VOLUME = "ca-bundle";
const CA_FOLDER = "/etc/longrun-ca";
const CA_FILE = "ca.crt";
/** Node.js adds the authorities of this file to its own. */
const CA_VARIABLE = "NODE_EXTRA_CA_CERTS";

/** Variables of the controller's settings, which a run may replace. */
const PROXY = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/** Returns `own` with the variables of `added`; a variable that longrun sets itself is not replaced. */
function joinEnv(own: V1EnvVar[], added: V1EnvVar[]): V1EnvVar[] {
  const has = (list: V1EnvVar[], name: string) => list.some((it) => it.name === name);
  const kept = own.filter(({ name }) => !(PROXY.includes(name) && has(added, name)));
  return [...kept, ...added.filter(({ name }) => !has(kept, name))];
}

/** @param lists the lists of containers that get them */
export function withEnvironment(
  pod: V1PodSpec,
  { spec: { env = [], caBundle } }: Run,
  lists: readonly ("containers" | "initContainers")[] = ["containers"],
): V1PodSpec {
  if (env.length === 0 && !caBundle) return pod;
  const authorities = caBundle ? [{ name: CA_VARIABLE, value: `${CA_FOLDER}/${CA_FILE}` }] : [];
  const added = joinEnv(env as V1EnvVar[], authorities);
  const mounts = caBundle ? [{ name: CA_VOLUME, mountPath: CA_FOLDER, readOnly: true }] : [];
  const extended = (container: V1Container): V1Container => ({
    ...container,
    env: joinEnv(container.env ?? [], added),
    volumeMounts: [...(container.volumeMounts ?? []), ...mounts],
  });
  const containers = Object.fromEntries(lists.map((list) => [list, pod[list]?.map(extended)]).filter(([, it]) => it));
  if (!caBundle) return { ...pod, ...containers };
  const { name, key } = caBundle.configMap;
  const volume = { name: CA_VOLUME, configMap: { name, items: [{ key: key ?? CA_FILE, path: CA_FILE }] } };
  return { ...pod, ...containers, volumes: [...(pod.volumes ?? []), volume] };
}
