/**
 * HTTP to the API server over kept-alive connections. `KubeConfig` handles credentials, certificates and proxies. Its own agent is not used
 * for direct connections, because it keeps none alive and never reads a renewed certificate.
 */
import { type ClientRequest, Agent as HttpAgent, request as httpRequest, type IncomingMessage } from "node:http";
import { Agent as HttpsAgent, request as httpsRequest, type RequestOptions } from "node:https";
import type { KubeConfig } from "@kubernetes/client-node";

/** How long credentials are cached before the kubeconfig is read again (token files and exec plugins change). */
const CREDENTIALS_SECONDS = 10;
/** Idle connections are closed earlier than by the API server, which waits 90 s, so that none is closed during a request. */
const IDLE_SECONDS = 60;
/** TCP keepalive detects a vanished host: first probe after this time, then one a second, ten in all. */
const TCP_PROBE_SECONDS = 30;
/** A longer answer is a fault: a page of 500 objects is far smaller. */
const MAX_BODY_BYTES = 256 * 1024 * 1024;

interface TransportRequest {
  method: string;
  /** Path with query. */
  path: string;
  headers?: Record<string, string>;
  body?: string;
  /** `send`: until the whole answer has arrived; `open`: until its headers have. */
  timeoutSeconds: number;
  signal?: AbortSignal;
  /** Called when the connection is open and nothing was sent. If it throws, nothing is sent and the error is the result. */
  beforeSend?: () => void;
}

export interface TransportReply {
  status: number;
  headers: IncomingMessage["headers"];
  body: string;
}

/** The answer did not arrive in time. */
class TimeoutError extends Error {
  override readonly name = "TimeoutError";
  readonly code = "Timeout";
}

interface Credentials {
  options: RequestOptions;
  readMs: number;
}

export class Transport {
  readonly host: string;
  readonly #config: KubeConfig;
  readonly #base: URL;
  readonly #viaProxy: boolean;
  #credentials?: Promise<Credentials>;
  #agent?: HttpAgent | HttpsAgent;
  #agentIdentity?: string;

  /** Throws an `Error` if the kubeconfig has no current cluster. */
  constructor(config: KubeConfig) {
    const cluster = config.getCurrentCluster();
    if (!cluster) {
      throw new Error(
        `kubeconfig: the current context (${config.getCurrentContext() || "none"}) names no cluster; choose one with kubectl config use-context`,
      );
    }
    this.#config = config;
    this.#base = new URL(cluster.server);
    this.#viaProxy = Boolean(cluster.proxyUrl);
    this.host = this.#base.host;
  }

  /** Rejects with `TimeoutError`, the signal's reason, the error of `beforeSend`, or a system error. */
  async send(options: TransportRequest): Promise<TransportReply> {
    const reply = await this.#sendOnce(options);
    if (reply.status !== 401) return reply;
    this.#credentials = undefined; // the token may have been replaced a moment ago
    return this.#sendOnce(options);
  }

  /** Like `send`, but does not read the answer's body. After status 200 the caller must watch for its end and for silence. */
  async open(options: TransportRequest): Promise<IncomingMessage> {
    const { response, stopTimer } = await this.#start(options);
    if (response.statusCode === 200) stopTimer();
    if (response.statusCode === 401) this.#credentials = undefined;
    return response;
  }

  close(): void {
    this.#agent?.destroy();
  }

  async #sendOnce(options: TransportRequest): Promise<TransportReply> {
    const { response, stopTimer, failure } = await this.#start(options);
    try {
      const chunks: Buffer[] = [];
      let bytes = 0;
      for await (const chunk of response as AsyncIterable<Buffer>) {
        bytes += chunk.length;
        if (bytes > MAX_BODY_BYTES) throw new Error(`the answer is longer than ${MAX_BODY_BYTES} bytes`);
        chunks.push(chunk);
      }
      return {
        status: response.statusCode!,
        headers: response.headers,
        body: Buffer.concat(chunks).toString("utf8"),
      };
    } catch (error) {
      throw failure() ?? error;
    } finally {
      stopTimer();
    }
  }

  async #start(options: TransportRequest) {
    options.signal?.throwIfAborted();
    const { options: credentials } = await this.#freshCredentials();
    const https = this.#base.protocol === "https:";
    const request: ClientRequest = (https ? httpsRequest : httpRequest)({
      ...credentials,
      protocol: this.#base.protocol,
      hostname: this.#base.hostname.replace(/^\[|\]$/g, ""),
      port: this.#base.port || (https ? 443 : 80),
      method: options.method,
      path: this.#base.pathname.replace(/\/$/, "") + options.path,
      headers: {
        ...credentials.headers,
        accept: "application/json",
        "user-agent": "longrun-controller",
        ...options.headers,
        ...(options.body === undefined ? {} : { "content-length": Buffer.byteLength(options.body) }),
      },
    } as RequestOptions);

    // Destroying a request whose answer has begun appears as "aborted" in the answer, so keep the cause here.
    let failed: Error | undefined;
    const fail = (error: Error) => {
      failed ??= error;
      request.destroy(error);
    };
    const onAbort = () => fail(options.signal!.reason as Error);
    const timer = setTimeout(
      () => fail(new TimeoutError(`no answer within ${options.timeoutSeconds} s`)),
      options.timeoutSeconds * 1000,
    );
    options.signal?.addEventListener("abort", onAbort, { once: true });
    request.once("close", () => {
      clearTimeout(timer);
      options.signal?.removeEventListener("abort", onAbort);
    });

    const response = await new Promise<IncomingMessage>((resolve, reject) => {
      request.once("response", resolve);
      request.on("error", (error) => reject(failed ?? error));
      request.once("socket", (socket) => {
        const go = () => {
          try {
            options.beforeSend?.();
          } catch (error) {
            fail(error as Error);
            return;
          }
          request.end(options.body);
        };
        if (request.reusedSocket || !(https || socket.connecting)) return go();
        socket.once(https ? "secureConnect" : "connect", go);
      });
    });
    return { response, stopTimer: () => clearTimeout(timer), failure: () => failed };
  }

  #freshCredentials(): Promise<Credentials> {
    const read = async (): Promise<Credentials> => {
      const all: RequestOptions = {};
      await this.#config.applyToHTTPSOptions(all);
      // The agent has the certificates; with them in each request, Node would build a long pool name from them every time.
      const agent = this.#viaProxy ? all.agent : this.#keepAliveAgent(all);
      return { options: { headers: all.headers, auth: all.auth, agent }, readMs: performance.now() };
    };
    const current = this.#credentials;
    this.#credentials = (async () => {
      const known = await current?.catch(() => undefined);
      return known && performance.now() - known.readMs < CREDENTIALS_SECONDS * 1000 ? known : read();
    })();
    return this.#credentials;
  }

  /** @returns the agent of this identity; after a change a new agent opens new connections, and the old ones expire */
  #keepAliveAgent({ ca, cert, key, servername, rejectUnauthorized }: RequestOptions): HttpAgent | HttpsAgent {
    const tls = { ca, cert, key, servername, rejectUnauthorized };
    const identity = JSON.stringify([ca, cert, key].map(String).concat(String(servername), String(rejectUnauthorized)));
    if (this.#agent && identity === this.#agentIdentity) return this.#agent;
    const options = { keepAlive: true, keepAliveMsecs: TCP_PROBE_SECONDS * 1000, timeout: IDLE_SECONDS * 1000 };
    this.#agentIdentity = identity;
    this.#agent =
      this.#base.protocol === "https:"
        ? new HttpsAgent({ ...options, ...Object.fromEntries(Object.entries(tls).filter(([, v]) => v !== undefined)) })
        : new HttpAgent(options);
    return this.#agent;
  }
}
