/**
 * An HTTP server for small pages that anyone in a network may ask for: metrics, probes, the report. Whoever is slow or
 * opens many connections must not keep others out, nor hold memory for long.
 */
import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";

export interface HttpLimits {
  /** For the whole request line and headers, also of a connection that says nothing. */
  headersSeconds: number;
  /** For the whole request. */
  requestSeconds: number;
  /** A connection on which nothing moves for so long is closed: one that does not read its answer, too. */
  idleSeconds: number;
  /** Of one connection more, the oldest is closed: a probe that comes last is still answered. */
  connections: number;
  /** Of request line and headers. */
  headerBytes: number;
}

/** learner/server/README.md says them too. */
export const HTTP_LIMITS: HttpLimits = {
  ...{ headersSeconds: 5, requestSeconds: 10, idleSeconds: 15, connections: 256 },
  headerBytes: 16 * 1024,
};

export function limitedServer(listener: RequestListener, limits: Partial<HttpLimits> = {}): Server {
  const { headersSeconds, requestSeconds, idleSeconds, connections, headerBytes } = { ...HTTP_LIMITS, ...limits };
  const server = createServer(
    {
      headersTimeout: headersSeconds * 1000,
      requestTimeout: requestSeconds * 1000,
      connectionsCheckingInterval: Math.min(1000, headersSeconds * 250),
      maxHeaderSize: headerBytes,
    },
    listener,
  );
  server.setTimeout(idleSeconds * 1000);
  const open = new Set<Socket>();
  server.on("connection", (socket) => {
    open.add(socket);
    socket.on("close", () => open.delete(socket));
    if (open.size > connections) open.values().next().value!.destroy();
  });
  return server;
}
