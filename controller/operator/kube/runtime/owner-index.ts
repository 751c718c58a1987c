import type { KubeObject } from "../types.ts";

/** Index of cached objects by one value that an object may have: a label, or the uid of its controlling owner. */
export class ObjectIndex<T extends KubeObject> {
  readonly #read: (object: KubeObject) => string | undefined;
  readonly #objects = new Map<string, Map<string, T>>();

  constructor(read: (object: KubeObject) => string | undefined) {
    this.#read = read;
  }

  get(value: string): T[] {
    return [...(this.#objects.get(value)?.values() ?? [])];
  }

  /** Records a change: `next` is undefined for a deleted object, `previous` for a new one. */
  update(key: string, next: T | undefined, previous: T | undefined): void {
    const before = previous && this.#read(previous);
    const after = next && this.#read(next);
    if (before !== undefined && before !== after) {
      const group = this.#objects.get(before);
      group?.delete(key);
      if (group?.size === 0) this.#objects.delete(before);
    }
    if (next === undefined || after === undefined) return;
    const group = this.#objects.get(after);
    if (group) group.set(key, next);
    else this.#objects.set(after, new Map([[key, next]]));
  }
}

export function labelValue(label: string): (object: KubeObject) => string | undefined {
  return (object) => object.metadata.labels?.[label];
}

/** @returns the uid of the owner that controls the object */
export function controllerUid(object: KubeObject): string | undefined {
  return object.metadata.ownerReferences?.find((owner) => owner.controller)?.uid;
}
