/** `/metrics` for Prometheus, `/healthz` and `/readyz` for supervisors, and pages for people. Read-only. */
import { once } from "node:events";
import type { IncomingMessage, OutgoingHttpHeaders, ServerResponse } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import type { Registry } from "prom-client";
import { ADDRESS_FORM, readAddress } from "../../proto/address.ts";
import { limitedServer } from "../../proto/http-server.ts";
import { MetricsError } from "./errors.ts";

export interface Probe {
  ok: boolean;
  /** One line: the phase, or the problem. */
  message: string;
}

type Probes = Readonly<Record<"live" | "ready", () => Probe>>;

/**
 * Page by path, e.g. `/report`. Pages contain more than numbers, so only this machine may read them: on Kubernetes, users who may
 * port-forward to the pod, wherever the port itself is open to.
 */
export type Pages = Readonly<Record<string, (query: URLSearchParams) => Promise<Page>>>;

export interface Page {
  /** Headers, including `content-type`. */
  headers: OutgoingHttpHeaders;
  body: string;
}

export type MetricsServer = Awaited<ReturnType<typeof serveMetrics>>;

/** Serves at `listen`, HOST:PORT; port 0 takes any free one. Throws `MetricsError` if the address cannot be used. */
export async function serveMetrics(listen: string, registry: Registry, probes: Probes, pages: Pages = {}) {
  const address = readAddress(listen);
  if (address === undefined) throw new MetricsError("listen", `--metrics-listen ${listen}: ${ADDRESS_FORM}`);
  const respond = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    if (request.method !== "GET" && request.method !== "HEAD") return send(response, 405, TEXT, "only GET\n");
    const address = URL.parse(request.url ?? "/", "http://localhost");
    if (address === null) return send(response, 400, TEXT, "that is no address\n");
    const { pathname: path, searchParams: query } = address;
    if (path === "/metrics")
      return send(response, 200, { "content-type": registry.contentType }, await registry.metrics());
    if (path === "/healthz" || path === "/readyz") {
      const { ok, message } = path === "/healthz" ? probes.live() : probes.ready();
      return send(response, ok ? 200 : 503, TEXT, `${message}\n`);
    }
    if (Object.hasOwn(pages, path)) {
      const refusal = refusalOf(request);
      if (refusal !== undefined) return send(response, 403, TEXT, `${refusal}\n`);
      const page = await pages[path]!(query);
      return send(response, 200, page.headers, page.body);
    }
    send(response, 404, TEXT, `try ${["/metrics", "/healthz", "/readyz", ...Object.keys(pages)].join(", ")}\n`);
  };
  const server = limitedServer((request, response) => {
    respond(request, response).catch((error: Error) => send(response, 500, TEXT, `${error.message}\n`));
  });
  await once(server.listen(address.port, address.host), "listening").catch((error: NodeJS.ErrnoException) => {
    const why =
      error.code === "EADDRINUSE" ? "the port is in use; choose another one, or 0 for any free one" : error.message;
    throw new MetricsError("listen", `--metrics-listen ${listen}: ${why}`, { cause: error });
  });
  server.unref();
  const close = async (): Promise<void> => {
    server.closeAllConnections();
    await server[Symbol.asyncDispose]();
  };
  return { port: (server.address() as AddressInfo).port, close };
}

const TEXT = { "content-type": "text/plain; charset=utf-8" };

/** Returns why this request gets no page, or undefined. */
function refusalOf({ socket, headers }: IncomingMessage): string | undefined {
  if (!LOOPBACK.test(socket.remoteAddress ?? ""))
    return "only from this machine, or by kubectl port-forward to the pod";
  return foreignHost({ headers });
}

/**
 * Returns the fault of the host in a request, unless it is an address or localhost. A foreign web page whose host name points to this
 * port would otherwise have the same origin.
 */
export function foreignHost({ headers }: Pick<IncomingMessage, "headers">): string | undefined {
  const host = (headers.host ?? "").replace(/:\d+$/, "");
  const isAddress = isIP(host.replace(/^\[(.*)\]$/, "$1")) !== 0;
  return isAddress || host === "localhost" ? undefined : `${JSON.stringify(host)} is not this server: use localhost`;
}

/** A socket that listens on :: sees IPv4 addresses as ::ffff:127.0.0.1. */
const LOOPBACK = /^(::1$|(::ffff:)?127\.)/;

function send(response: ServerResponse, status: number, headers: OutgoingHttpHeaders, body: string): void {
  response.writeHead(status, { ...headers, "content-length": Buffer.byteLength(body) }).end(body);
}
