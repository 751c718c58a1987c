/**
 * The life of one TrainingRun, the same in every fault test: three actors, then one, suspended, resumed, finished, deleted. And a
 * controller behind a fault proxy that can be killed and restarted. With all faults, a life must leave and create the same as an
 * undisturbed one.
 */
import { KubeConfig } from "@kubernetes/client-node";
import * as names from "../../controller/operator/desired/names.ts";
import type { Job } from "../../controller/operator/kube/resources.ts";
import * as resources from "../../controller/operator/kube/resources.ts";
import { Reflector } from "../../controller/operator/kube/runtime/reflector.ts";
import type { KubeObject, Resource } from "../../controller/operator/kube/types.ts";
import type { Operator } from "../../controller/operator/operator.ts";
import { Phase } from "../controller/simulated-learner.ts";
import { eventually, isUnfinished, type World } from "../controller/world.ts";
import { ApiProxy, Cut } from "./api-proxy.ts";
import type { ApiRequest } from "./api-request.ts";

export const RUN = "life";
/** Enough for long back-offs on a busy machine. */
const STEP_SECONDS = 90;

const SPEC = {
  actors: { min: 0, max: 3, slots: 2, scaleDownSeconds: 1 },
  learner: { storage: { retain: "Never" } },
  stopping: { iterations: 5 },
};
const CHILDREN: Resource[] = [
  ...[resources.CONFIG_MAP, resources.DEPLOYMENT, resources.JOB, resources.NETWORK_POLICY],
  ...[resources.PERSISTENT_VOLUME_CLAIM, resources.POD_DISRUPTION_BUDGET, resources.SECRET],
  ...[resources.SERVICE, resources.SERVICE_ACCOUNT],
];

export interface Remains {
  /** The finished run's status and its children, without parts that always differ: uids, times, keys. */
  finished: unknown;
  /** Objects left after the run is deleted and its children are collected. */
  deleted: string[];
  /** Objects that the controllers created, sorted. */
  creations: string[];
  /** Largest number of simultaneous actors on the API server, without finished ones. */
  mostActors: number;
}

/** Called between the steps of a life, with the controllers. */
export type Meanwhile = (
  step: "three actors" | "one actor" | "suspended" | "resumed",
  controller: Controller,
) => Promise<void>;

export async function live(
  world: World,
  controller: Controller,
  meanwhile: Meanwhile = async () => {},
): Promise<Remains> {
  const actors = watchActors(world, controller.namespace);
  try {
    const remains = await takeSteps(world, controller, meanwhile);
    return { ...remains, mostActors: actors.most() };
  } finally {
    actors.stop(); // a life that fails must not keep the process
  }
}

async function takeSteps(
  world: World,
  controller: Controller,
  meanwhile: Meanwhile,
): Promise<Omit<Remains, "mostActors">> {
  const { namespace } = controller;
  const soon = <T>(look: () => Promise<T | undefined | false>) => eventually(look, STEP_SECONDS);
  const status = () => world.status(namespace, RUN);
  const learner = () => soon(async () => world.learner(namespace, RUN));
  const runningActors = async (count: number) => {
    const { desired, running, replicas } = (await status()).actors ?? {};
    return desired === count && running === count && replicas === count;
  };

  await world.createRun(namespace, RUN, SPEC);
  (await learner()).work(6);
  await meanwhile("three actors", controller);
  await soon(() => runningActors(3));
  (await learner()).work(0, 2);
  await meanwhile("one actor", controller);
  await soon(() => runningActors(1));
  await world.patchRun(namespace, RUN, { suspend: true });
  await meanwhile("suspended", controller);
  await soon(async () => (await status()).phase === "Suspended" && (await world.actors(namespace, RUN)).length === 0);
  await soon(async () => !world.learners.has(`${namespace}/${RUN}`));
  await world.patchRun(namespace, RUN, { suspend: false });
  (await learner()).work(2);
  await meanwhile("resumed", controller);
  await soon(() => runningActors(1));
  await soon(async () => (await status()).images !== undefined);
  (await learner()).say({ phase: Phase.SUCCEEDED, message: "5 iterations", executions: { completed: 9 } });
  await soon(async () => {
    const replicas = (await world.deployment(namespace, RUN))?.spec?.replicas;
    const { phase, actors } = await status();
    return phase === "Succeeded" && replicas === 0 && actors?.replicas === 0;
  });
  // A deleted Job exists until its pods are gone.
  await soon(async () =>
    (await childrenIn(world, namespace)).every((it) => it.metadata.deletionTimestamp === undefined),
  );
  const finished = await remainsOf(world, namespace);
  await controller.settled();
  const run = await world.run(namespace, RUN);
  await world.client.delete(resources.TRAINING_RUN, { namespace, name: RUN }, { uid: run!.metadata.uid });
  await soon(async () => (await leftIn(world, namespace)).length === 0);
  return {
    finished,
    deleted: await leftIn(world, namespace),
    creations: controller.creations.map((name) => name.replace(namespace, "NAMESPACE")).sort(),
  };
}

/** A controller that can be restarted: each start has a proxy of its own, which ends with it. */
export class Controller {
  readonly namespace: string;
  readonly #world: World;
  readonly #configure: (proxy: ApiProxy, controller: Controller) => void;
  readonly #proxies: ApiProxy[] = [];
  #operator: Promise<Operator> | undefined;

  /** @param configure sets the faults of each new proxy */
  static async start(
    world: World,
    configure: (proxy: ApiProxy, controller: Controller) => void = () => {},
  ): Promise<Controller> {
    const controller = new Controller(world, await world.namespace(), configure);
    await controller.start();
    return controller;
  }

  private constructor(world: World, namespace: string, configure: (proxy: ApiProxy, controller: Controller) => void) {
    this.#world = world;
    this.namespace = namespace;
    this.#configure = configure;
  }

  get proxy(): ApiProxy {
    return this.#proxies.at(-1)!;
  }

  get starts(): number {
    return this.#proxies.length;
  }

  async start(prepare: (proxy: ApiProxy) => Promise<void> = async () => {}): Promise<void> {
    const proxy = await ApiProxy.start(this.#world.controlPlane);
    this.#proxies.push(proxy);
    this.#configure(proxy, this);
    await prepare(proxy);
    const config = new KubeConfig();
    config.loadFromFile(await proxy.kubeconfigOf("controller"));
    this.#operator = this.#world.operator({ config, namespaces: [this.namespace] });
    // For a controller that was killed before it was ready.
    this.#operator.catch(() => {});
  }

  /** Like SIGKILL: nothing that it still does reaches the API server, and it receives nothing. */
  kill(): void {
    this.proxy.sever();
    // A controller that was not ready yet is stopped with the world.
    this.#operator?.then((dead) => dead.stop()).catch(() => {});
  }

  async restart(prepare?: (proxy: ApiProxy) => Promise<void>): Promise<void> {
    this.kill();
    await this.start(prepare);
  }

  /** Waits until nothing was written for a second. */
  async settled(): Promise<void> {
    await eventually(() => Date.now() - (this.writes.at(-1)?.atMs ?? 0) > 1000, STEP_SECONDS);
  }

  get writes(): ApiRequest[] {
    return this.#proxies.flatMap(({ writes }) => writes).filter(isReconcileWrite);
  }

  get creations(): string[] {
    return this.#proxies.flatMap(({ creations }) => creations).filter((it) => !it.startsWith("events.k8s.io/"));
  }

  async stop(): Promise<void> {
    this.kill();
    await Promise.all(this.#proxies.map((proxy) => proxy.stop()));
  }
}

/** Returns false for Leases, which belong to the process, and for events, which may be lost. */
export function isReconcileWrite({ isWrite, resource }: ApiRequest): boolean {
  return isWrite && !resource.endsWith("/leases") && !resource.endsWith("/events");
}

/** Breaks the connection of the controller, which is dead. */
export function killedHere(controller: Controller): never {
  controller.kill();
  void controller.start();
  throw new Cut();
}

/** Follows every change of a run's actors. `most` returns the largest number of simultaneous ones. */
function watchActors(world: World, namespace: string): { most: () => number; stop: () => void } {
  const stopping = new AbortController();
  let most = 0;
  const jobs = new Reflector<Job>({
    client: world.client,
    resource: resources.JOB,
    namespace,
    labelSelector: `${names.RUN}=${RUN},${names.COMPONENT}=actor`,
    onChange: () => {
      most = Math.max(most, jobs.list().filter(isUnfinished).length);
    },
  });
  void jobs.run(stopping.signal);
  return { most: () => most, stop: () => stopping.abort() };
}

async function childrenIn(world: World, namespace: string): Promise<KubeObject[]> {
  const all = await Promise.all(
    CHILDREN.map((resource) => world.list(resource, namespace, "app.kubernetes.io/managed-by=longrun")),
  );
  return all.flat();
}

async function leftIn(world: World, namespace: string): Promise<string[]> {
  return (await childrenIn(world, namespace)).map(({ kind, metadata }) => `${kind} ${metadata.name}`);
}

async function remainsOf(world: World, namespace: string): Promise<unknown> {
  const run = (await world.run(namespace, RUN)) as names.Run;
  const children = (await childrenIn(world, namespace)).map(({ kind, metadata, ...rest }) => {
    const { spec, data, rules } = rest as { spec?: object; data?: object; rules?: object };
    const { name, labels, annotations, ownerReferences } = metadata;
    return {
      kind,
      name,
      labels,
      annotations,
      ownerReferences,
      spec,
      data: kind === "Secret" ? Object.keys(data!) : data,
      rules,
    };
  });
  const { conditions, actors, startTime, completionTime, ...status } = run.status!;
  const facts = {
    finalizers: run.metadata.finalizers ?? [],
    status: { ...status, began: Boolean(startTime), ended: Boolean(completionTime) },
    actors: { ...actors, lastScaleTime: "" },
    conditions: conditions!.map(({ type, status, reason, message }) => `${type} ${status} ${reason}: ${message}`),
    children: children.sort((a, b) => `${a.kind} ${a.name}`.localeCompare(`${b.kind} ${b.name}`)),
  };
  // Replaces random values, counters, and values that follow from the namespace's name.
  const text = JSON.stringify(facts)
    .replaceAll(namespace, "NAMESPACE")
    .replace(/[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g, "UID")
    .replace(/\b[0-9a-f]{16}\b/g, "HASH")
    .replace(/"10\.96\.\d+\.\d+"/g, '"ADDRESS"')
    .replace(/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z/g, "TIME")
    .replace(/"deployment.kubernetes.io\/revision":"\d+"/g, '"REVISION":""');
  return JSON.parse(text);
}
