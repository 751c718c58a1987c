/**
 * Events (events.k8s.io/v1) for `kubectl describe`. They are written in the background and may be lost, like all events. Nothing waits for
 * them and no decision depends on them.
 *
 * The same event within `SERIES_MS` makes no new object: the first one becomes a series with a count, written at most once in
 * `UPDATE_MS`.
 */
import { randomBytes } from "node:crypto";
import { hostname } from "node:os";
import type { ApiClient } from "../api-client.ts";
import { ApiError } from "../errors.ts";
import { EVENT } from "../resources.ts";
import { TokenBucket } from "../token-bucket.ts";
import type { KubeObject } from "../types.ts";

/** The API server's limit. */
const MAX_NOTE_BYTES = 1024;
const MAX_NAME_CHARACTERS = 253;

interface EventOptions {
  type: "Normal" | "Warning";
  /** The reason, one word in CamelCase, from the table of reasons. */
  reason: string;
  /** What happened, for people. Cut at 1024 bytes of UTF-8. */
  note: string;
  /** The controller's action or attempt, one word in CamelCase. */
  action: string;
}

export interface EventRecorderOptions {
  client: ApiClient;
  /** Events of one object at once, and seconds until it may have one more; the rest is dropped. Default 25 and 30. */
  burst?: number;
  refillSeconds?: number;
  /** Most events that wait to be written; the rest is dropped. Default 1000. */
  maxWaiting?: number;
  /** Called when an event was dropped. */
  onDropped?: (reason: "rate" | "full" | "refused", error?: Error) => void;
  now?: () => number;
}

/** The same event counts into its series until this long after it was last seen. */
const SERIES_MS = 360_000;
/** Shortest time between two writes of one series. */
const UPDATE_MS = 30_000;

interface Series {
  regarding: KubeObject;
  event: EventOptions;
  /** Name of the object in the API server, once it exists. */
  name?: string;
  namespace: string;
  firstMs: number;
  count: number;
  writtenCount: number;
  lastMs: number;
  writtenMs: number;
  queued: boolean;
}

export class EventRecorder {
  readonly #options: EventRecorderOptions;
  readonly #now: () => number;
  readonly #series = new Map<string, Series>();
  readonly #buckets = new Map<string, TokenBucket>();
  readonly #waiting: Series[] = [];
  readonly #timer: NodeJS.Timeout;
  #writing?: Promise<void>;

  constructor(options: EventRecorderOptions) {
    this.#options = options;
    this.#now = options.now ?? Date.now;
    this.#timer = setInterval(() => this.#sweep(), UPDATE_MS / 2).unref();
  }

  /** Records an event. Never throws and never waits. `regarding` needs apiVersion, kind and metadata with uid. */
  record(regarding: KubeObject, event: EventOptions): void {
    const { uid = "", namespace = "default" } = regarding.metadata;
    const nowMs = this.#now();
    const id = [uid, event.type, event.reason, event.action, event.note].join("\n");
    const known = this.#series.get(id);
    if (known && nowMs - known.lastMs < SERIES_MS) {
      known.count += 1;
      known.lastMs = nowMs;
      if (known.count === 2 || nowMs - known.writtenMs >= UPDATE_MS) this.#queue(known);
      return;
    }
    if (!this.#bucketOf(uid).tryTake()) {
      this.#options.onDropped?.("rate");
      return;
    }
    const series: Series = {
      regarding,
      event,
      namespace,
      firstMs: nowMs,
      lastMs: nowMs,
      count: 1,
      writtenCount: 0,
      writtenMs: nowMs,
      queued: false,
    };
    this.#series.set(id, series);
    this.#queue(series);
  }

  /** Writes all recorded events and counts of series, and stops. */
  async close(): Promise<void> {
    clearInterval(this.#timer);
    for (const series of this.#series.values()) if (series.count > series.writtenCount) this.#queue(series);
    await this.flush();
  }

  /** Resolves when all events so far are written or dropped. */
  async flush(): Promise<void> {
    while (this.#writing) await this.#writing;
  }

  #bucketOf(uid: string): TokenBucket {
    let bucket = this.#buckets.get(uid);
    if (!bucket) {
      bucket = new TokenBucket(1 / (this.#options.refillSeconds ?? 30), this.#options.burst ?? 25, this.#now);
      this.#buckets.set(uid, bucket);
    }
    return bucket;
  }

  /** Writes counts that have waited long enough, and forgets finished series. */
  #sweep(): void {
    const nowMs = this.#now();
    for (const [id, series] of this.#series) {
      if (series.count > series.writtenCount && nowMs - series.writtenMs >= UPDATE_MS) this.#queue(series);
      else if (nowMs - series.lastMs >= SERIES_MS && !series.queued) this.#series.delete(id);
    }
    const refillMs = (this.#options.refillSeconds ?? 30) * (this.#options.burst ?? 25) * 1000;
    for (const [uid, bucket] of this.#buckets) if (bucket.idleMs >= refillMs) this.#buckets.delete(uid);
  }

  #queue(series: Series): void {
    if (series.queued) return;
    if (this.#waiting.length >= (this.#options.maxWaiting ?? 1000)) {
      this.#options.onDropped?.("full");
      return;
    }
    series.queued = true;
    this.#waiting.push(series);
    this.#writing ??= this.#drain();
  }

  async #drain(): Promise<void> {
    await Promise.resolve(); // keeps record() cheap: the writes start later
    for (let series = this.#waiting.shift(); series; series = this.#waiting.shift()) {
      series.queued = false;
      try {
        await this.#write(series);
      } catch (error) {
        this.#options.onDropped?.("refused", error as Error);
      }
    }
    this.#writing = undefined;
  }

  async #write(series: Series): Promise<void> {
    const { client } = this.#options;
    const count = series.count;
    const lastObservedTime = microTime(series.lastMs);
    series.writtenMs = this.#now();
    if (series.name !== undefined) {
      try {
        const key = { namespace: series.namespace, name: series.name };
        await client.mergePatch(EVENT, key, { series: { count, lastObservedTime } });
        series.writtenCount = count;
        return;
      } catch (error) {
        if (!(error instanceof ApiError) || error.status !== 404) throw error; // the server deletes events after an hour
      }
    }
    const { apiVersion, kind, metadata } = series.regarding;
    const suffix = `.${randomBytes(8).toString("hex")}`;
    const name = metadata.name.slice(0, MAX_NAME_CHARACTERS - suffix.length) + suffix;
    const object = {
      metadata: { name, namespace: series.namespace },
      eventTime: microTime(series.firstMs),
      reportingController: "longrun.dev/controller",
      reportingInstance: hostname(),
      regarding: { apiVersion, kind, namespace: metadata.namespace, name: metadata.name, uid: metadata.uid },
      type: series.event.type,
      reason: series.event.reason,
      action: series.event.action,
      note: cut(series.event.note),
      ...(count > 1 && { series: { count, lastObservedTime } }),
    };
    await client.create(EVENT, object);
    series.name = name;
    series.writtenCount = count;
  }
}

function cut(note: string): string {
  const bytes = Buffer.from(note);
  if (bytes.length <= MAX_NOTE_BYTES) return note;
  return bytes
    .subarray(0, MAX_NOTE_BYTES)
    .toString()
    .replace(/\uFFFD$/, ""); // half a character
}

function microTime(unixMs: number): string {
  return new Date(unixMs).toISOString().replace("Z", "000Z");
}
