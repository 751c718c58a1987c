/**
 * The API server's seven verbs, as raw JSON. `@kubernetes/client-node` reads the kubeconfig and authenticates. Its typed clients are not
 * used, because they turn timestamps into `Date` in lists but not in watch events.
 */
import type { IncomingMessage } from "node:http";
import { setTimeout as sleep } from "node:timers/promises";
import type { KubeConfig } from "@kubernetes/client-node";
import { ApiError } from "./errors.ts";
import { apiError, connectionError, parseBody, type Status, warningsOf } from "./replies.ts";
import { apiVersionOf, pathOf } from "./resources.ts";
import { TokenBucket } from "./token-bucket.ts";
import { Transport } from "./transport.ts";
import type { KubeObject, ObjectKey, ObjectList, Resource, WatchEvent } from "./types.ts";
import { jsonLines } from "./watch-stream.ts";

const FIELD_MANAGER = "longrun-controller";

export interface RequestObservation {
  method: string;
  /** Plural name, such as `pods`. */
  resource: string;
  /** HTTP status, or `<error>` without an answer. */
  code: string;
  /** Time from sending to the end of the answer; for a watch, to its headers. */
  seconds: number;
  host: string;
}

export interface ApiClientOptions {
  /** Average limit of requests per second. Default 50. */
  qps?: number;
  /** Requests that may be sent at once after a pause. Default 100. */
  burst?: number;
  /** Limit for each try of a request, including its whole answer. Default 30. */
  timeoutSeconds?: number;
  /** Name under which the API server records the fields that this client writes. Default `longrun-controller`. */
  fieldManager?: string;
  /** How often a request is repeated after status 429, or after 503 with Retry-After. Default 4. */
  maxRetries?: number;
  onRequest?: (observation: RequestObservation) => void;
  /** Called for a `Warning:` header of the API server, for example about a deprecated version or an unknown field. */
  onWarning?: (text: string, request: string) => void;
  /**
   * Called before every request except GET, when the connection is open and nothing was sent. An error prevents the write. Pass
   * `LeaderElector.assertLeading`, so that a leader that was paused past its lease writes nothing.
   */
  beforeWrite?: () => void;
}

export interface Request {
  method: "GET" | "POST" | "PUT" | "PATCH" | "DELETE";
  path: string;
  /** Name for metrics. Default: the path. */
  resource?: string;
  query?: Record<string, string | number | boolean | undefined>;
  body?: unknown;
  contentType?: string;
  signal?: AbortSignal;
}

export interface ListOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  limit?: number;
  continue?: string;
  resourceVersion?: string;
  signal?: AbortSignal;
}

interface WatchOptions {
  namespace?: string;
  labelSelector?: string;
  fieldSelector?: string;
  resourceVersion: string;
  /** When the server should end the watch. */
  timeoutSeconds: number;
  /** Longest time without a byte before the connection counts as dead. Default: no less than `timeoutSeconds`. */
  silenceSeconds?: number;
  /** Called when the server has accepted the watch; events follow. */
  onOpen?: () => void;
  signal?: AbortSignal;
}

/** A longer Retry-After is thrown as an error, and the work queue waits. */
const MAX_RETRY_AFTER_SECONDS = 10;

/** Every method throws `ApiError`, or the error of `beforeWrite`. */
export class ApiClient {
  readonly #transport: Transport;
  readonly #bucket: TokenBucket;
  readonly #options: ApiClientOptions;
  readonly #timeoutSeconds: number;
  readonly #fieldManager: string;
  readonly #maxRetries: number;

  constructor(config: KubeConfig, options: ApiClientOptions = {}) {
    this.#transport = new Transport(config);
    this.#bucket = new TokenBucket(options.qps ?? 50, options.burst ?? 100);
    this.#options = options;
    this.#timeoutSeconds = options.timeoutSeconds ?? 30;
    this.#fieldManager = options.fieldManager ?? FIELD_MANAGER;
    this.#maxRetries = options.maxRetries ?? 4;
  }

  /** @returns undefined if the object does not exist */
  async get<T extends KubeObject = KubeObject>(
    resource: Resource,
    key: ObjectKey,
    options: { signal?: AbortSignal } = {},
  ): Promise<T | undefined> {
    return unlessNotFound(this.request<T>({ method: "GET", ...at(resource, key), ...options }));
  }

  /** Returns one page. Each item gets apiVersion and kind, which the API server omits in most lists. */
  async list<T extends KubeObject = KubeObject>(resource: Resource, options: ListOptions = {}): Promise<ObjectList<T>> {
    const { namespace, signal, ...query } = options;
    const list = await this.request<ObjectList<T>>({
      method: "GET",
      ...at(resource, { namespace }),
      query,
      ...(signal && { signal }),
    });
    const [apiVersion, kind] = [apiVersionOf(resource), resource.kind];
    const items = (list.items ?? []).map((item) => ({ apiVersion, kind, ...item }));
    return { items, metadata: list.metadata };
  }

  async create<T extends KubeObject>(
    resource: Resource,
    object: T,
    { dryRun, ...options }: { dryRun?: boolean; signal?: AbortSignal } = {},
  ): Promise<T> {
    return this.request<T>({
      ...options,
      method: "POST",
      ...at(resource, { namespace: object.metadata.namespace }),
      query: { fieldManager: this.#fieldManager, ...(dryRun && { dryRun: "All" }) },
      body: typed(resource, object),
    });
  }

  /**
   * Server-side apply: this manager owns the given fields; fields that it owned and that are missing now are removed. `metadata.uid` and
   * `metadata.resourceVersion` are preconditions if given: 409 if they do not match. `force` takes fields from other managers (default
   * true).
   */
  async apply<T extends KubeObject>(
    resource: Resource,
    object: T,
    options: { force?: boolean; dryRun?: boolean; subresource?: string; signal?: AbortSignal } = {},
  ): Promise<T> {
    return this.request<T>({
      ...(options.signal && { signal: options.signal }),
      method: "PATCH",
      ...at(resource, object.metadata, options.subresource),
      query: {
        fieldManager: this.#fieldManager,
        force: options.force ?? true,
        ...(options.dryRun && { dryRun: "All" }),
      },
      body: typed(resource, object),
      contentType: "application/apply-patch+yaml", // JSON is YAML
    });
  }

  /** JSON merge patch. `metadata.resourceVersion` and `metadata.uid` are preconditions if given. */
  async mergePatch<T extends KubeObject = KubeObject>(
    resource: Resource,
    key: ObjectKey,
    patch: object,
    options: { subresource?: string; signal?: AbortSignal } = {},
  ): Promise<T> {
    return this.request<T>({
      ...(options.signal && { signal: options.signal }),
      method: "PATCH",
      ...at(resource, key, options.subresource),
      query: { fieldManager: this.#fieldManager },
      body: patch,
      contentType: "application/merge-patch+json",
    });
  }

  /** @returns false if the object does not exist. Status 409 if it has another uid or resourceVersion */
  async delete(
    resource: Resource,
    key: ObjectKey,
    options: {
      uid: string;
      resourceVersion?: string;
      propagationPolicy?: "Background" | "Foreground" | "Orphan";
      gracePeriodSeconds?: number;
      signal?: AbortSignal;
    },
  ): Promise<boolean> {
    const { uid, resourceVersion, propagationPolicy = "Background", gracePeriodSeconds } = options;
    const gone = await unlessNotFound(
      this.request({
        ...(options.signal && { signal: options.signal }),
        method: "DELETE",
        ...at(resource, key),
        body: {
          apiVersion: "v1",
          kind: "DeleteOptions",
          preconditions: { uid, resourceVersion },
          propagationPolicy,
          gracePeriodSeconds,
        },
      }),
    );
    return gone !== undefined;
  }

  /**
   * Yields events after `resourceVersion` until the server ends the watch (not an error) or the signal aborts. Throws `ApiError`: status
   * 410 if the version is too old (list again), status 0 if the connection broke.
   */
  async *watch<T extends KubeObject = KubeObject>(
    resource: Resource,
    options: WatchOptions,
  ): AsyncGenerator<WatchEvent<T>, void, undefined> {
    const { namespace, signal, silenceSeconds, onOpen, ...query } = options;
    const path = withQuery(pathOf(resource, { namespace }), {
      ...query,
      watch: true,
      allowWatchBookmarks: true,
    });
    try {
      const response = await this.#openWatch(path, resource.plural, signal);
      onOpen?.();
      for await (const value of jsonLines(response, silenceSeconds ?? options.timeoutSeconds + this.#timeoutSeconds)) {
        const event = value as WatchEvent<T> | { type: "ERROR"; object: Status };
        if (event.type === "ERROR") {
          const { code = 500, reason = "InternalError", message = "" } = event.object;
          throw new ApiError(`WATCH ${path}: ${code} ${message}`, { status: code, reason });
        }
        yield event;
      }
    } catch (error) {
      if (!signal?.aborted) throw error;
    }
  }

  /** Returns the API server's version without its build, e.g. `1.34.2`. */
  async serverVersion(): Promise<string> {
    const { gitVersion } = await this.request<{ gitVersion: string }>({ method: "GET", path: "/version" });
    return gitVersion.replace(/^v/, "").replace(/[-+].*$/, "");
  }

  /** Any other request. @returns the parsed answer */
  async request<T = unknown>(request: Request): Promise<T> {
    const path = withQuery(request.path, request.query);
    const what = `${request.method} ${path}`;
    const isWrite = request.method !== "GET";
    for (let attempt = 0; ; attempt++) {
      await this.#bucket.take(request.signal);
      const observe = this.#observer(request.method, request.resource ?? request.path);
      let held: unknown; // an error of beforeWrite is thrown unchanged
      const reply = await this.#transport
        .send({
          method: request.method,
          path,
          timeoutSeconds: this.#timeoutSeconds,
          ...(request.signal && { signal: request.signal }),
          ...(request.body !== undefined && {
            body: JSON.stringify(request.body),
            headers: { "content-type": request.contentType ?? "application/json" },
          }),
          ...(isWrite && {
            beforeSend: () => {
              try {
                this.#options.beforeWrite?.();
              } catch (error) {
                held = error;
                throw error;
              }
            },
          }),
        })
        .catch((error) => {
          if (held) throw held;
          observe("<error>");
          throw connectionError(what, error);
        });
      observe(String(reply.status));
      for (const warning of warningsOf(reply.headers.warning)) this.#options.onWarning?.(warning, what);
      if (reply.status < 300) return parseBody<T>(what, reply);
      const error = apiError(what, reply);
      const waitSeconds = error.retryAfterSeconds ?? (error.status === 429 ? 1 : undefined);
      const retriable = error.status === 429 || error.status === 503;
      if (!retriable || waitSeconds === undefined) throw error;
      if (attempt >= this.#maxRetries || waitSeconds > MAX_RETRY_AFTER_SECONDS) throw error;
      await sleep(waitSeconds * 1000, undefined, request.signal ? { signal: request.signal } : {});
    }
  }

  /** Whether at least half of the burst is left. Work that can wait leaves the rest to other work. */
  get hasSpare(): boolean {
    return this.#bucket.level >= 0.5;
  }

  /** Closes every connection; running requests fail. */
  close(): void {
    this.#transport.close();
  }

  async #openWatch(path: string, resource: string, signal?: AbortSignal): Promise<IncomingMessage> {
    await this.#bucket.take(signal);
    const observe = this.#observer("WATCH", resource);
    let response: IncomingMessage;
    let body = "";
    try {
      const timeoutSeconds = this.#timeoutSeconds;
      response = await this.#transport.open({ method: "GET", path, timeoutSeconds, ...(signal && { signal }) });
      observe(String(response.statusCode));
      if (response.statusCode === 200) return response;
      for await (const chunk of response.setEncoding("utf8")) body += chunk;
    } catch (error) {
      observe("<error>");
      throw connectionError(`WATCH ${path}`, error);
    }
    throw apiError(`WATCH ${path}`, { status: response.statusCode!, headers: response.headers, body });
  }

  #observer(method: string, resource: string): (code: string) => void {
    const startedMs = performance.now();
    return (code) =>
      this.#options.onRequest?.({
        method,
        resource,
        code,
        seconds: (performance.now() - startedMs) / 1000,
        host: this.#transport.host,
      });
  }
}

function at(resource: Resource, key: Partial<ObjectKey>, subresource?: string) {
  const name = subresource ? `${resource.plural}/${subresource}` : resource.plural;
  return { path: pathOf(resource, key, subresource), resource: name };
}

function typed<T extends KubeObject>(resource: Resource, object: T): T {
  return { apiVersion: apiVersionOf(resource), kind: resource.kind, ...object };
}

function withQuery(path: string, query: Request["query"] = {}): string {
  const given = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) if (value !== undefined) given.set(name, String(value));
  return given.size === 0 ? path : `${path}?${given}`;
}

async function unlessNotFound<T>(request: Promise<T>): Promise<T | undefined> {
  try {
    return await request;
  } catch (error) {
    if (error instanceof ApiError && error.status === 404) return undefined;
    throw error;
  }
}
