/** Kubernetes objects as raw JSON from the API server; timestamps are strings. */
export interface OwnerReference {
  apiVersion: string;
  kind: string;
  name: string;
  uid: string;
  controller?: boolean;
  blockOwnerDeletion?: boolean;
}

export interface ObjectMeta {
  name: string;
  namespace?: string;
  uid?: string;
  /** Grows with every write to the API server; only the Reflector compares it. */
  resourceVersion?: string;
  generation?: number;
  labels?: Record<string, string>;
  annotations?: Record<string, string>;
  ownerReferences?: OwnerReference[];
  finalizers?: string[];
  /** RFC 3339, in seconds. */
  creationTimestamp?: string;
  deletionTimestamp?: string;
}

export interface KubeObject {
  apiVersion?: string;
  kind?: string;
  metadata: ObjectMeta;
}

/** One kind of object and its place on the API server. Constants are in `resources.ts`. */
export interface Resource {
  /** Empty for the core group. */
  group: string;
  version: string;
  plural: string;
  kind: string;
  namespaced: boolean;
}

export interface ObjectKey {
  namespace?: string;
  name: string;
}

interface ListMeta {
  resourceVersion: string;
  continue?: string;
  remainingItemCount?: number;
}

export interface ObjectList<T> {
  items: T[];
  metadata: ListMeta;
}

/** Callers never see `ERROR`: `ApiClient.watch` throws it. */
export interface WatchEvent<T> {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK";
  object: T;
}

/**
 * The contract of a reconcile.
 * - `{}`: done; the key's next event leads to the next reconcile.
 * - `{ requeueAfterSeconds }`: done for now; reconcile again after this time, or at the next event if that is earlier.
 * - an error: not done; reconcile again after an exponential back-off, or after the `retryAfterSeconds` of an `ApiError`.
 */
export interface ReconcileResult {
  requeueAfterSeconds?: number;
}

/**
 * The JSON form of a type of `@kubernetes/client-node`: dates are strings, and names that the generator escaped with an underscore
 * (`_from`, `_continue`) have their original form.
 */
export type Raw<T> = T extends Date
  ? string
  : T extends (infer Item)[]
    ? Raw<Item>[]
    : T extends object
      ? { [Name in keyof T as Name extends `_${infer Plain}` ? Plain : Name]: Raw<T[Name]> }
      : T;

/** An API object as raw JSON, with the metadata that every stored object has. */
export type RawObject<T> = Omit<Raw<T>, "metadata"> & KubeObject;

/** @returns `namespace/name`, or `name` without a namespace: the key in caches and queues */
export function keyOf(object: { metadata: ObjectKey }): string {
  const { namespace, name } = object.metadata;
  return namespace ? `${namespace}/${name}` : name;
}

export function parseKey(key: string): ObjectKey {
  const slash = key.indexOf("/");
  return slash < 0 ? { name: key } : { namespace: key.slice(0, slash), name: key.slice(slash + 1) };
}
