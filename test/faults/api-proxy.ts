/**
 * A proxy in front of a real API server that causes faults for its clients: refused writes, answers lost after the commit, watches that
 * break, stall, lag or lose events, and reads of an old state.
 *
 * One proxy serves one client under test, so that two clients can have different faults. It terminates TLS with the API server's own
 * certificate; requests keep their bearer token.
 */
import { readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import type { IncomingMessage, ServerResponse } from "node:http";
import { Agent, createServer, request as httpsRequest, type Server } from "node:https";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type ControlPlane, kubeconfig } from "../cluster/control-plane.ts";
import { answerJson, answerStatus, bytes, EXPIRED, lines, withoutFraming } from "./api-answer.ts";
import { type ApiObject, type ApiRequest, parseJson, parseRequest } from "./api-request.ts";

export type Fault =
  /** The API server never gets the request. */
  | { kind: "answer"; code: number; reason?: string; retryAfterSeconds?: number }
  /** The API server handles the request, but its answer is lost: connection reset, no answer at all, or a gateway's 504. */
  | { kind: "lost"; how: "reset" | "hang" | "504" }
  /** The request is forwarded late. */
  | { kind: "delay"; seconds: number };

/** Fault of one event of a watch; without one it passes. Events of a watch stay in order. */
type EventFault =
  | { kind: "drop" }
  | { kind: "delay"; seconds: number }
  /** The connection breaks before this event. */
  | { kind: "reset" }
  /** The connection stays open, but nothing arrives any more. */
  | { kind: "stall" }
  /** The event 410 Gone, and the end: the resource version is too old. */
  | { kind: "expire" }
  /** Bytes that are no JSON, and the end. */
  | { kind: "garbage" };

export interface WatchEvent {
  type: "ADDED" | "MODIFIED" | "DELETED" | "BOOKMARK" | "ERROR";
  object: ApiObject;
}

/** A hook throws it to break the client's connection at that point. */
export class Cut extends Error {}

interface Rule {
  when: (request: ApiRequest) => boolean;
  fault: Fault;
  left: number;
}

interface OpenWatch {
  request: ApiRequest;
  response: ServerResponse;
  stalled: boolean;
}

export class ApiProxy {
  /** Every request in order of arrival. */
  readonly requests: ApiRequest[] = [];
  /** Called before a write is forwarded, and after the API server handled it, before its answer is returned. */
  beforeWrite: (request: ApiRequest) => Promise<void> | void = () => {};
  afterWrite: (request: ApiRequest) => Promise<void> | void = () => {};
  /** Called for each event of each watch. */
  onEvent: (event: WatchEvent, watch: ApiRequest) => EventFault | undefined = () => undefined;

  readonly #cluster: ControlPlane;
  readonly #server: Server;
  readonly #agent: Agent;
  readonly #ca: string;
  readonly #rules: Rule[] = [];
  readonly #watches = new Set<OpenWatch>();
  /** While set, reads show the state of this resource version. */
  #asOf: number | undefined;
  #severed = false;
  #thaw = Promise.withResolvers<void>();

  /** @param host address to listen at, one that the API server's certificate has */
  static async start(cluster: ControlPlane, host = "127.0.0.1"): Promise<ApiProxy> {
    const proxy = new ApiProxy(cluster);
    await new Promise<void>((resolve) => proxy.#server.listen(0, host, resolve));
    return proxy;
  }

  private constructor(cluster: ControlPlane) {
    this.#cluster = cluster;
    this.#ca = readFileSync(cluster.caFile, "utf8");
    this.#agent = new Agent({ keepAlive: true, ca: this.#ca });
    const inFolder = (name: string) => readFileSync(join(cluster.folder, name));
    const certificate = { cert: inFolder("apiserver.crt"), key: inFolder("apiserver.key") };
    this.#server = createServer(certificate, (incoming, response) => {
      this.#handle(incoming, response).catch((error) => response.destroy(error));
    });
  }

  get url(): string {
    const { address, port } = this.#server.address() as AddressInfo;
    return `https://${address}:${port}`;
  }

  /** Returns a kubeconfig file of `user` that uses this proxy. */
  async kubeconfigOf(user = "admin"): Promise<string> {
    const { folder, caFile } = this.#cluster;
    const path = join(folder, `kubeconfig-${user}-by-${new URL(this.url).port}`);
    await writeFile(path, kubeconfig(this.url, caFile, user, this.#cluster.tokenOf(user)), { mode: 0o600 });
    return path;
  }

  /** Applies `fault` to the next `times` requests for which `when` returns true. The first matching rule is used. */
  inject(when: (request: ApiRequest) => boolean, fault: Fault, times = 1): void {
    this.#rules.push({ when, fault, left: times });
  }

  /** Number of injected faults that no request has met yet. */
  get pendingFaults(): number {
    return this.#rules.reduce((sum, { left }) => sum + left, 0);
  }

  clearFaults(): void {
    this.#rules.length = 0;
    this.onEvent = () => undefined;
  }

  /** Breaks the connections of all open watches. */
  resetWatches(of: (watch: ApiRequest) => boolean = () => true): number {
    const reset = [...this.#watches].filter(({ request }) => of(request));
    for (const { response } of reset) response.destroy();
    return reset.length;
  }

  /** Ends all open watches with 410 Gone, so that the client has to list again. */
  expireWatches(): void {
    for (const { response } of this.#watches) response.end(EXPIRED);
  }

  /** Half-open: all open watches stay open, but nothing arrives on them any more. */
  stallWatches(of: (watch: ApiRequest) => boolean = () => true): number {
    const stalled = [...this.#watches].filter(({ request }) => of(request));
    for (const watch of stalled) watch.stalled = true;
    return stalled.length;
  }

  /**
   * From now on all reads show this moment's state: gets and lists are answered at this resource version, and watches hold newer events
   * back. An API server whose cache lags behaves like this, and so does a restart of the client against another, older API server. Etcd
   * keeps old states for 5 minutes.
   */
  async freezeReads(): Promise<void> {
    const { metadata } = await this.#json("/api/v1/namespaces?limit=1", this.#cluster.token);
    this.#asOf = Number(metadata!.resourceVersion);
    this.#thaw = Promise.withResolvers();
  }

  /** Reads show the present again; watches send held events at once. */
  thawReads(): void {
    this.#asOf = undefined;
    this.#thaw.resolve();
  }

  /** Objects that the API server created for the client, as `resource namespace/name`, in order. */
  get creations(): string[] {
    return this.requests
      .filter(({ code, isWrite, subresource }) => isWrite && code === 201 && subresource === undefined)
      .map(
        ({ resource, namespace, name, answer }) => `${resource} ${namespace ?? ""}/${name ?? answer?.metadata?.name}`,
      );
  }

  get writes(): ApiRequest[] {
    return this.requests.filter(({ isWrite }) => isWrite);
  }

  /** From now on nothing passes in either direction, as if the client were dead. */
  sever(): void {
    this.#severed = true;
    this.#server.closeAllConnections();
  }

  async stop(): Promise<void> {
    this.thawReads();
    this.#server.closeAllConnections();
    this.#agent.destroy();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  async #handle(incoming: IncomingMessage, response: ServerResponse): Promise<void> {
    const sent = await bytes(incoming);
    if (this.#severed) return void response.destroy();
    const request = parseRequest(incoming.method!, incoming.url!, sent);
    this.requests.push(request);
    const fault = this.#take(request);
    if (fault?.kind === "answer") return answerStatus(response, fault.code, fault.reason, fault.retryAfterSeconds);
    if (fault?.kind === "delay") await sleep(fault.seconds * 1000, undefined, { ref: false });
    const token = incoming.headers.authorization ?? "";
    const isRead =
      (request.verb === "get" || request.verb === "list") && request.resource !== "" && !request.subresource;
    if (isRead && this.#asOf !== undefined) return this.#answerAsOf(this.#asOf, request, token, response);
    if (request.verb === "watch") return this.#watch(incoming, request, response);
    if (request.isWrite && (await isCut(this.beforeWrite(request)))) return void response.destroy();
    if (this.#severed) return void response.destroy();
    const upstream = await this.#forward(incoming, sent);
    const body = await bytes(upstream);
    request.code = upstream.statusCode;
    if (request.isWrite) {
      request.answer = parseJson(body);
      if (this.#severed) return void response.destroy();
      if (await isCut(this.afterWrite(request))) return void response.destroy();
    }
    if (fault?.kind === "lost") {
      if (fault.how === "reset") response.destroy();
      if (fault.how === "504") answerStatus(response, 504, "Timeout");
      return;
    }
    response.writeHead(upstream.statusCode!, withoutFraming(upstream.headers)).end(body);
  }

  #take(request: ApiRequest): Fault | undefined {
    const rule = this.#rules.find(({ when, left }) => left > 0 && when(request));
    if (rule) rule.left--;
    return rule?.fault;
  }

  #forward(incoming: IncomingMessage, sent: Buffer, signal?: AbortSignal): Promise<IncomingMessage> {
    return new Promise((resolve, reject) => {
      const { method, url, headers } = incoming;
      const target = new URL(url!, this.#cluster.url);
      // Node only frames the body of a DELETE if its length is given.
      const length = sent.length > 0 ? { "content-length": sent.length } : {};
      httpsRequest(
        target,
        { method, headers: { ...withoutFraming(headers), ...length, host: target.host }, agent: this.#agent, signal },
        resolve,
      )
        .on("error", reject)
        .end(sent);
    });
  }

  async #watch(incoming: IncomingMessage, request: ApiRequest, response: ServerResponse): Promise<void> {
    const gone = new AbortController();
    response.on("close", () => gone.abort());
    const upstream = await this.#forward(incoming, Buffer.alloc(0), gone.signal);
    request.code = upstream.statusCode;
    response.writeHead(upstream.statusCode!, withoutFraming(upstream.headers));
    response.flushHeaders();
    const watch: OpenWatch = { request, response, stalled: false };
    this.#watches.add(watch);
    try {
      for await (const line of lines(upstream)) if (!(await this.#passOn(line, watch))) return;
      if (!watch.stalled) response.end();
    } catch {
      if (!watch.stalled) response.destroy();
    } finally {
      this.#watches.delete(watch);
    }
  }

  /** Returns whether the watch continues. */
  async #passOn(line: string, watch: OpenWatch): Promise<boolean> {
    const event = JSON.parse(line) as WatchEvent;
    const newer = () => this.#asOf !== undefined && Number(event.object?.metadata?.resourceVersion) > this.#asOf;
    while (newer()) await this.#thaw.promise;
    const fault = this.onEvent(event, watch.request);
    if (fault?.kind === "delay") await sleep(fault.seconds * 1000, undefined, { ref: false });
    if (watch.response.writableEnded) return false; // expired meanwhile
    if (watch.stalled || fault?.kind === "drop") return true;
    if (fault?.kind === "stall") {
      watch.stalled = true;
      return true;
    }
    if (fault?.kind === "reset") {
      watch.response.destroy();
      return false;
    }
    if (fault?.kind === "expire" || fault?.kind === "garbage") {
      watch.response.end(fault.kind === "expire" ? EXPIRED : '{"type":"MODI\0}{]\n');
      return false;
    }
    watch.response.write(`${line}\n`);
    return true;
  }

  /** Answers a get or a list with the exact state at `resourceVersion`. */
  async #answerAsOf(resourceVersion: number, request: ApiRequest, token: string, response: ServerResponse) {
    const url = new URL(request.path, this.#cluster.url);
    const { searchParams } = url;
    if (request.verb === "get") {
      url.pathname = url.pathname.replace(/\/[^/]+$/, "");
      searchParams.set("fieldSelector", `metadata.name=${request.name}`);
    }
    // A continued list has its first page's resource version in the token.
    if (!searchParams.has("continue")) {
      searchParams.set("resourceVersion", String(resourceVersion));
      searchParams.set("resourceVersionMatch", "Exact");
    }
    const list = await this.#json(`${url.pathname}${url.search}`, token.replace(/^Bearer /, ""));
    request.code = list.code ?? 200;
    if (request.verb === "list" || list.kind === "Status") return answerJson(response, request.code!, list);
    const [item] = list.items!;
    if (!item) return answerStatus(response, 404, "NotFound");
    // For built-in types only the list has the kind.
    answerJson(response, 200, { kind: list.kind!.replace(/List$/, ""), apiVersion: list.apiVersion, ...item });
  }

  async #json(path: string, token: string): Promise<ApiObject> {
    const headers = { authorization: `Bearer ${token}`, accept: "application/json" };
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      httpsRequest(new URL(path, this.#cluster.url), { headers, agent: this.#agent }, resolve)
        .on("error", reject)
        .end();
    });
    return parseJson(await bytes(answer)) ?? {};
  }
}

/** Returns whether the hook asked to break the connection. */
async function isCut(hook: Promise<void> | void): Promise<boolean> {
  try {
    await hook;
    return false;
  } catch (error) {
    if (error instanceof Cut) return true;
    throw error;
  }
}
