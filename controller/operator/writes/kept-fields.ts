/** Compares what was asked with what the API server stores, for each child of a run (dropped.ts). */
import { COMPONENT, digestOf, type Run, SPEC_HASH } from "../desired/names.ts";
import type { ApiClient } from "../kube/api-client.ts";
import { ApiError } from "../kube/errors.ts";
import { DEPLOYMENT, JOB } from "../kube/resources.ts";
import type { KubeObject, Resource } from "../kube/types.ts";
import type { Finding } from "../status/conditions.ts";
import { droppedFields, droppedFinding } from "./dropped.ts";
import { BlockedError } from "./refusals.ts";

/** What the API server has kept of each child's content, by kind and name; of Jobs, by component. */
export type Kept = Map<string, { content: string; generation: number; dropped: Finding | undefined; blocks: boolean }>;

/** Kinds whose pods start at once: the API server is asked whether it keeps every field before the object is stored. */
const STARTS_PODS: readonly Resource[] = [DEPLOYMENT, JOB];

export class KeptFields {
  readonly #run: Run;
  readonly #client: Pick<ApiClient, "serverVersion">;
  readonly #kept: Kept;

  constructor(run: Run, client: Pick<ApiClient, "serverVersion">, kept: Kept) {
    this.#run = run;
    this.#client = client;
    this.#kept = kept;
  }

  /** Returns the first finding about fields that the API server does not store. */
  dropped(): Finding | undefined {
    const { generation } = this.#run.metadata;
    return [...this.#kept.values()].find((it) => it.generation === generation && it.dropped)?.dropped;
  }

  /**
   * Asks the API server, once for each content, whether it would store every field of a child with pods. The write itself reports all else
   * that is wrong: a webhook may not support a dry run.
   *
   * @throws BlockedError if an essential field would be dropped
   */
  async ask(resource: Resource, desired: KubeObject, dryRun: () => Promise<KubeObject>): Promise<void> {
    const kept = this.#kept.get(keptName(resource, desired));
    if (!STARTS_PODS.includes(resource) || (kept?.content === contentHash(desired) && !kept.blocks)) return;
    const answer = await dryRun().catch((error) => {
      if (error instanceof ApiError && error.status >= 400) return undefined;
      throw error;
    });
    if (answer) await this.check(resource, desired, answer);
  }

  /** Remembers which fields `stored` lacks. @throws BlockedError if one of them is essential */
  async check(resource: Resource, desired: KubeObject, stored: KubeObject): Promise<void> {
    const name = keptName(resource, desired);
    const content = contentHash(desired);
    const known = this.#kept.get(name);
    const fields = droppedFields(desired, stored);
    let dropped = fields.length > 0 && known?.content === content ? known.dropped : undefined;
    if (fields.length > 0 && !dropped) {
      const version = await this.#client.serverVersion();
      dropped = droppedFinding(resource, desired, fields, { version, spec: this.#run.spec });
    }
    const blocks = STARTS_PODS.includes(resource) && fields.some(({ isEssential }) => isEssential);
    this.#kept.set(name, { content, generation: this.#run.metadata.generation, dropped, blocks });
    if (dropped && blocks) throw new BlockedError(dropped.reason, dropped.message);
  }
}

/** Actors have many Jobs with the same content. */
function keptName({ kind }: Resource, { metadata: { name, labels } }: KubeObject): string {
  return `${kind} ${kind === JOB.kind ? labels?.[COMPONENT] : name}`;
}

const contentHash = (object: KubeObject): string => object.metadata.annotations?.[SPEC_HASH] ?? digestOf(object);
