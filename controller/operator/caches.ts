/**
 * The caches: one watch for each kind and namespace, of TrainingRuns and of objects with longrun's label. Each namespace is served by itself:
 * from the time when all its kinds are listed, whatever the state of the others.
 */
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
  log: ReflectorLog & { info(fields: object, message: string): void };
}

/** Name of the place that has all namespaces. */
const ALL = "";

/** The reflectors of one namespace, or of all, by kind. */
interface Place {
  namespace: string;
  reflectors: ReadonlyMap<Resource, Reflector>;
  /** Whether every kind has been listed. */
  isListed: boolean;
  /** The API server's answer to a list or watch that it refuses now. */
  refusal: string | undefined;
  /** Whether the log says that it is not served. */
  isTold: boolean;
}

export class Caches implements Cache {
  readonly #places: ReadonlyMap<string, Place>;
  readonly #options: CachesOptions;
  readonly #synced = Promise.withResolvers<void>();

  constructor(options: CachesOptions) {
    this.#options = options;
    const { namespaces, kinds } = options;
    const names = namespaces.length === 0 ? [ALL] : namespaces;
    this.#places = new Map(
      names.map((namespace) => {
        const of = (resource: Resource) => [resource, this.#follow(resource, namespace)] as const;
        const reflectors = new Map([TRAINING_RUN, ...kinds].map(of));
        return [namespace, { namespace, reflectors, isListed: false, refusal: undefined, isTold: false }];
      }),
    );
    for (const namespace of namespaces) options.metrics.observeServed(namespace, false);
  }

  /** Follows the API server until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all(this.#all().map(({ reflector }) => reflector.run(signal)));
  }

  /** Resolves when a namespace is listed, and each other one is listed or refused. */
  async synced(): Promise<void> {
    await this.#synced.promise;
  }

  /**
   * Returns, for people, the kinds that were not listed yet or whose watch is silent; empty: none. Refused namespaces count only if no other is
   * served.
   */
  faults(): string[] {
    const isServed = [...this.#places.values()].some(({ isListed, refusal }) => isListed && refusal === undefined);
    return this.#all().flatMap(({ what, reflector, place }) => {
      if (isServed && place.refusal !== undefined) return [];
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

  /** Returns every run. */
  runs(): Run[] {
    return [...this.#places.values()].flatMap(({ reflectors }) => reflectors.get(TRAINING_RUN)!.list() as Run[]);
  }

  /** Returns the claims of all runs, including deleted runs, in namespaces whose runs are known. */
  claims(): PersistentVolumeClaim[] {
    return [...this.#places.values()].flatMap(({ isListed, reflectors }) =>
      isListed ? (reflectors.get(PERSISTENT_VOLUME_CLAIM)!.list() as PersistentVolumeClaim[]) : [],
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
    return this.#placeOf(namespace)?.reflectors.get(resource);
  }

  #placeOf(namespace = ALL): Place | undefined {
    return this.#places.get(ALL) ?? this.#places.get(namespace);
  }

  #follow(resource: Resource, namespace: string): Reflector {
    const { client, onChange, metrics, log } = this.#options;
    const isRun = resource === TRAINING_RUN;
    const transform = TRANSFORMS.get(resource) as ((object: KubeObject) => KubeObject) | undefined;
    return new Reflector({
      client,
      resource,
      log,
      onFault: (kind) => metrics.observeFault(resource.plural, kind),
      ...(namespace !== ALL && { namespace }),
      ...(!isRun && { labelSelector: CHILD_SELECTOR }),
      ...(resource === JOB && { indexLabel: RUN_UID }),
      ...(transform && { transform }),
      onState: () => this.#judge(this.#places.get(namespace)!),
      onChange: (key, object, previous) => {
        if (!this.#places.get(namespace)!.isListed) return; // its runs are added when it is
        const run = isRun ? key : runKeyOf(object ?? previous);
        // A label only triggers a reconcile of the run that it names; no decision depends on the label.
        if (run !== undefined && (isRun || this.trainingRun(run))) onChange(run);
      },
    });
  }

  /** Notes whether a namespace is served, and adds its runs when it is listed. */
  #judge(place: Place): void {
    const { namespace, reflectors } = place;
    const { metrics, log, onChange } = this.#options;
    const wasListed = place.isListed;
    const all = [...reflectors.values()];
    place.refusal = all.find(({ refusal }) => refusal !== undefined)?.refusal;
    place.isListed ||= all.every(({ hasSynced }) => hasSynced);
    if (place.isListed && !wasListed) for (const run of reflectors.get(TRAINING_RUN)!.list()) onChange(keyOf(run));
    const places = [...this.#places.values()];
    const isSettled = places.every(({ isListed, refusal }) => isListed || refusal !== undefined);
    if (isSettled && places.some(({ isListed }) => isListed)) this.#synced.resolve();
    if (namespace === ALL) return;
    const isServed = place.isListed && place.refusal === undefined;
    metrics.observeServed(namespace, isServed);
    if (place.refusal !== undefined && !place.isTold) log.warn({ namespace, error: place.refusal }, NOT_SERVED);
    if (isServed && place.isTold) log.info({ namespace }, "the namespace is served");
    place.isTold = !isServed && (place.isTold || place.refusal !== undefined);
  }

  #all(): { what: string; reflector: Reflector; place: Place }[] {
    return [...this.#places.values()].flatMap((place) =>
      [...place.reflectors].map(([{ plural }, reflector]) => ({
        reflector,
        place,
        what: place.namespace === ALL ? plural : `${plural} of namespace ${place.namespace}`,
      })),
    );
  }
}

const NOT_SERVED =
  "the namespace is not served until the API server allows it; the others are: create it and bind the controller's role there, or leave it out of --namespace (chart: watch.namespaces)";

function runKeyOf(child: KubeObject | undefined): string | undefined {
  const name = child?.metadata.labels?.[RUN];
  return name === undefined ? undefined : `${child!.metadata.namespace}/${name}`;
}
