/** Writes one run's objects: only if something differs, with preconditions, and with an expectation for the caches. */

import { digestOf, RUN, type Run, SPEC_HASH } from "../desired/names.ts";
import type { ApiClient } from "../kube/api-client.ts";
import { ApiError, isAlreadyExists } from "../kube/errors.ts";
import { JOB, TRAINING_RUN } from "../kube/resources.ts";
import { controllerUid } from "../kube/runtime/owner-index.ts";
import { type KubeObject, keyOf, type Resource } from "../kube/types.ts";
import { firstDifference, wholeDifference } from "./compare.ts";
import type { Expectations } from "./expectations.ts";
import { type Kept, KeptFields } from "./kept-fields.ts";
import { type Cache, isChildOf, mayTake } from "./ownership.ts";
import { BlockedError } from "./refusals.ts";

export type Client = Pick<
  ApiClient,
  "get" | "list" | "create" | "apply" | "mergePatch" | "delete" | "hasSpare" | "serverVersion"
>;

/** The API server's answer to each applied object, so that additions by a webhook or a person are not overwritten for ever. */
export type Applied = Map<string, { desired: string; answer: string }>;

/** repaired: another client had changed the object. changed: the desired object has changed. */
/** found: it was there, although the cache lacks it, and was left as it is. */
type WriteResult = { kind: "same" | "created" | "found" } | { kind: "repaired" | "changed"; difference: string };

export class Writes {
  readonly #run: Run;
  readonly #key: string;
  readonly #client: Client;
  readonly #cache: Cache;
  readonly #expectations: Expectations;
  readonly #applied: Applied;
  /** Which fields the API server does not store. */
  readonly fields: KeptFields;
  #confirmed: Promise<void> | undefined;

  constructor(
    run: Run,
    around: { client: Client; cache: Cache; expectations: Expectations; applied: Applied; kept: Kept },
  ) {
    this.#run = run;
    this.#key = keyOf(run);
    this.#client = around.client;
    this.#cache = around.cache;
    this.#expectations = around.expectations;
    this.#applied = around.applied;
    this.fields = new KeptFields(run, around.client, around.kept);
  }

  /**
   * Applies a child (server-side apply) if it is not as desired. Before that, a patch replaces the fields that the controller owns
   * completely, if others added to them. Reads a missing child from the API server first, because apply would take over another owner's
   * object with that name.
   *
   * @param options.onlyNew leaves an object that the cache lacks as it is: the answer to its creation may have been lost
   * @throws BlockedError | ApiError (409 if it was changed since it was read)
   */
  async apply(resource: Resource, desired: KubeObject, { onlyNew = false } = {}): Promise<WriteResult> {
    const key = keyOf(desired);
    const cached = this.#cache.get(resource, key);
    const observed = cached ?? (await this.#client.get(resource, desired.metadata as { name: string }));
    if (observed && !mayTake(this.#run, observed)) throw this.#taken(resource, observed);
    if (observed?.metadata.deletionTimestamp)
      throw new BlockedError(
        "NameTaken",
        `${resource.kind} ${observed.metadata.name} is being deleted; it is created again when it is gone`,
      );
    if (observed && !cached && onlyNew) {
      this.#expect(resource, observed);
      return { kind: "found" };
    }
    const whole = observed && wholeDifference(resource.kind, desired, observed);
    const difference = whole?.difference ?? (observed && firstDifference(desired, observed));
    const name = `${resource.kind} ${key}`;
    if (observed && (difference === undefined || this.#isAnswer(name, desired, observed))) {
      if (!this.#applied.has(name)) this.#applied.set(name, { desired: digestOf(desired), answer: "" });
      if (difference !== undefined) await this.fields.check(resource, desired, observed);
      return { kind: "same" };
    }
    if (!observed) await this.#confirmRun();
    await this.fields.ask(resource, desired, () =>
      this.#client.apply(resource, withVersionOf(observed, desired), { dryRun: true }),
    );
    const replaced = whole && (await this.#client.mergePatch(resource, ...patchOf(observed, whole.patch)));
    const isDone = replaced !== undefined && firstDifference(desired, replaced) === undefined;
    const stored = isDone ? replaced : await this.#store(resource, desired, replaced ?? observed);
    const known = this.#applied.get(name)?.desired === digestOf(desired);
    this.#applied.set(name, { desired: digestOf(desired), answer: contentOf(stored) });
    if (stored.metadata.resourceVersion !== observed?.metadata.resourceVersion) this.#expect(resource, stored);
    await this.fields.check(resource, desired, stored);
    if (!observed) return { kind: "created" };
    return { kind: known ? "repaired" : "changed", difference: difference! };
  }

  /**
   * Apply merges desired lists with items that others added. If the result is invalid, for example two ports with one name, the lists are
   * replaced.
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
   * Creates a child unless it exists: the cache may be late, or lack it because it misses the watched label.
   *
   * @throws BlockedError if another owner's object has that name | ApiError
   */
  async create(resource: Resource, object: KubeObject): Promise<void> {
    await this.#confirmRun();
    await this.fields.ask(resource, object, () => this.#client.create(resource, object, { dryRun: true }));
    try {
      const stored = await this.#client.create(resource, object);
      this.#expect(resource, stored);
      await this.fields.check(resource, object, stored);
    } catch (error) {
      if (!isAlreadyExists(error)) throw error;
      const found = await this.#client.get(resource, object.metadata as { name: string });
      if (!found) throw error; // deleted again: the next try creates it
      if (!isChildOf(this.#run, found)) throw this.#taken(resource, found);
      const { labels } = object.metadata;
      if (firstDifference(labels, found.metadata.labels) === undefined) this.#expect(resource, found);
      else await this.patch(resource, found, { metadata: { labels } });
    }
  }

  /**
   * Asks the API server whether the run still exists, once for all writes of a reconcile, before a missing child is created: the garbage
   * collector may have deleted the child with its run, and the cache may not have seen it yet.
   *
   * @throws ApiError
   */
  #confirmRun(): Promise<void> {
    this.#confirmed ??= (async () => {
      const { name, namespace, uid } = this.#run.metadata;
      const run = await this.#client.get(TRAINING_RUN, { name, namespace: namespace! });
      if (run?.metadata.uid === uid && !run?.metadata.deletionTimestamp) return;
      const message = `TrainingRun ${this.#key} is deleted: no object is created for it any more`;
      throw new ApiError(message, { status: 409, reason: "Conflict" });
    })();
    return this.#confirmed;
  }

  /** Applies a merge patch; refused if the object has changed since it was read. @returns the object as stored */
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

  /** Deletes a Job with its pods. Refused if the Job has changed since it was read. */
  async remove(resource: Resource, object: KubeObject, options: { gracePeriodSeconds?: number } = {}): Promise<void> {
    const { name, namespace, uid, resourceVersion } = object.metadata;
    const preconditions = { uid: uid!, ...(resourceVersion !== undefined && { resourceVersion }) };
    // The Job stays until its pods are gone, because only the Job identifies them.
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

  #taken({ kind }: Resource, object: KubeObject): BlockedError {
    const { name, labels } = object.metadata;
    const earlier = labels?.[RUN] === this.#run.metadata.name;
    return new BlockedError(
      "NameTaken",
      earlier && controllerUid(object) !== undefined
        ? `${kind} ${name} belongs to an earlier TrainingRun of this name: wait until Kubernetes deletes it, or kubectl delete it`
        : earlier
          ? `${kind} ${name} was left behind by an earlier TrainingRun of this name (kubectl delete --cascade=orphan), and Kubernetes does not delete it: kubectl delete ${kind.toLowerCase()} ${name}`
          : `${kind} ${name} exists already and is not longrun's: delete it, or give the TrainingRun another name`,
    );
  }
}

/** Returns the arguments of a merge patch that is refused if the object has changed since it was read. */
function patchOf(
  { metadata: { name, namespace, uid, resourceVersion } }: KubeObject,
  patch: { metadata?: object; [field: string]: unknown },
): [key: { name: string; namespace: string }, patch: object] {
  return [
    { name, namespace: namespace! },
    { ...patch, metadata: { ...patch.metadata, uid, resourceVersion } },
  ];
}

/** Returns the object to apply, with the version that the decision was based on as a precondition. */
function withVersionOf(observed: KubeObject | undefined, desired: KubeObject): KubeObject {
  if (!observed) return desired;
  const { uid, resourceVersion } = observed.metadata;
  return { ...desired, metadata: { ...desired.metadata, uid: uid!, resourceVersion: resourceVersion! } };
}

/**
 * Returns a digest of the desirable parts of an object, without status and bookkeeping. (Deployments have bookkeeping in their
 * annotations.)
 */
function contentOf(object: KubeObject): string {
  const { metadata, status: _, ...rest } = object as KubeObject & { status?: unknown };
  const { labels, annotations, ownerReferences } = metadata;
  return digestOf({ ...rest, labels, hash: annotations?.[SPEC_HASH], ownerReferences });
}
