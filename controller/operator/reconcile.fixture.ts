/** A cluster for tests of a whole reconcile. */
import { messages } from "../../proto/service.ts";
import { Claims } from "./claims/claims.ts";
import type { Context } from "./context.ts";
import { DEFAULT_SETTINGS } from "./desired/settings.fixture.ts";
import type { KubeObject } from "./kube/types.ts";
import { Memories } from "./memory.ts";
import type { AnyPart } from "./part.ts";
import { PARTS } from "./parts/index.ts";
import { reconcile } from "./reconcile.ts";
import { at, linkOf, NOW_MS, type runOf } from "./run.fixture.ts";

export const KEY = "team/quick";

export const owned = (name: string, ownerUid: string) => ({
  ...{ name, namespace: "team", uid: `uid-${name}`, resourceVersion: "1", creationTimestamp: at(-600) },
  ownerReferences: [{ uid: ownerUid, controller: true }],
});
type Owned = { metadata: ReturnType<typeof owned> };

/**
 * Returns a cluster that accepts every write and stores none. `children` are the run's, by kind; its learner executes programs. `stored`:
 * what the API server has and the cache lacks.
 */
export function takingCluster(
  run: ReturnType<typeof runOf>,
  children: Record<string, Owned[]> = {},
  { parts = PARTS, stored = {} }: { parts?: readonly AnyPart[]; stored?: Record<string, Owned[]> } = {},
) {
  const deleted: string[] = [];
  /** Kinds. */
  const dryRuns: string[] = [];
  const applied: { kind: string; object: KubeObject }[] = [];
  /** The learner's replicas, as applied. */
  const replicas: number[] = [];
  const suspended: string[] = [];
  let nowMs = NOW_MS;
  const store = async (
    { kind }: { kind: string },
    object: { metadata?: object; spec?: { replicas?: number } },
    { dryRun = false } = {},
  ) => {
    if (dryRun) dryRuns.push(kind);
    if (!dryRun) applied.push({ kind, object: object as KubeObject });
    if (kind === "Deployment" && !dryRun) replicas.push(object.spec!.replicas!);
    return { ...object, metadata: { ...object.metadata, uid: "1", resourceVersion: "1" } };
  };
  const nothing = () => {};
  const context = {
    cache: {
      trainingRun: () => run,
      get: ({ kind }: { kind: string }, key: string) =>
        children[kind]?.find(({ metadata }) => key === `team/${metadata.name}`),
      ownedBy: ({ kind }: { kind: string }, _: string, uid: string) =>
        (children[kind] ?? []).filter(({ metadata }) => metadata.ownerReferences[0]!.uid === uid),
      labelledJobs: () => [],
    },
    client: {
      get: async ({ kind }: { kind: string }, { name }: { name: string }) =>
        kind === "TrainingRun" ? run : stored[kind]?.find(({ metadata }) => metadata.name === name),
      list: async () => ({ items: [] }),
      ...{ create: store, apply: store, mergePatch: async () => ({ metadata: owned("quick", "") }), hasSpare: true },
      delete: async ({ kind }: { kind: string }, { name }: { name: string }) => void deleted.push(`${kind} ${name}`),
    },
    links: {
      ...{ observed: () => linkOf({ phase: messages.Phase.EXECUTING }), drop: nothing, ensure: nothing },
      ...{ drainActors: async () => {}, reportTerminations: async () => {} },
      suspend: (_: string, { reason }: { reason: string }) => {
        suspended.push(reason);
        return new Promise(() => {}); // the checkpoint is never written
      },
    },
    runtimes: { get: () => undefined, refusal: undefined },
    expectations: { confirm: async () => {}, unseen: () => [], add: nothing, forget: nothing },
    metrics: new Proxy({}, { get: () => nothing }),
    claims: new Claims({ client: { get: async () => undefined }, identity: undefined, now: () => nowMs }),
    ...{ memories: new Memories(), settings: DEFAULT_SETTINGS, events: { record: nothing }, wake: nothing },
    ...{ log: { debug: nothing, info: nothing, warn: nothing }, now: () => nowMs },
  } as unknown as Context;
  const lookAt = (seconds: number) => {
    nowMs = NOW_MS + seconds * 1000;
    return reconcile(KEY, context, parts);
  };
  return { deleted, applied, dryRuns, replicas, suspended, lookAt };
}
