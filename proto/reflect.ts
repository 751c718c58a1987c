/**
 * The part of the Reflect metadata API that `@peculiar/x509` needs to load: its dependency injection refuses to start
 * without it. Metadata belong to the object itself, then to its prototypes. Does nothing where a polyfill is there.
 */
interface ReflectMetadata {
  defineMetadata(key: unknown, value: unknown, target: object): void;
  getOwnMetadata(key: unknown, target: object): unknown;
  getMetadata(key: unknown, target: object): unknown;
}

const metadata = new WeakMap<object, Map<unknown, unknown>>();

const api: ReflectMetadata = {
  defineMetadata(key, value, target) {
    if (!metadata.has(target)) metadata.set(target, new Map());
    metadata.get(target)?.set(key, value);
  },
  getOwnMetadata(key, target) {
    return metadata.get(target)?.get(key);
  },
  getMetadata(key, target) {
    for (let at: object | null = target; at !== null; at = Object.getPrototypeOf(at)) {
      if (metadata.get(at)?.has(key)) return metadata.get(at)?.get(key);
    }
    return undefined;
  },
};

if (!("getMetadata" in Reflect)) Object.assign(Reflect, api);
