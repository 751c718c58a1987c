/**
 * A control plane with real controllers, pods that run at once, simulated learners and actors, and the controller under test: everything
 * except nodes.
 */

import { readFile } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { KubeConfig } from "@kubernetes/client-node";
import { pino } from "pino";
import { parseAllDocuments } from "yaml";
import { COMPONENT, RUN, type Run } from "../../controller/operator/desired/names.ts";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import { ApiClient } from "../../controller/operator/kube/api-client.ts";
import { ApiError } from "../../controller/operator/kube/errors.ts";
import {
  DEPLOYMENT,
  type Deployment,
  EVENT,
  JOB,
  type Job,
  NAMESPACE,
  POD,
  type Pod,
  TRAINING_RUN,
  TRAINING_RUNTIME,
} from "../../controller/operator/kube/resources.ts";
import type { KubeObject, Resource } from "../../controller/operator/kube/types.ts";
import { type Operator, type OperatorOptions, startOperator } from "../../controller/operator/operator.ts";
import type { TrainingRunStatus } from "../../crds/trainingrun.ts";
import { type ControlPlane, startControlPlane } from "../cluster/control-plane.ts";
import { PodRunner } from "../cluster/pod-runner.ts";
import { SimulatedLearner } from "./simulated-learner.ts";

const CRDS = ["trainingruns", "trainingruntimes"].map((kind) =>
  fileURLToPath(new URL(`../../crds/longrun.dev_${kind}.yaml`, import.meta.url)),
);
const CONTROLLERS = [
  "deployment-controller",
  "replicaset-controller",
  "job-controller",
  "garbage-collector-controller",
  "persistentvolumeclaim-protection-controller",
];
const ROLE = fileURLToPath(new URL("../../manifests/install/controller/role.yaml", import.meta.url));
/** The controller's user on the API server. */
export const USER = "controller";
const WAIT_SECONDS = 60;
const READ_VERBS = ["get", "list", "watch"];

/** Additions to the cluster. */
export interface WorldParts {
  /** Files of other CRDs. */
  crds?: string[];
  /** Other real controllers. */
  controllers?: string[];
  /** Files of roles for the controller. */
  roles?: string[];
  /** Flags of the API server. */
  apiServer?: Record<string, string>;
  /** Whether the controller has its rights only in namespaces that `bind` names. */
  isBoundByNamespace?: boolean;
}

export class World {
  readonly controlPlane: ControlPlane;
  readonly config: KubeConfig;
  readonly client: ApiClient;
  /** Learners by `namespace/name` of the run, while a learner pod runs. */
  readonly learners = new Map<string, SimulatedLearner>();
  /** Returns whether a pod stays Pending. */
  holds: (pod: Pod) => boolean = () => false;
  /** Returns whether a learner pod has no process that answers. */
  mute: (pod: Pod) => boolean = () => false;
  readonly pods: PodRunner;
  readonly #operators = new Set<Operator>();
  readonly #stopping = new AbortController();
  /** Ends after `#stopping`. */
  #simulation: Promise<void> | undefined;
  /** The last error of the simulation. */
  #failure: unknown;
  #namespaces = 0;
  readonly #roles: string[] = [];

  private constructor(controlPlane: ControlPlane) {
    this.controlPlane = controlPlane;
    this.config = new KubeConfig();
    this.config.loadFromFile(controlPlane.kubeconfig);
    this.client = new ApiClient(this.config, { qps: 1000, burst: 1000 });
    this.pods = new PodRunner({ client: this.client, holds: (pod) => this.holds(pod) });
    void this.pods.run(this.#stopping.signal);
    this.#simulation = this.#simulate();
  }

  static async start({
    crds = [],
    controllers = [],
    roles = [],
    apiServer = {},
    isBoundByNamespace = false,
  }: WorldParts = {}): Promise<World> {
    const world = new World(
      await startControlPlane({
        crds: [...CRDS, ...crds],
        controllers: [...CONTROLLERS, ...controllers],
        users: { [USER]: ["system:authenticated"] },
        apiServer,
      }),
    );
    try {
      for (const file of [ROLE, ...roles]) await world.#grant(file, isBoundByNamespace);
      return world;
    } catch (error) {
      await world.stop();
      throw error;
    }
  }

  async stop(): Promise<void> {
    for (const operator of this.#operators) await operator.stop().catch(() => {});
    this.#stopping.abort();
    try {
      await this.#simulation; // while the API server still answers
    } finally {
      for (const learner of this.learners.values()) learner.stop();
      this.client.close();
      await this.controlPlane.stop();
    }
  }

  /** Starts a controller as a user of its own, so that its requests can be distinguished. */
  async operator(options: Partial<OperatorOptions> = {}): Promise<Operator> {
    const config = new KubeConfig();
    config.loadFromFile(await this.controlPlane.kubeconfigOf(USER));
    const operator = await startOperator({
      config,
      settings: { ...DEFAULT_SETTINGS, webhookHosts: ["127.0.0.1"] },
      log: pino({ level: process.env.CONTROLLER_LOG ?? "silent" }, pino.destination(2)),
      inCluster: true,
      dial: async (key) => {
        const learner = this.learners.get(key);
        if (!learner) throw new Error("connection refused");
        return { address: learner.address, close() {} };
      },
      qps: 1000,
      burst: 1000,
      ...options,
    });
    this.#operators.add(operator);
    await operator.ready();
    return operator;
  }

  async namespace(): Promise<string> {
    const name = `team-${++this.#namespaces}`;
    await this.client.create(NAMESPACE, { metadata: { name } });
    return name;
  }

  async createRun(namespace: string, name: string, spec: Record<string, unknown> = {}): Promise<Run> {
    return this.client.create(TRAINING_RUN, {
      metadata: { namespace, name },
      spec: { tasks: [{ name: "diamonds" }], model: { policy: "quickstart" }, ...spec },
    } as unknown as Run);
  }

  /** Creates a TrainingRuntime, or gives it another spec. */
  async runtime(name: string, spec: object): Promise<void> {
    const found = await this.client.get(TRAINING_RUNTIME, { name });
    if (!found) await this.client.create(TRAINING_RUNTIME, { metadata: { name }, spec } as unknown as KubeObject);
    else await this.client.mergePatch(TRAINING_RUNTIME, { name }, { spec });
  }

  async deleteRuntime(name: string): Promise<void> {
    const { uid } = (await this.client.get(TRAINING_RUNTIME, { name }))!.metadata;
    await this.client.delete(TRAINING_RUNTIME, { name }, { uid: uid! });
  }

  run(namespace: string, name: string): Promise<Run | undefined> {
    return this.client.get<Run>(TRAINING_RUN, { namespace, name });
  }

  async status(namespace: string, name: string): Promise<TrainingRunStatus> {
    return (await this.run(namespace, name))?.status ?? {};
  }

  patchRun(namespace: string, name: string, spec: object): Promise<KubeObject> {
    return this.client.mergePatch(TRAINING_RUN, { namespace, name }, { spec });
  }

  learner(namespace: string, name: string): SimulatedLearner {
    const learner = this.learners.get(`${namespace}/${name}`);
    if (!learner) throw new Error(`no learner of ${namespace}/${name} runs`);
    return learner;
  }

  deployment(namespace: string, run: string): Promise<Deployment | undefined> {
    return this.client.get<Deployment>(DEPLOYMENT, { namespace, name: `${run}-learner` });
  }

  async list<T extends KubeObject>(resource: Resource, namespace: string, selector?: string): Promise<T[]> {
    return (await this.client.list<T>(resource, { namespace, ...(selector && { labelSelector: selector }) })).items;
  }

  /** Returns Jobs of actors that are not finished. */
  async actors(namespace: string, run: string): Promise<Job[]> {
    const jobs = await this.list<Job>(JOB, namespace, `${RUN}=${run},${COMPONENT}=actor`);
    return jobs.filter(isUnfinished);
  }

  async events(namespace: string): Promise<string[]> {
    const events = await this.list<KubeObject & { reason?: string; note?: string; reportingController?: string }>(
      EVENT,
      namespace,
    );
    return events
      .filter((it) => it.reportingController === "longrun.dev/controller")
      .map(({ reason, note }) => `${reason}: ${note}`);
  }

  async deletePod(pod: Pod): Promise<void> {
    const { namespace, name, uid } = pod.metadata;
    await this.client.delete(POD, { namespace: namespace!, name }, { uid: uid!, gracePeriodSeconds: 0 });
  }

  podsOf(namespace: string, run: string, component: string): Promise<Pod[]> {
    return this.list<Pod>(POD, namespace, `${RUN}=${run},${COMPONENT}=${component}`);
  }

  /** Returns the controller's writes to objects of a namespace, without events. */
  writes(namespace: string, since = 0) {
    return this.controlPlane
      .audit()
      .slice(since)
      .filter((it) => it.user === USER && it.namespace === namespace && !READ_VERBS.includes(it.verb))
      .filter(({ resource }) => !resource.endsWith("events"))
      .map(({ verb, resource, subresource, name, code }) => ({ verb, resource, name, code, subresource }));
  }

  auditLength(): number {
    return this.controlPlane.audit().length;
  }

  /** Grants the rights of an installation, or with `byNamespace` only makes the roles, for `bind`. */
  async #grant(file: string, byNamespace: boolean): Promise<void> {
    const roles = parseAllDocuments(await readFile(file, "utf8"))
      .map((document) => document.toJS() as KubeObject)
      .filter(({ kind }) => kind === "ClusterRole");
    for (const role of roles) {
      await this.client.create(rbac("ClusterRole"), role);
      this.#roles.push(role.metadata.name);
      if (!byNamespace) await this.client.create(rbac("ClusterRoleBinding"), binding(role.metadata.name));
    }
  }

  /** Grants the controller its rights in a namespace. */
  async bind(namespace: string): Promise<void> {
    for (const role of this.#roles) await this.client.create(rbac("RoleBinding"), binding(role, namespace));
  }

  /** Takes the controller's rights in a namespace away. */
  async unbind(namespace: string): Promise<void> {
    for (const name of this.#roles) {
      const found = await this.client.get(rbac("RoleBinding"), { namespace, name });
      await this.client.delete(rbac("RoleBinding"), { namespace, name }, { uid: found!.metadata.uid! });
    }
  }

  /** Says what a failed test may have met: programs of the control plane, pods and learners. */
  describe(): string {
    const pods = this.pods.pods
      .list()
      .map(({ metadata, status }) => `${metadata.namespace}/${metadata.name} ${status?.phase}`);
    return [
      ...this.controlPlane.lastLines(),
      `pods: ${pods.join(", ") || "none"}`,
      `learners: ${[...this.learners.keys()].join(", ") || "none"}`,
      ...(this.#failure === undefined ? [] : [`the simulation failed: ${this.#failure}`]),
    ].join("\n");
  }

  /** A failed look, such as a request without an answer, is repeated by the next one. */
  async #simulate(): Promise<void> {
    const served = new Map<string, string>();
    while (!this.#stopping.signal.aborted) {
      try {
        await this.#look(served);
      } catch (error) {
        this.#failure = error;
      }
      await sleep(20);
    }
  }

  /** Learners answer while their pods run. Actors connect while their pods run, and leave when they are asked to and idle. */
  async #look(served: Map<string, string>): Promise<void> {
    const pods = this.pods.pods.list();
    const runKey = (pod: Pod) => `${pod.metadata.namespace}/${pod.metadata.labels?.[RUN]}`;
    const runs = ({ status, metadata }: Pod) =>
      status?.phase === "Running" &&
      !metadata.deletionTimestamp &&
      // Like the node controller's mark for pods of a silent node.
      !status.conditions?.some(({ type, status, reason }) => type === "Ready" && status === "False" && !reason);
    const learnerPods = pods.filter(
      (pod) => pod.metadata.labels?.[COMPONENT] === "learner" && runs(pod) && !this.mute(pod),
    );
    for (const [key, uid] of served)
      if (!learnerPods.some((pod) => pod.metadata.uid === uid)) {
        this.learners.get(key)?.stop();
        this.learners.delete(key);
        served.delete(key);
      }
    for (const pod of learnerPods) {
      const key = runKey(pod);
      if (served.has(key)) continue;
      const learner = await SimulatedLearner.start(this.client, pod.metadata.namespace!, pod.metadata.labels![RUN]!);
      if (learner === undefined) continue;
      served.set(key, pod.metadata.uid!);
      learner.onDrain = (names) => void this.#leaveIfIdle(pod.metadata.namespace!, learner, names);
      this.learners.set(key, learner);
    }
    for (const [key, learner] of this.learners) {
      const actors = pods.filter(
        (pod) => pod.metadata.labels?.[COMPONENT] === "actor" && runKey(pod) === key && runs(pod),
      );
      const names = new Set(actors.map((pod) => pod.metadata.labels!["batch.kubernetes.io/job-name"]!));
      const known = new Set((learner.status.actors ?? []).map(({ name }) => name!));
      for (const name of names) if (!known.has(name)) learner.connect({ name });
      for (const name of known) if (!names.has(name)) learner.disconnect(name);
    }
  }

  async #leaveIfIdle(namespace: string, learner: SimulatedLearner, names: string[]): Promise<void> {
    for (const name of names) {
      const idle = learner.status.actors?.find((actor) => actor.name === name && !actor.running);
      const pod = this.pods.pods
        .list()
        .find(
          (it) => it.metadata.namespace === namespace && it.metadata.labels?.["batch.kubernetes.io/job-name"] === name,
        );
      if (idle && pod) await this.pods.end(pod, 0);
    }
  }
}

/** Returns whether a Job neither ended nor is being deleted. */
export function isUnfinished({ status, metadata }: Job): boolean {
  const hasEnded = status?.conditions?.some(({ type }) => ["Complete", "Failed"].includes(type));
  return !metadata.deletionTimestamp && !hasEnded;
}

const RBAC = "rbac.authorization.k8s.io";

function rbac(kind: "ClusterRole" | "ClusterRoleBinding" | "RoleBinding"): Resource {
  return { group: RBAC, version: "v1", plural: `${kind.toLowerCase()}s`, kind, namespaced: kind === "RoleBinding" };
}

/** Returns a binding of the role to the controller's user. */
function binding(name: string, namespace?: string): KubeObject {
  return {
    metadata: { name, ...(namespace !== undefined && { namespace }) },
    roleRef: { apiGroup: RBAC, kind: "ClusterRole", name },
    subjects: [{ apiGroup: RBAC, kind: "User", name: USER }],
  } as KubeObject;
}

/** Waits until `look` returns a value and does not throw. @throws its last error after 60 s */
export async function eventually<T>(
  look: () => Promise<T | undefined | false> | T | undefined | false,
  seconds = WAIT_SECONDS,
): Promise<T> {
  const deadline = performance.now() + seconds * 1000;
  let last: unknown = new Error(`it did not happen within ${seconds} s: ${look}`);
  while (performance.now() < deadline) {
    try {
      const found = await look();
      if (found !== undefined && found !== false) return found;
    } catch (error) {
      if (error instanceof ApiError && error.status === 0) throw error;
      last = error;
    }
    await sleep(100);
  }
  throw last;
}
