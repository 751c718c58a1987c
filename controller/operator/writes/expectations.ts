/**
 * Own writes that the caches have not shown yet. While a run has one, none of its objects is created, changed or deleted: a decision from a
 * cache that lacks the last write would be made twice.
 */
import { type KubeObject, keyOf, type Resource } from "../kube/types.ts";

export type Written =
  | { kind: "stored"; resource: Resource; object: KubeObject }
  | { kind: "deleted"; resource: Resource; object: KubeObject };

interface Cached {
  get(resource: Resource, key: string): KubeObject | undefined;
  /** Returns the object's current state on the API server. */
  read(resource: Resource, key: string): Promise<KubeObject | undefined>;
}

/** After this time the API server is asked whether the write is outdated, because an add and a delete may have merged. */
export const CONFIRM_SECONDS = 5;

interface Expectation {
  written: Written;
  sinceMs: number;
}

export class Expectations {
  readonly #cached: Cached;
  readonly #now: () => number;
  /** Expectations by run, then by kind and name. A later write of an object replaces the expectation of an earlier one. */
  readonly #byRun = new Map<string, Map<string, Expectation>>();

  /** @param now returns monotonic milliseconds */
  constructor(cached: Cached, now: () => number) {
    this.#cached = cached;
    this.#now = now;
  }

  /** @param written the object as the API server returned it */
  add(run: string, written: Written): void {
    const expected = this.#byRun.get(run) ?? new Map<string, Expectation>();
    this.#byRun.set(run, expected);
    expected.set(`${written.resource.kind} ${keyOf(written.object)}`, { written, sinceMs: this.#now() });
  }

  forget(run: string): void {
    this.#byRun.delete(run);
  }

  /** @returns the writes that the caches have not shown, e.g. `Job team/quickstart-actor-0-0` */
  unseen(run: string): string[] {
    const expected = this.#byRun.get(run);
    if (!expected) return [];
    for (const [name, { written }] of expected) if (this.#seen(written)) expected.delete(name);
    if (expected.size === 0) this.#byRun.delete(run);
    return [...expected.keys()];
  }

  /**
   * Drops expectations that can no longer be met: the written object was deleted, or another object has its name. Keeps the others, however
   * late the cache is.
   */
  async confirm(run: string): Promise<void> {
    for (const [name, expectation] of this.#byRun.get(run) ?? []) {
      if (this.#now() - expectation.sinceMs < CONFIRM_SECONDS * 1000) continue;
      expectation.sinceMs = this.#now();
      const { resource, object, kind } = expectation.written;
      const key = keyOf(object);
      const live = await this.#cached.read(resource, key);
      const cached = this.#cached.get(resource, key);
      const upToDate = live?.metadata.resourceVersion === cached?.metadata.resourceVersion;
      const overtaken = kind === "stored" ? live?.metadata.uid !== object.metadata.uid && cached === undefined : false;
      if (upToDate || overtaken) this.#byRun.get(run)?.delete(name);
    }
  }

  #seen({ kind, resource, object }: Written): boolean {
    const cached = this.#cached.get(resource, keyOf(object));
    const { uid, resourceVersion } = object.metadata;
    if (kind === "deleted") return cached?.metadata.uid !== uid || cached?.metadata.deletionTimestamp !== undefined;
    if (cached === undefined) return false;
    // Another object with this name is newer than ours, because a cache only moves forward.
    if (cached.metadata.uid !== uid) return isNewer(cached, object);
    return cached.metadata.resourceVersion === resourceVersion || isNewer(cached, object);
  }
}

/** Versions of one kind grow (https://kep.k8s.io/5504). If they are not numbers, only equality counts. */
function isNewer(a: KubeObject, b: KubeObject): boolean {
  const [left, right] = [a, b].map(({ metadata }) => metadata.resourceVersion ?? "");
  return /^\d+$/.test(left!) && /^\d+$/.test(right!) && BigInt(left!) > BigInt(right!);
}
