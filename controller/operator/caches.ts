/** The caches: one watch for each kind and namespace, of TrainingRuns and of objects with longrun's label. */
import { fillItems } from "../../crds/item-defaults.ts";
import { CHILD_SELECTOR, RUN, RUN_UID, type Run } from "./desired/names.ts";
import type { Settings } from "./desired/settings.ts";
import type { ApiClient } from "./kube/api-client.ts";
import type { KubeMetrics } from "./kube/metrics.ts";
import {
  JOB,
  PERSISTENT_VOLUME_CLAIM,
  type PersistentVolumeClaim,
  POD,
  REPLICA_SET,
  TRAINING_RUN,
} from "./kube/resources.ts";
import { Reflector, type ReflectorLog } from "./kube/runtime/reflector.ts";
import { type KubeObject, keyOf, parseKey, type Resource } from "./kube/types.ts";
import { slimJob, slimPod, slimReplicaSet } from "./observe.ts";
import { PARTS } from "./parts/index.ts";
import type { Cache } from "./writes/ownership.ts";

/** A watch that has received nothing for this long, not even a bookmark, makes the controller not ready. */
const SILENT_SECONDS = 180;

const TRANSFORMS = new Map<Resource, (object: never) => KubeObject>([
  [TRAINING_RUN, fillItems],
  [POD, slimPod],
  [JOB, slimJob],
  [REPLICA_SET, slimReplicaSet],
]);
/** Returns the kinds of children. */
export function childKinds(settings: Pick<Settings, "kueue">, parts = PARTS): readonly Resource[] {
  const kinds = parts.flatMap((part) => part.kinds?.(settings) ?? []);
  return [...new Set(kinds)].sort((a, b) => a.plural.localeCompare(b.plural));
}

interface CachesOptions {
  client: ApiClient;
  /** Empty: all namespaces. */
  namespaces: readonly string[];
  /** Kinds of children. */
  kinds: readonly Resource[];
  /** The run of this key, or a child of it, has changed. */
  onChange: (key: string) => void;
  metrics: KubeMetrics;
  log: ReflectorLog;
}

/** Key of a kind's reflector for all namespaces. */
const ALL = "";

export class Caches implements Cache {
  /** Reflectors by kind and namespace. */
  readonly #reflectors = new Map<Resource, Map<string, Reflector>>();

  constructor({ namespaces, kinds, ...options }: CachesOptions) {
    for (const resource of [TRAINING_RUN, ...kinds]) {
      const places = namespaces.length === 0 ? [ALL] : namespaces;
      const reflectors = places.map((namespace) => [namespace, this.#follow(resource, namespace, options)] as const);
      this.#reflectors.set(resource, new Map(reflectors));
    }
  }

  /** Follows the API server until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all().map(({ reflector }) => reflector.run(signal)));
  }

  /** Resolves when every kind was listed once. */
  async synced(): Promise<void> {
    await Promise.all(this.#all().map(({ reflector }) => reflector.synced));
  }

  /** Returns, for people, the kinds that were not listed yet or whose watch is silent; empty: none. */
  faults(): string[] {
    return this.#all().flatMap(({ what, reflector }) => {
      if (!reflector.hasSynced)
        return [
          `${what} are not listed yet: check that the API server is reached, the CRD installed and the role bound`,
        ];
      const silent = reflector.silentSeconds ?? 0;
      return silent > SILENT_SECONDS ? [`${what}: nothing heard from the API server for ${Math.round(silent)} s`] : [];
    });
  }

  get(resource: Resource, key: string): never {
    return this.#reflectorOf(resource, parseKey(key).namespace)?.get(key) as never;
  }

  trainingRun(key: string): Run | undefined {
    return this.get(TRAINING_RUN, key);
  }

  /** Returns the keys of a namespace's runs. */
  runsIn(namespace: string): string[] {
    const runs = this.#reflectorOf(TRAINING_RUN, namespace)?.list() ?? [];
    return runs.filter(({ metadata }) => metadata.namespace === namespace).map(keyOf);
  }

  /** Returns the claims of all runs, including deleted runs. */
  claims(): PersistentVolumeClaim[] {
    return [...this.#reflectors.get(PERSISTENT_VOLUME_CLAIM)!.values()].flatMap(
      (reflector) => reflector.list() as PersistentVolumeClaim[],
    );
  }

  ownedBy(resource: Resource, namespace: string, ownerUid: string): never[] {
    return this.#inNamespace(resource, namespace, (reflector) => reflector.byOwner(ownerUid));
  }

  labelledJobs({ metadata: { namespace, uid } }: Run): never[] {
    return this.#inNamespace(JOB, namespace, (reflector) => reflector.byLabel(uid));
  }

  /** Returns the objects in this namespace only: a uid in an object of another namespace was copied, and never counts. */
  #inNamespace(resource: Resource, namespace: string, find: (reflector: Reflector) => KubeObject[]): never[] {
    const reflector = this.#reflectorOf(resource, namespace);
    return (reflector ? find(reflector) : []).filter(({ metadata }) => metadata.namespace === namespace) as never[];
  }

  #reflectorOf(resource: Resource, namespace = ALL): Reflector | undefined {
    const reflectors = this.#reflectors.get(resource)!;
    return reflectors.get(ALL) ?? reflectors.get(namespace);
  }

  #follow(
    resource: Resource,
    namespace: string,
    { client, onChange, metrics, log }: Omit<CachesOptions, "namespaces" | "kinds">,
  ): Reflector {
    const isRun = resource === TRAINING_RUN;
    const transform = TRANSFORMS.get(resource) as ((object: KubeObject) => KubeObject) | undefined;
    return new Reflector({
      ...{ client, resource, log, onFault: (kind) => metrics.observeFault(resource.plural, kind) },
      ...(namespace !== ALL && { namespace }),
      ...(!isRun && { labelSelector: CHILD_SELECTOR }),
      ...(resource === JOB && { indexLabel: RUN_UID }),
      ...(transform && { transform }),
      onChange: (key, object, previous) => {
        const run = isRun ? key : runKeyOf(object ?? previous);
        // A label only triggers a reconcile of the run that it names; no decision depends on the label.
        if (run !== undefined && (isRun || this.trainingRun(run))) onChange(run);
      },
    });
  }

  #all(): { what: string; reflector: Reflector }[] {
    return [...this.#reflectors].flatMap(([{ plural }, reflectors]) =>
      [...reflectors].map(([namespace, reflector]) => ({
        what: namespace === ALL ? plural : `${plural} of namespace ${namespace}`,
        reflector,
      })),
    );
  }
}

function runKeyOf(child: KubeObject | undefined): string | undefined {
  const name = child?.metadata.labels?.[RUN];
  return name === undefined ? undefined : `${child!.metadata.namespace}/${name}`;
}
