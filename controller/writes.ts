/** Writes of one run's objects: only where something differs, with preconditions, and expected in the caches after. */

import { firstDifference, wholeDifference } from "./compare.ts";
import { digestOf, RUN, type Run, SPEC_HASH } from "./desired/names.ts";
import type { Expectations } from "./expectations.ts";
import type { ApiClient } from "./kube/api-client.ts";
import { ApiError, isAlreadyExists } from "./kube/errors.ts";
import { JOB, TRAINING_RUN } from "./kube/resources.ts";
import { type KubeObject, keyOf, type Resource } from "./kube/types.ts";
import { type Cache, isChildOf, mayTake } from "./ownership.ts";
import { BlockedError } from "./refusals.ts";

export type Client = Pick<ApiClient, "get" | "list" | "create" | "apply" | "mergePatch" | "delete" | "hasSpare">;

/** What the API server made of what was applied, by object: a webhook's or a person's additions are not fought over. */
export type Applied = Map<string, { desired: string; answer: string }>;

/** Repaired: somebody else had changed it. Changed: something else is desired than before. */
export type WriteResult = { kind: "same" | "created" } | { kind: "repaired" | "changed"; difference: string };

export class Writes {
  readonly #run: Run;
  readonly #key: string;
  readonly #client: Client;
  readonly #cache: Cache;
  readonly #expectations: Expectations;
  readonly #applied: Applied;
  #confirmed: Promise<void> | undefined;

  constructor(run: Run, around: { client: Client; cache: Cache; expectations: Expectations; applied: Applied }) {
    this.#run = run;
    this.#key = keyOf(run);
    this.#client = around.client;
    this.#cache = around.cache;
    this.#expectations = around.expectations;
    this.#applied = around.applied;
  }

  /**
   * Server-side apply of a child, if it is not as desired; before that a patch, where somebody has added to what is wholly
   * the controller's. One that is to be made is looked for first: apply would take
   * over an object that somebody else has by that name.
   *
   * @throws BlockedError | ApiError (409 if it was changed since it was read)
   */
  async apply(resource: Resource, desired: KubeObject): Promise<WriteResult> {
    const key = keyOf(desired);
    const cached = this.#cache.get(resource, key);
    const observed = cached ?? (await this.#client.get(resource, desired.metadata as { name: string }));
    if (observed && !mayTake(this.#run, observed)) throw this.#taken(resource, observed);
    if (observed?.metadata.deletionTimestamp)
      throw new BlockedError(
        "NameTaken",
        `${resource.kind} ${observed.metadata.name} is being deleted; it is made again when it is gone`,
      );
    const whole = observed && wholeDifference(resource.kind, desired, observed);
    const difference = whole?.difference ?? (observed && firstDifference(desired, observed));
    const name = `${resource.kind} ${key}`;
    if (observed && (difference === undefined || this.#isAnswer(name, desired, observed))) {
      if (!this.#applied.has(name)) this.#applied.set(name, { desired: digestOf(desired), answer: "" });
      return { kind: "same" };
    }
    if (!observed) await this.#confirmRun();
    const replaced = whole && (await this.#client.mergePatch(resource, ...patchOf(observed, whole.patch)));
    const isDone = replaced !== undefined && firstDifference(desired, replaced) === undefined;
    const stored = isDone ? replaced : await this.#store(resource, desired, replaced ?? observed);
    const known = this.#applied.get(name)?.desired === digestOf(desired);
    this.#applied.set(name, { desired: digestOf(desired), answer: contentOf(stored) });
    if (stored.metadata.resourceVersion !== observed?.metadata.resourceVersion) this.#expect(resource, stored);
    if (!observed) return { kind: "created" };
    return { kind: known ? "repaired" : "changed", difference: difference! };
  }

  /**
   * An apply lays the lists that are desired over others' items. Where that makes something invalid, such as two ports of
   * one name, the lists are replaced.
   */
  async #store(resource: Resource, desired: KubeObject, observed: KubeObject | undefined): Promise<KubeObject> {
    try {
      return await this.#client.apply(resource, withVersionOf(observed, desired));
    } catch (error) {
      const { spec } = desired as { spec?: unknown };
      if (!(error instanceof ApiError && error.status === 422) || !observed || !spec) throw error;
      return this.#client.mergePatch(resource, ...patchOf(observed, { spec }));
    }
  }

  /**
   * Makes a child, unless it is there: the cache is late then, or lacks it for want of the label that it is watched by.
   *
   * @throws BlockedError where somebody else has an object of that name | ApiError
   */
  async create(resource: Resource, object: KubeObject): Promise<void> {
    await this.#confirmRun();
    try {
      this.#expect(resource, await this.#client.create(resource, object));
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const found = await this.#client.get(resource, object.metadata as { name: string });
      if (!found) throw error; // gone again: the next try makes it
      if (!isChildOf(this.#run, found)) throw this.#taken(resource, found);
      const { labels } = object.metadata;
      if (firstDifference(labels, found.metadata.labels) === undefined) this.#expect(resource, found);
      else await this.patch(resource, found, { metadata: { labels } });
    }
  }

  /**
   * A child that is missing may have been collected with its run, whose end the cache has not seen yet: before anything
   * is made, the API server is asked, once for all writes of this look.
   *
   * @throws ApiError
   */
  #confirmRun(): Promise<void> {
    this.#confirmed ??= (async () => {
      const { name, namespace, uid } = this.#run.metadata;
      const run = await this.#client.get(TRAINING_RUN, { name, namespace: namespace! });
      if (run?.metadata.uid === uid && !run?.metadata.deletionTimestamp) return;
      const message = `TrainingRun ${this.#key} is deleted: nothing is made for it any more`;
      throw new ApiError(message, { status: 409, reason: "Conflict" });
    })();
    return this.#confirmed;
  }

  /** A merge patch of what was read: refused if it has changed since. @returns the object as stored */
  async patch<T extends KubeObject>(
    resource: Resource,
    { metadata }: T,
    patch: { metadata?: object; [field: string]: unknown },
    options: { subresource?: "status" } = {},
  ): Promise<T> {
    const stored = await this.#client.mergePatch<T>(resource, ...patchOf({ metadata }, patch), options);
    this.#expect(resource, stored);
    return stored;
  }

  async applyStatus(resource: Resource, object: KubeObject, status: object): Promise<void> {
    const { name, namespace, uid, resourceVersion } = object.metadata;
    const body = { metadata: { name, namespace, uid, resourceVersion }, status } as unknown as KubeObject;
    this.#expect(resource, await this.#client.apply(resource, body, { subresource: "status" }));
  }

  /** With its pods. Refused if it has changed since it was read. */
  async remove(resource: Resource, object: KubeObject, options: { gracePeriodSeconds?: number } = {}): Promise<void> {
    const { name, namespace, uid, resourceVersion } = object.metadata;
    const preconditions = { uid: uid!, ...(resourceVersion !== undefined && { resourceVersion }) };
    // A Job stays until its pods are gone: by then nobody else could tell whose they are.
    const propagationPolicy = resource === JOB ? "Foreground" : "Background";
    const all = { ...preconditions, propagationPolicy, ...options } as const;
    await this.#client.delete(resource, { name, namespace: namespace! }, all);
    this.#expectations.add(this.#key, { kind: "deleted", resource, object });
  }

  #expect(resource: Resource, object: KubeObject): void {
    this.#expectations.add(this.#key, { kind: "stored", resource, object });
  }

  #isAnswer(name: string, desired: KubeObject, observed: KubeObject): boolean {
    const applied = this.#applied.get(name);
    return applied?.desired === digestOf(desired) && applied.answer === contentOf(observed);
  }

  #taken({ kind }: Resource, { metadata: { name, labels } }: KubeObject): BlockedError {
    const earlier = labels?.[RUN] === this.#run.metadata.name;
    return new BlockedError(
      "NameTaken",
      earlier
        ? `${kind} ${name} is left of an earlier TrainingRun of this name: wait for it to be collected, or kubectl delete it`
        : `${kind} ${name} is there already and not longrun's: delete it, or give the TrainingRun another name`,
    );
  }
}

/** The arguments of a merge patch that is refused if the object has changed since it was read. */
function patchOf(
  { metadata: { name, namespace, uid, resourceVersion } }: KubeObject,
  patch: { metadata?: object; [field: string]: unknown },
): [key: { name: string; namespace: string }, patch: object] {
  return [
    { name, namespace: namespace! },
    { ...patch, metadata: { ...patch.metadata, uid, resourceVersion } },
  ];
}

/** What is applied, with the object that it was decided on as a precondition. */
function withVersionOf(observed: KubeObject | undefined, desired: KubeObject): KubeObject {
  if (!observed) return desired;
  const { uid, resourceVersion } = observed.metadata;
  return { ...desired, metadata: { ...desired.metadata, uid: uid!, resourceVersion: resourceVersion! } };
}

/** What of an object can be desired: no status, no bookkeeping. (Deployments have some in their annotations.) */
function contentOf(object: KubeObject): string {
  const { metadata, status: _, ...rest } = object as KubeObject & { status?: unknown };
  const { labels, annotations, ownerReferences } = metadata;
  return digestOf({ ...rest, labels, hash: annotations?.[SPEC_HASH], ownerReferences });
}
