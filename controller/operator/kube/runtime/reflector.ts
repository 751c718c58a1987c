/**
 * A cache of one kind of object that follows the API server with a list and watches. A broken watch continues where it ended.
 *
 * - Lists have pages of `pageSize`. managedFields, half of a pod's size, are dropped at once, and equal parts of objects are stored once
 *   (`share.ts`).
 * - A watch that ends or breaks continues at the last resourceVersion seen. Status 410, or several broken watches without an event, lead to
 *   a new list. Objects that a new list lacks are reported as deleted. A list is also read every `relistSeconds`, in case a proxy loses
 *   events.
 * - A list that is older than the cache is rejected at first, so the cache does not go back in time.
 * - A connection without data for `silenceSeconds` counts as broken.
 * - An object with the same name and a new uid is reported as deleted, then as added.
 * - An `onChange` that throws is logged and counted, without other effects.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { ApiClient } from "../api-client.ts";
import { ApiError, isExpired } from "../errors.ts";
import { type KubeObject, keyOf, type Resource } from "../types.ts";
import { Backoff } from "./backoff.ts";
import { controllerUid, labelValue, ObjectIndex } from "./owner-index.ts";
import { share } from "./share.ts";

/** Consecutive watches that broke without an event before a new list. */
const BROKEN_WATCHES_BEFORE_LIST = 3;
/** Consecutive lists older than the cache before one is accepted (etcd was restored from a backup). */
const STALE_LISTS_BEFORE_BELIEF = 5;
/** A watch that the server ends sooner and without an event counts as broken. */
const SHORT_WATCH_SECONDS = 1;

/** The used part of a pino logger. */
export interface ReflectorLog {
  debug(fields: object, message: string): void;
  warn(fields: object, message: string): void;
}

export interface ReflectorOptions<T extends KubeObject> {
  client: ApiClient;
  resource: Resource;
  /** Absent: all namespaces. */
  namespace?: string;
  labelSelector?: string;
  /** Returns the part of an object to keep. managedFields are already dropped. */
  transform?: (object: T) => T;
  /** Called after the cache has the change; `object` is undefined for a deleted object, `previous` for a new one. */
  onChange: (key: string, object: T | undefined, previous: T | undefined) => void;
  /** Label for `byLabel`. */
  indexLabel?: string;
  /** Objects in one page of a list. Default 500. */
  pageSize?: number;
  /** When the server is asked to end a watch; up to as much again is added at random. Default 300. */
  watchSeconds?: number;
  /** After this time since the last list, the end of a watch leads to a new list. Default 1800. */
  relistSeconds?: number;
  /** Longest silence of a watch. The API server sends a bookmark about once a minute. Default 90. */
  silenceSeconds?: number;
  /** First wait after a failure. It doubles up to `maxBackoffSeconds`; up to a half is added at random. Default 0.5 and 30. */
  firstBackoffSeconds?: number;
  maxBackoffSeconds?: number;
  /** Statuses of answers that refuse the list or the watch. Default: 403. */
  refusedBy?: readonly number[];
  /** Called when `hasSynced` becomes true, and when `refusal` appears or goes. */
  onState?: () => void;
  /** Called for each fault: `list`, `watch` or `handler`. */
  onFault?: (kind: "list" | "watch" | "handler") => void;
  log?: ReflectorLog;
}

export class Reflector<T extends KubeObject = KubeObject> {
  readonly resource: Resource;
  readonly #options: ReflectorOptions<T>;
  readonly #objects = new Map<string, T>();
  readonly #labels?: ObjectIndex<T>;
  readonly #owners = new ObjectIndex<T>(controllerUid);
  readonly #synced = Promise.withResolvers<void>();
  readonly #backoff: Backoff;
  /** The newest object, which new objects most likely resemble. */
  #newest?: T;
  #resourceVersion?: string;
  #listOwed = true;
  #listedMs = 0;
  #staleLists = 0;
  #hasSynced = false;
  #refusal: string | undefined;
  #heardMs?: number;

  constructor(options: ReflectorOptions<T>) {
    this.resource = options.resource;
    this.#options = options;
    this.#backoff = new Backoff({
      firstSeconds: options.firstBackoffSeconds ?? 0.5,
      maxSeconds: options.maxBackoffSeconds ?? 30,
    });
    if (options.indexLabel) this.#labels = new ObjectIndex(labelValue(options.indexLabel));
  }

  /** Whether a complete list has been read. */
  get hasSynced(): boolean {
    return this.#hasSynced;
  }

  /** Resolves when `hasSynced` becomes true; never if `run` ends first. */
  get synced(): Promise<void> {
    return this.#synced.promise;
  }

  /** Why the API server refuses the list or the watch (`refusedBy`); undefined if it answers, or if another fault was the last. */
  get refusal(): string | undefined {
    return this.#refusal;
  }

  /** Seconds since the last data from the API server; undefined before the first list. For `/readyz`. */
  get silentSeconds(): number | undefined {
    return this.#heardMs === undefined ? undefined : (performance.now() - this.#heardMs) / 1000;
  }

  get size(): number {
    return this.#objects.size;
  }

  /** `key`: `namespace/name`. The object is frozen and shares parts with other objects. */
  get(key: string): T | undefined {
    return this.#objects.get(key);
  }

  list(): T[] {
    return [...this.#objects.values()];
  }

  /** Returns objects whose `indexLabel` has this value. */
  byLabel(value: string): T[] {
    if (!this.#labels) throw new Error(`Reflector of ${this.resource.plural}: byLabel needs the option indexLabel`);
    return this.#labels.get(value);
  }

  /** Returns objects whose controlling owner has this uid. */
  byOwner(uid: string): T[] {
    return this.#owners.get(uid);
  }

  /** Follows the API server until the signal aborts. Retries failures for ever, with back-off. Call it once. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      try {
        if (this.#listOwed) await this.#list(signal);
        await this.#watch(signal);
        const { relistSeconds = 1800 } = this.#options;
        if (performance.now() - this.#listedMs >= relistSeconds * 1000) this.#listOwed = true;
      } catch (error) {
        if (signal.aborted) return;
        await this.#recover(error, signal);
      }
    }
  }

  async #list(signal: AbortSignal): Promise<void> {
    const { client, resource, namespace, labelSelector, pageSize = 500 } = this.#options;
    const seen = new Set<string>();
    let page: Awaited<ReturnType<typeof client.list<T>>> | undefined;
    let whole = false;
    do {
      const from = page?.metadata.continue;
      try {
        page = await client.list<T>(resource, {
          ...(namespace && { namespace }),
          ...(labelSelector && { labelSelector }),
          ...(!whole && { limit: pageSize }),
          ...(from && !whole && { continue: from }),
          signal,
        });
      } catch (error) {
        // The server dropped the list's version before all pages were read. One request for everything is slow but cannot fail like that.
        if (!isExpired(error) || whole) throw error;
        whole = true;
        seen.clear();
        page = undefined;
        continue;
      }
      if (!from) this.#checkAge(page.metadata.resourceVersion);
      for (const object of page.items) {
        seen.add(keyOf(object));
        this.#put(object);
      }
    } while (!page || (page.metadata.continue && !whole));
    for (const key of [...this.#objects.keys()]) if (!seen.has(key)) this.#remove(key);
    this.#resourceVersion = page.metadata.resourceVersion;
    this.#listOwed = false;
    this.#listedMs = performance.now();
    this.#heard();
    const isFirst = !this.#hasSynced;
    this.#hasSynced = true;
    this.#synced.resolve();
    if (isFirst) this.#options.onState?.();
    this.#options.log?.debug({ resource: resource.plural, objects: seen.size }, "listed");
  }

  #checkAge(listed: string): void {
    const { resource } = this.#options;
    if (this.#resourceVersion && isOlder(listed, this.#resourceVersion)) {
      this.#staleLists += 1;
      if (this.#staleLists < STALE_LISTS_BEFORE_BELIEF) {
        const message = `LIST ${resource.plural}: at version ${listed}, older than ${this.#resourceVersion} seen before`;
        throw new ApiError(message, { status: 0, reason: "StaleList" });
      }
    }
    this.#staleLists = 0;
  }

  async #watch(signal: AbortSignal): Promise<void> {
    const { client, resource, namespace, labelSelector, watchSeconds = 300, silenceSeconds = 90 } = this.#options;
    const { log, onFault } = this.#options;
    const startedMs = performance.now();
    let events = 0;
    const stream = client.watch<T>(resource, {
      ...(namespace && { namespace }),
      ...(labelSelector && { labelSelector }),
      resourceVersion: this.#resourceVersion!,
      timeoutSeconds: Math.ceil(watchSeconds * (1 + Math.random())),
      silenceSeconds,
      onOpen: () => this.#heard(),
      signal,
    });
    try {
      for await (const { type, object } of stream) {
        events += 1;
        this.#heard();
        this.#backoff.reset();
        if (type === "DELETED") this.#remove(keyOf(object), object.metadata.uid);
        else if (type !== "BOOKMARK") this.#put(object);
        this.#resourceVersion = object.metadata.resourceVersion!;
      }
    } catch (error) {
      // No back-off: the wait was long enough, and perhaps nothing of this kind changed while the connection was healthy.
      if (!(error instanceof ApiError) || error.reason !== "Silence") throw error;
      onFault?.("watch");
      log?.warn({ resource: resource.plural, error: error.message }, "watch broke");
    }
    if (signal.aborted) return;
    const seconds = (performance.now() - startedMs) / 1000;
    if (events === 0 && seconds < SHORT_WATCH_SECONDS) {
      throw new ApiError(`WATCH ${resource.plural}: ended at once`, { status: 0, reason: "ShortWatch" });
    }
    this.#backoff.reset();
  }

  async #recover(error: unknown, signal: AbortSignal): Promise<void> {
    const listing = this.#listOwed;
    const seconds = Math.max(this.#backoff.nextSeconds(), (error as ApiError).retryAfterSeconds ?? 0);
    const { resource, log, onFault, refusedBy = [403] } = this.#options;
    onFault?.(listing ? "list" : "watch");
    const refusal = error instanceof ApiError && refusedBy.includes(error.status) ? error.message : undefined;
    // A missing right may be missing for days.
    const level = refusal !== undefined && this.#refusal !== undefined ? "debug" : "warn";
    this.#refuse(refusal);
    log?.[level](
      { resource: resource.plural, retryInSeconds: Number(seconds.toFixed(1)), error: (error as Error).message },
      listing ? "list failed" : "watch broke",
    );
    if (isExpired(error) || this.#backoff.failures >= BROKEN_WATCHES_BEFORE_LIST) this.#listOwed = true;
    await sleep(seconds * 1000, undefined, { signal }).catch(() => {}); // run() checks for an abort
  }

  #put(received: T): void {
    const key = keyOf(received);
    const previous = this.#objects.get(key);
    if (previous?.metadata.uid === received.metadata.uid) {
      if (previous?.metadata.resourceVersion === received.metadata.resourceVersion) return;
    } else if (previous) this.#remove(key);
    const { managedFields: _, ...metadata } = received.metadata as T["metadata"] & { managedFields?: unknown };
    const stripped = { ...received, metadata };
    const object = share(this.#options.transform?.(stripped) ?? stripped, previous ?? this.#newest);
    this.#newest = object;
    this.#change(key, object, this.#objects.get(key));
  }

  /** With a uid: removes only an object with that uid. */
  #remove(key: string, uid?: string): void {
    const previous = this.#objects.get(key);
    if (!previous || (uid !== undefined && uid !== previous.metadata.uid)) return;
    this.#change(key, undefined, previous);
  }

  #change(key: string, object: T | undefined, previous: T | undefined): void {
    if (object) this.#objects.set(key, object);
    else this.#objects.delete(key);
    this.#labels?.update(key, object, previous);
    this.#owners.update(key, object, previous);
    try {
      this.#options.onChange(key, object, previous);
    } catch (error) {
      this.#options.onFault?.("handler");
      this.#options.log?.warn({ resource: this.resource.plural, key, err: error }, "a handler failed");
    }
  }

  #heard(): void {
    this.#heardMs = performance.now();
    this.#refuse(undefined);
  }

  #refuse(refusal: string | undefined): void {
    const isOther = (refusal === undefined) !== (this.#refusal === undefined);
    this.#refusal = refusal;
    if (isOther) this.#options.onState?.();
  }
}

/** Compares resource versions, whole numbers of any length (counters of etcd; guaranteed since Kubernetes 1.35). */
function isOlder(version: string, than: string): boolean {
  return version.length === than.length ? version < than : version.length < than.length;
}
