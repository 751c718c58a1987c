/** Contents of a support bundle for a run on Kubernetes: its objects, events, logs and metrics, and the controller's. */
import type { KubeConfig } from "@kubernetes/client-node";
import { stringify } from "yaml";
import { ControllerError } from "../errors.ts";
import { CONTROLLER_POD_LABELS } from "../operator/desired/access.ts";
import { RUN, type Run, runId } from "../operator/desired/names.ts";
import { ApiClient } from "../operator/kube/api-client.ts";
import {
  CONFIG_MAP,
  DEPLOYMENT,
  EVENT,
  JOB,
  LEASE,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  POD,
  type Pod,
  pathOf,
  SERVICE,
  TRAINING_RUN,
  TRAINING_RUNTIME,
  WORKLOAD,
} from "../operator/kube/resources.ts";
import { Transport } from "../operator/kube/transport.ts";
import type { KubeObject, Resource } from "../operator/kube/types.ts";
import { findCondition } from "../operator/status/conditions.ts";
import type { BundleFile } from "./pack.ts";
import { redactObject } from "./redact.ts";

/** Without Secrets: their values would not help. */
const CHILDREN: readonly Resource[] = [
  DEPLOYMENT,
  JOB,
  POD,
  SERVICE,
  CONFIG_MAP,
  PERSISTENT_VOLUME_CLAIM,
  NETWORK_POLICY,
];
const LOG_LINES = 20_000;
/** Most pods whose logs are collected; a run may have had hundreds. */
const MOST_PODS = 50;
const METRICS_PORTS: Record<string, number> = { learner: 9400, actor: 9400, controller: 8080 };

/**
 * Returns the files. A part that cannot be read becomes a file with the reason, so any rights are enough for a bundle. @throws
 * ControllerError `input` if there is no such run
 */
export async function clusterFiles(config: KubeConfig, namespace: string, name: string): Promise<BundleFile[]> {
  const client = new ApiClient(config);
  const transport = new Transport(config);
  try {
    const run = await client.get<Run>(TRAINING_RUN, { namespace, name });
    if (!run)
      throw new ControllerError(
        "input",
        `there is no TrainingRun ${namespace}/${name}; see kubectl get trainingruns -A`,
      );
    const text = async (path: string) => {
      const { status, body } = await transport.send({ method: "GET", path, timeoutSeconds: 30 });
      return status < 300 ? body : `HTTP ${status}: ${body}`;
    };
    const files: BundleFile[] = [{ path: "trainingrun.yaml", text: stringify(redactObject(run)) }];
    const take = async (path: string, read: () => Promise<string>) => {
      files.push({ path, text: await read().catch((error: Error) => `could not be read: ${error.message}\n`) });
    };
    const listed = async (resource: Resource, where: object) =>
      (await client.list<KubeObject>(resource, where)).items.map(redactObject);
    const ofRun = { namespace, labelSelector: `${RUN}=${name}` };
    const runtime = run.status?.runtime?.name ?? run.spec.runtimeRef?.name;
    if (runtime !== undefined)
      await take("trainingruntime.yaml", async () => {
        const found = await client.get<KubeObject>(TRAINING_RUNTIME, { name: runtime });
        return found ? stringify(redactObject(found)) : `there is no TrainingRuntime ${runtime}\n`;
      });
    const isQueued = findCondition(run.status?.conditions, "Admitted") !== undefined;
    for (const resource of isQueued ? [...CHILDREN, WORKLOAD] : CHILDREN)
      await take(`objects/${resource.plural}.yaml`, async () => stringify(await listed(resource, ofRun)));
    await take("events.yaml", async () => {
      const events = await listed(EVENT, { namespace });
      return stringify(events.filter((event) => concerns(event, name)));
    });
    await take("leases.yaml", async () =>
      stringify(await listed(LEASE, { fieldSelector: "metadata.name=longrun-controller" })),
    );

    const pods = async (where: object) => (await client.list<Pod>(POD, where)).items.slice(0, MOST_PODS);
    const labels = Object.entries(CONTROLLER_POD_LABELS).map(([label, value]) => `${label}=${value}`);
    await take("controller.yaml", async () => stringify(await listed(DEPLOYMENT, { labelSelector: labels.join(",") })));
    const controllers = await pods({ labelSelector: labels.join(",") }).catch((): Pod[] => []);
    for (const pod of [...(await pods(ofRun).catch((): Pod[] => [])), ...controllers]) await takePod(pod, take, text);
    files.push({ path: "run-id.txt", text: `${runId(run)}\n` });
    return files;
  } finally {
    client.close();
    transport.close();
  }
}

/** Collects the logs of every container, also from before the last restart, and the metrics page. */
async function takePod(
  { metadata, spec, status }: Pod,
  take: (path: string, read: () => Promise<string>) => Promise<void>,
  text: (path: string) => Promise<string>,
): Promise<void> {
  const { name, namespace } = metadata;
  const key = { name, namespace: namespace! };
  const restarted = new Set(
    [...(status?.initContainerStatuses ?? []), ...(status?.containerStatuses ?? [])]
      .filter(({ restartCount }) => restartCount > 0)
      .map((it) => it.name),
  );
  for (const container of [...(spec?.initContainers ?? []), ...(spec?.containers ?? [])])
    for (const previous of restarted.has(container.name) ? [false, true] : [false]) {
      const query = new URLSearchParams({
        container: container.name,
        tailLines: String(LOG_LINES),
        timestamps: "true",
      });
      if (previous) query.set("previous", "true");
      await take(`logs/${name}/${container.name}${previous ? ".previous" : ""}.log`, () =>
        text(`${pathOf(POD, key, "log")}?${query}`),
      );
    }
  const port = METRICS_PORTS[metadata.labels?.["app.kubernetes.io/component"] ?? ""];
  if (port !== undefined && status?.phase === "Running")
    await take(`metrics/${name}.txt`, () =>
      text(pathOf(POD, { ...key, name: `${name}:${port}` }, "proxy/metrics").replace("%3A", ":")),
    );
}

function concerns(event: KubeObject & { regarding?: { name?: string } }, run: string): boolean {
  const name = event.regarding?.name ?? "";
  return name === run || name.startsWith(`${run}-`);
}
