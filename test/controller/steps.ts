/** The World of a test file's process, and common steps for tests of one run, which is called `run` by default. */
import { after, afterEach, before, type TestContext } from "node:test";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import type { Operator, OperatorOptions } from "../../controller/operator/operator.ts";
import { type ConditionType, findCondition } from "../../controller/operator/status/conditions.ts";
import { CONTROL_PLANE } from "../cluster/binaries.ts";
import { controlPlaneUnavailable } from "../cluster/control-plane.ts";
import { eventually, USER, World, type WorldParts } from "./world.ts";

/** Why this machine cannot run a World, or false. */
export const skip = controlPlaneUnavailable(CONTROL_PLANE) ?? false;
export let world: World;
/** The controller under test. */
export let operator: Operator | undefined;

export interface WorldOptions {
  /** Settings of the controller; false: the tests start controllers themselves. */
  controller?: Partial<OperatorOptions> | false;
  parts?: WorldParts;
  /** Called before the first test. */
  ready?: () => Promise<void> | void;
}

/** Starts a World and its controller before the file's tests, and stops both afterwards. */
export function useWorld({ controller = {}, parts, ready }: WorldOptions = {}): void {
  // One hook: Node starts all hooks of a file at once.
  before(async () => {
    if (skip) return;
    world = await World.start(parts);
    if (controller) operator = await world.operator(controller);
    await ready?.();
  });
  afterEach((context) => {
    // The types do not have `passed` yet.
    if (world && !(context as TestContext & { passed: boolean }).passed)
      (context as TestContext).diagnostic(world.describe());
  });
  after(() => world?.stop());
}

/** Stops the controller, and starts another one, which knows only the API server's state. */
export async function restartOperator(options: Partial<OperatorOptions> = {}): Promise<void> {
  await operator?.stop();
  operator = await world.operator(options);
}

/** Grants the controllers of the World a right in all namespaces, as a further part of an installation does. */
export async function grant(name: string, rule: { apiGroups: string[]; resources: string[]; verbs: string[] }) {
  const rbac = { group: "rbac.authorization.k8s.io", version: "v1", namespaced: false };
  const create = (plural: string, kind: string, object: object) =>
    world.client.create({ ...rbac, plural, kind }, { metadata: { name }, ...object } as unknown as KubeObject);
  await create("clusterroles", "ClusterRole", { rules: [rule] });
  await create("clusterrolebindings", "ClusterRoleBinding", {
    roleRef: { apiGroup: rbac.group, kind: "ClusterRole", name },
    subjects: [{ apiGroup: rbac.group, kind: "User", name: USER }],
  });
}

export const conditionOf = async (namespace: string, type: ConditionType, name = "run") =>
  findCondition((await world.status(namespace, name)).conditions, type);

/** Waits until the controller is connected to the run's learner. */
export const answers = (namespace: string, name = "run") =>
  eventually(async () => {
    const available = (await conditionOf(namespace, "LearnerAvailable", name))?.status === "True";
    return available && world.learners.get(`${namespace}/${name}`);
  });

/** Creates a namespace with a run, and waits until its learner answers. */
export async function start(spec: Record<string, unknown> = {}, name = "run") {
  const namespace = await world.namespace();
  const run = await world.createRun(namespace, name, spec);
  return { namespace, name, run, learner: await answers(namespace, name) };
}

export const hasActors = (namespace: string, count: number, name = "run") =>
  eventually(async () => {
    const jobs = await world.actors(namespace, name);
    return jobs.length === count && jobs;
  });

export const hasReason = (namespace: string, type: ConditionType, reason: string) =>
  eventually(async () => {
    const found = await conditionOf(namespace, type);
    return found?.reason === reason && found;
  });

export const hasEvent = (namespace: string, pattern: RegExp) =>
  eventually(async () => (await world.events(namespace)).find((text) => pattern.test(text)));
