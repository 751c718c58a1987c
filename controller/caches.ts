/** The caches: one watch for each kind, of TrainingRuns and of what carries longrun's label. */
import { CHILD_SELECTOR, RUN, RUN_UID, type Run } from "./desired/names.ts";
import type { ApiClient } from "./kube/api-client.ts";
import type { KubeMetrics } from "./kube/metrics.ts";
import { Reflector, type ReflectorLog } from "./kube/reflector.ts";
import {
  CONFIG_MAP,
  DEPLOYMENT,
  JOB,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  POD,
  POD_DISRUPTION_BUDGET,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  TRAINING_RUN,
} from "./kube/resources.ts";
import type { KubeObject, Resource } from "./kube/types.ts";
import { type Cache, slimJob, slimPod } from "./observe.ts";

/** A watch that the API server has not fed for so long, bookmarks included, makes the controller not ready. */
const SILENT_SECONDS = 180;

const TRANSFORMS = new Map<Resource, (object: never) => KubeObject>([
  [POD, slimPod],
  [JOB, slimJob],
]);
export const CHILDREN = [
  ...[CONFIG_MAP, DEPLOYMENT, JOB, NETWORK_POLICY, PERSISTENT_VOLUME_CLAIM, POD],
  ...[POD_DISRUPTION_BUDGET, SECRET, SERVICE, SERVICE_ACCOUNT],
];

export interface CachesOptions {
  client: ApiClient;
  /** Absent: all namespaces. */
  namespace?: string | undefined;
  /** The run of this key, or a child of it, has changed. */
  onChange: (key: string) => void;
  metrics: KubeMetrics;
  log: ReflectorLog;
}

export class Caches implements Cache {
  readonly #reflectors = new Map<Resource, Reflector>();

  constructor({ client, namespace, onChange, metrics, log }: CachesOptions) {
    for (const resource of [TRAINING_RUN, ...CHILDREN]) {
      const isRun = resource === TRAINING_RUN;
      const transform = TRANSFORMS.get(resource) as ((object: KubeObject) => KubeObject) | undefined;
      const reflector = new Reflector({
        ...{ client, resource, log, onFault: (kind) => metrics.observeFault(resource.plural, kind) },
        ...(namespace !== undefined && { namespace }),
        ...(!isRun && { labelSelector: CHILD_SELECTOR, indexLabel: RUN_UID }),
        ...(transform && { transform }),
        onChange: (key, object, previous) => {
          const run = isRun ? key : runKeyOf(object ?? previous);
          if (run !== undefined) onChange(run);
        },
      });
      this.#reflectors.set(resource, reflector);
    }
  }

  /** Follows the API server until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    await Promise.all([...this.#reflectors.values()].map((reflector) => reflector.run(signal)));
  }

  /** Resolves when every kind was listed once. */
  async synced(): Promise<void> {
    await Promise.all([...this.#reflectors.values()].map((reflector) => reflector.synced));
  }

  /** Kinds that were not listed yet or are not heard of any more, for people; empty: all is well. */
  faults(): string[] {
    return [...this.#reflectors].flatMap(([{ plural }, reflector]) => {
      if (!reflector.hasSynced)
        return [
          `${plural} are not listed yet: check that the API server is reached, the CRD installed and the role bound`,
        ];
      const silent = reflector.silentSeconds ?? 0;
      return silent > SILENT_SECONDS
        ? [`${plural}: nothing heard from the API server for ${Math.round(silent)} s`]
        : [];
    });
  }

  get(resource: Resource, key: string): never {
    return this.#of(resource).get(key) as never;
  }

  trainingRun(key: string): Run | undefined {
    return this.#of(TRAINING_RUN).get(key) as Run | undefined;
  }

  childrenOf(resource: Resource, runUid: string): never[] {
    return this.#of(resource).byLabel(runUid) as never[];
  }

  #of(resource: Resource): Reflector {
    return this.#reflectors.get(resource)!;
  }
}

function runKeyOf(child: KubeObject | undefined): string | undefined {
  const name = child?.metadata.labels?.[RUN];
  return name === undefined ? undefined : `${child!.metadata.namespace}/${name}`;
}
