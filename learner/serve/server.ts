/** The HTTP server: routes, the key, limits, and an end that lets running requests finish. */
import { createHash, timingSafeEqual } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { foreignHost } from "../metrics/http.ts";
import { answer, type Load, sendError, sendJson } from "./answer.ts";
import type { Generating } from "./choice.ts";
import { RequestError } from "./errors.ts";
import { LIMITS } from "./limits.ts";
import { ServeMetrics } from "./metrics.ts";
import type { ServedModel } from "./model.ts";
import { ENDPOINTS, type Endpoint, parseRequest } from "./request.ts";

export interface ServerOptions {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  /** Bearer token of clients; undefined: none is required. */
  readonly key: string | undefined;
  /** Whether only this machine can connect. */
  readonly loopback: boolean;
  /** Number of the engine's slots. */
  readonly slots: number;
  /** Choices that may wait for a slot before requests are refused. */
  readonly maxWaiting: number;
  readonly model: ServedModel;
  readonly limits?: Partial<typeof LIMITS>;
  /** Called with one line about each fault of the server; the line contains no client data. */
  readonly onFault: (line: string) => void;
}

export class ApiServer {
  readonly metrics: ServeMetrics;
  readonly #options: ServerOptions;
  readonly #limits: typeof LIMITS;
  readonly #http: Server;
  readonly #load: Load = { open: 0 };
  #engine: Generating | undefined;
  #ending = false;

  private constructor(options: ServerOptions) {
    this.#options = options;
    this.#limits = { ...LIMITS, ...options.limits };
    this.metrics = new ServeMetrics(() => this.#load.open, options.slots);
    const { headersSeconds, requestSeconds, connections } = this.#limits;
    const timeouts = { headersTimeout: headersSeconds * 1000, requestTimeout: requestSeconds * 1000 };
    this.#http = createServer(timeouts, (request, response) => void this.#respond(request, response));
    this.#http.maxConnections = connections;
  }

  /** Listens, and answers 503 until it has an engine. @throws Error of `node:net` */
  static async listen(options: ServerOptions): Promise<ApiServer> {
    const server = new ApiServer(options);
    await once(server.#http.listen(options.port, options.host), "listening");
    return server;
  }

  get port(): number {
    return (this.#http.address() as AddressInfo).port;
  }

  serve(engine: Generating): void {
    this.#engine = engine;
  }

  /** Accepts no more requests. Resolves when the running ones have ended, at the latest after `drainSeconds`. */
  async end(): Promise<void> {
    this.#ending = true;
    const closed = once(this.#http, "close");
    this.#http.close();
    const cut = setTimeout(() => this.#http.closeAllConnections(), this.#limits.drainSeconds * 1000);
    await closed;
    clearTimeout(cut);
  }

  async #respond(request: IncomingMessage, response: ServerResponse): Promise<void> {
    response.once("close", () => {
      if (this.#ending) this.#http.closeIdleConnections();
    });
    if (this.#ending) response.setHeader("connection", "close");
    // from here on, only a client that does not read its answer causes a timeout
    response.once("prefinish", () => response.setTimeout(this.#limits.unreadSeconds * 1000, () => response.destroy()));
    try {
      await this.#route(request, response);
    } catch (cause) {
      if (!response.destroyed) sendError(response, this.#refusal(cause));
    }
  }

  /** Returns the error that a client gets. */
  #refusal(cause: unknown): RequestError {
    if (cause instanceof RequestError) return cause;
    const { message } = cause as Error;
    this.#options.onFault(`a request failed: ${message}`);
    return new RequestError(500, `the engine failed: ${message}`, { cause });
  }

  async #route(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const path = URL.parse(request.url ?? "/", "http://localhost")?.pathname ?? "/";
    const { model, loopback, key } = this.#options;
    const foreign = loopback && key === undefined ? foreignHost(request) : undefined;
    if (foreign !== undefined) throw new RequestError(403, foreign);
    if (path === "/health" && isGet(request)) return this.#health(response);
    if (path === "/metrics" && isGet(request)) {
      const { registry } = this.metrics;
      response.writeHead(200, { "content-type": registry.contentType }).end(await registry.metrics());
      return;
    }
    this.#authorize(request);
    const endpoint = ENDPOINTS.find((known) => path === `/v1/${known}`);
    if (endpoint && request.method === "POST") return this.#generate(endpoint, request, response);
    if (endpoint) {
      response.setHeader("allow", "POST");
      throw new RequestError(405, `${path} takes POST, not ${request.method}`);
    }
    const shown = { id: model.name, object: "model", created: model.createdSeconds, owned_by: "longrun" };
    const listed = { ...shown, max_model_len: model.maxPositions };
    if (path === "/v1/models" && isGet(request)) return sendJson(response, 200, { object: "list", data: [listed] });
    // some clients leave the slash of a name as it is
    const isNamed = [encodeURI, encodeURIComponent].some((encode) => path === `/v1/models/${encode(model.name)}`);
    if (isNamed && isGet(request)) return sendJson(response, 200, listed);
    if (path.startsWith("/v1/models/"))
      throw new RequestError(404, `there is no such model here; this server has ${model.name}`, {
        code: "model_not_found",
      });
    const known = ["/v1/models", ...ENDPOINTS.map((each) => `/v1/${each}`), "/health", "/metrics"];
    throw new RequestError(404, `there is nothing at ${request.method} ${path}; try ${known.join(", ")}`);
  }

  #health(response: ServerResponse): void {
    const failure = this.#engine?.failure;
    const status = this.#ending ? "ending" : failure ? failure.message : this.#engine ? "ok" : "loading";
    sendJson(response, status === "ok" ? 200 : 503, { status });
  }

  #authorize({ headers }: IncomingMessage): void {
    const { key } = this.#options;
    if (key === undefined) return;
    const [, given] = /^Bearer (.*)$/i.exec(headers.authorization ?? "") ?? [];
    // digests have equal lengths, and comparing them takes the same time for every key
    if (given !== undefined && timingSafeEqual(digest(given), digest(key))) return;
    const remedy = "send the server's key as the header Authorization: Bearer KEY";
    throw new RequestError(401, `the API key is ${given === undefined ? "missing" : "wrong"}; ${remedy}`, {
      code: "invalid_api_key",
    });
  }

  async #generate(endpoint: Endpoint, request: IncomingMessage, response: ServerResponse): Promise<void> {
    const since = performance.now();
    const { metrics } = this;
    response.once("close", () => {
      const status = response.writableFinished ? String(response.statusCode) : "hung up";
      metrics.requests.inc({ endpoint, status });
      metrics.requestSeconds.observe({ endpoint }, (performance.now() - since) / 1000);
    });
    const engine = this.#engine;
    if (this.#ending || !engine)
      throw new RequestError(503, this.#ending ? "the server is ending" : "the model is being loaded; try again");
    const hungUp = new AbortController();
    response.once("close", () => hungUp.abort());
    const body = await readJson(request, this.#limits);
    const { tokenizeSeconds } = this.#limits;
    const asked = await parseRequest(endpoint, body, this.#options.model, hungUp.signal, tokenizeSeconds);
    const waiting = this.#load.open - this.#options.slots;
    if (waiting >= this.#options.maxWaiting) {
      const message = `${Math.max(0, waiting)} choices wait for a slot, the most that may (--max-waiting); try again later`;
      throw new RequestError(429, message, { code: "rate_limit_exceeded" });
    }
    await answer(engine, this.#options.model, asked, response, { load: this.#load, metrics, since });
  }
}

const isGet = ({ method }: IncomingMessage): boolean => method === "GET" || method === "HEAD";

const digest = (text: string): Buffer => createHash("sha256").update(text).digest();

/** @throws RequestError for a body that is too large, too deep or no JSON */
async function readJson(request: IncomingMessage, { bodyBytes, depth }: typeof LIMITS): Promise<unknown> {
  // browsers let no foreign web page send this type without a preflight request
  if (!/^application\/json\b/i.test(request.headers["content-type"] ?? ""))
    throw new RequestError(415, "the content-type is not application/json; send JSON, and say so");
  let bytes = 0;
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length;
    if (bytes <= bodyBytes)
      chunks.push(chunk); // the rest is read and discarded, so that the client gets the reason
    else chunks.length = 0;
  }
  if (bytes > bodyBytes) throw new RequestError(413, `the request has ${bytes} bytes; at most ${bodyBytes} are read`);
  let body: unknown;
  try {
    body = JSON.parse(Buffer.concat(chunks).toString());
  } catch (cause) {
    throw new RequestError(400, `the request is no JSON: ${(cause as Error).message}`, { cause });
  }
  if (isDeeper(body, depth))
    throw new RequestError(400, `the request nests lists and objects more than ${depth} deep; send fewer levels`);
  return body;
}

/** Whether lists and objects are nested deeper than this. Functions such as JSON.stringify exceed the stack on deep values. */
function isDeeper(value: unknown, depth: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  return depth === 0 || Object.values(value).some((each) => isDeeper(each, depth - 1));
}
