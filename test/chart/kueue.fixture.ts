/** A World with Kueue's own CRDs (`operator-crds.ts`), in which the test writes the status of Workloads as Kueue's scheduler does. */
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import { RESOURCE_FLAVOR, WORKLOAD } from "../../controller/operator/kube/resources.ts";
import type { Workload, WorkloadCondition } from "../../controller/operator/parts/admission/desired.ts";
import type { ResourceFlavor } from "../../controller/operator/parts/admission/flavors.ts";
import { setConditions } from "../../controller/operator/parts/admission/queue.ts";
import { answers, hasReason, useWorld, world } from "../controller/steps.ts";
import { eventually } from "../controller/world.ts";
import { ROOT } from "./helm.ts";
import { operatorCrds } from "./operator-crds.ts";

/** Starts the World, with the flavor `default`, before the file's tests. */
export const useKueue = () =>
  useWorld({
    controller: { settings: { ...DEFAULT_SETTINGS, kueue: true } },
    parts: { crds: operatorCrds("kueue.x-k8s.io"), roles: [`${ROOT}manifests/install/kueue/role.yaml`] },
    ready: async () => void (await flavor("default")),
  });

export const flavor = (name: string, spec: ResourceFlavor["spec"] = {}) =>
  world.client.create<ResourceFlavor>(RESOURCE_FLAVOR, { metadata: { name }, spec } as ResourceFlavor);

type Change = Pick<WorkloadCondition, "type" | "status" | "reason" | "message">;
export const change = (type: string, status: "True" | "False", reason: string, message: string): Change => ({
  type,
  status,
  reason,
  message,
});

/** Returns the Workload of the run, if there is one. */
export const workloadOf = (namespace: string) =>
  world.client.get<Workload>(WORKLOAD, { namespace, name: "run-workload" });
export const hasWorkload = (namespace: string) => eventually(() => workloadOf(namespace));
/** Writes conditions of the Workload, as Kueue does. */
export const says = async (namespace: string, changes: Change[], status: object = {}) => {
  const workload = await hasWorkload(namespace);
  const conditions = setConditions(workload, changes, new Date().toISOString().replace(/\.\d+/, ""));
  const key = { namespace, name: workload.metadata.name };
  await world.client.mergePatch(WORKLOAD, key, { status: { ...status, conditions } }, { subresource: "status" });
};
/** Admits the Workload with these flavors and counts of its pod sets. */
export const admit = async (
  namespace: string,
  flavors: Record<string, string> = { learner: "default", actors: "default", generators: "default" },
  counts: Record<string, number> = {},
) => {
  const { spec } = await hasWorkload(namespace);
  const podSetAssignments = spec.podSets.map(({ name, count }) => ({
    name,
    count: counts[name] ?? count,
    flavors: { cpu: flavors[name]! },
  }));
  await says(
    namespace,
    [
      change("QuotaReserved", "True", "QuotaReserved", "Quota reserved in ClusterQueue research"),
      change("Admitted", "True", "Admitted", "The workload is admitted"),
      change("Evicted", "False", "QuotaReserved", "Previously: evicted"),
    ],
    { admission: { clusterQueue: "research", podSetAssignments } },
  );
};
export const evict = (namespace: string) =>
  says(namespace, [change("Evicted", "True", "Preempted", "Preempted to accommodate a workload of higher priority")]);
/** Returns the Workload's condition of this type. */
export const statusOf = async (namespace: string, type: string) =>
  (await workloadOf(namespace))?.status?.conditions?.find((it) => it.type === type);
/** Creates a run that waits in LocalQueue team. */
export const startQueued = async (spec: object = {}) => {
  const namespace = await world.namespace();
  const run = await world.createRun(namespace, "run", { queueName: "team", actors: { min: 1, max: 3 }, ...spec });
  await hasReason(namespace, "Admitted", "Queued");
  return { namespace, run };
};
/** Creates a run that Kueue admits, and waits until its learner answers. */
export const admitted = async (spec: object = {}) => {
  const { namespace, run } = await startQueued(spec);
  await admit(namespace);
  return { namespace, run, learner: await answers(namespace) };
};
