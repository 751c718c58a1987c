/** Names and labels of a TrainingRun's children. All names are derived from the run's name. */
import { createHash } from "node:crypto";
import type { TrainingRun } from "../../../crds/trainingrun.ts";
import type { ObjectMeta, OwnerReference } from "../kube/types.ts";

/** A TrainingRun as stored by the API server, with all fields that the server sets. */
export type Run = Omit<TrainingRun, "metadata"> & {
  metadata: ObjectMeta & Required<Pick<ObjectMeta, "namespace" | "uid" | "resourceVersion" | "generation">>;
};

export type Component = "learner" | "actor" | "generator" | "init" | "model" | "results" | "run";

export const MANAGED_BY = "app.kubernetes.io/managed-by";
/** Label selector of all children. Caches hold only objects that it selects. */
export const CHILD_SELECTOR = `${MANAGED_BY}=longrun`;
export const COMPONENT = "app.kubernetes.io/component";
export const RUN = "longrun.dev/run";
export const RUN_UID = "longrun.dev/run-uid";
/** Annotation with the digest of a child's desired state; a change replaces its pods. */
export const SPEC_HASH = "longrun.dev/spec-hash";
/** Annotation with the digest of the user's settings for a child's pods: the same for every version of the controller. */
export const INPUT_HASH = "longrun.dev/input-hash";
/** On the learner's Deployment: the images that the run has from its start until it is suspended, as JSON. */
export const IMAGES = "longrun.dev/images";
/** On a claim: `learner.storage.retainSeconds`, and when the controller saw that its run is gone (RFC 3339). */
export const RETAIN_SECONDS = "longrun.dev/retain-seconds";
export const RETAINED_SINCE = "longrun.dev/retained-since";
/** On an actor's Job: the time and the reason when it was told to take no more executions. */
export const DRAINING = "longrun.dev/draining";
/** Kueue's label for the queue: https://kueue.sigs.k8s.io/docs/reference/labels-and-annotations/ */
export const QUEUE_NAME = "kueue.x-k8s.io/queue-name";

/** An actor's container that holds the certificate. */
export const SUPERVISOR = "supervisor";

/** Suffix of the names of the generators' objects. */
export const GENERATORS = "generators";

export const GRPC_PORT = 7443;
export const GENERATOR_PORT = 8443;
export const METRICS_PORT = 9400;

/** Returns the run's key, `NAMESPACE/NAME`, by which every part's log lines name the run. */
export function runId({ metadata: { namespace, name } }: Run): string {
  return `${namespace}/${name}`;
}

export function childName(run: { metadata: { name: string } }, suffix: string): string {
  return `${run.metadata.name}-${suffix}`;
}

export function learnerHost({ metadata: { name, namespace } }: Run): string {
  return `${name}-learner.${namespace}.svc`;
}

/** Returns the names in the learner's certificate; a port-forward dials `localhost`. */
export function learnerHosts(run: Run): string[] {
  const host = learnerHost(run);
  return [host, `${host}.cluster.local`, childName(run, "learner"), "localhost"];
}

/** Returns the name of the headless Service whose addresses are the generators. */
export function generatorHost({ metadata: { name, namespace } }: Run): string {
  return `${name}-${GENERATORS}.${namespace}.svc`;
}

/** Returns the names in the generators' certificate. */
export function generatorHosts(run: Run): string[] {
  const host = generatorHost(run);
  return [host, `${host}.cluster.local`, childName(run, GENERATORS)];
}

/** Returns the name of actor `index`; the generation grows with each replacement. */
export function actorName(run: Run, index: number, generation: number): string {
  return childName(run, `actor-${index}-${generation}`);
}

/** The Secret with an actor's certificate. */
export function tlsSecret(actor: string): string {
  return `${actor}-tls`;
}

/** @returns undefined if no actor of this run can have the name */
export function parseActorName(run: Run, name: string): { index: number; generation: number } | undefined {
  const prefix = childName(run, "actor-");
  const match = name.startsWith(prefix) ? /^(\d+)-(\d+)$/.exec(name.slice(prefix.length)) : null;
  return match ? { index: Number(match[1]), generation: Number(match[2]) } : undefined;
}

/** Returns the labels of the pods of one component of a run. */
export function podLabels(run: Run, component: Component): Record<string, string> {
  return { [COMPONENT]: component, [RUN]: run.metadata.name };
}

/** Returns the labels of a child and of its pods: those that the run gives to all of them, and longrun's own. */
export function labelsOf(run: Run, component: Component): Record<string, string> {
  const own = { [MANAGED_BY]: "longrun", ...podLabels(run, component), [RUN_UID]: run.metadata.uid };
  return { ...run.spec.inheritedMetadata?.labels, ...own };
}

/** Whether a label is longrun's own, which no user may set. */
export const isOwnLabel = (key: string): boolean => /^(app\.kubernetes\.io|longrun\.dev)\//.test(key);

/** Returns annotations together with those that the run gives to every child and its pods; no field if there are none. */
function annotationsOf({ spec }: Run, own: Record<string, string>): Pick<ObjectMeta, "annotations"> {
  const annotations = { ...spec.inheritedMetadata?.annotations, ...own };
  return Object.keys(annotations).length > 0 ? { annotations } : {};
}

/** Returns the metadata of a component's pods. */
export function podMetadata(run: Run, component: Component, annotations: Record<string, string> = {}) {
  return { labels: labelsOf(run, component), ...annotationsOf(run, annotations) };
}

/** Returns the LocalQueue that admits the run: from the spec, or else from Kueue's usual label. */
export function queueNameOf({ spec, metadata: { labels } }: Run): string | undefined {
  return spec.queueName ?? (labels?.[QUEUE_NAME] || undefined);
}

/** Returns the labels of Deployments and Jobs that Kueue admits separately. */
export function queueLabels(run: Run): Record<string, string> {
  const queueName = queueNameOf(run);
  return queueName === undefined ? {} : { [QUEUE_NAME]: queueName };
}

export function ownerReference({ apiVersion, kind, metadata: { name, uid } }: Run): OwnerReference {
  return { apiVersion, kind, name, uid, controller: true, blockOwnerDeletion: true };
}

export function childMetadata(
  run: Run,
  suffix: string,
  component: Component,
  annotations: Record<string, string> = {},
): ObjectMeta {
  return {
    name: childName(run, suffix),
    namespace: run.metadata.namespace,
    ...podMetadata(run, component, annotations),
    ownerReferences: [ownerReference(run)],
  };
}

/** @returns 16 hexadecimal digits, which do not depend on the order of keys */
export function digestOf(value: unknown): string {
  return createHash("sha256").update(stableJson(value)).digest("hex").slice(0, 16);
}

/** Returns JSON with sorted keys. */
export function stableJson(value: unknown): string {
  return JSON.stringify(value, (_, part: unknown) =>
    part !== null && typeof part === "object" && !Array.isArray(part)
      ? Object.fromEntries(Object.entries(part).sort(([a], [b]) => (a < b ? -1 : 1)))
      : part,
  );
}
