/**
 * An HTTP server for small pages that anyone in a network may request: metrics, probes, the report. A slow client, or one with many
 * connections, must neither block others nor hold memory for long.
 */
import { createServer, type RequestListener, type Server } from "node:http";
import type { Socket } from "node:net";

export interface HttpLimits {
  /** For the whole request line and headers; also applies to a silent connection. */
  headersSeconds: number;
  /** For the whole request. */
  requestSeconds: number;
  /** A connection without traffic for this long is closed, also if the client does not read the answer. */
  idleSeconds: number;
  /** A further connection closes the oldest one, so a late probe is still answered. */
  connections: number;
  /** Size of request line and headers. */
  headerBytes: number;
}

/** learner/server/README.md lists them too. */
const HTTP_LIMITS: HttpLimits = {
  headersSeconds: 5,
  requestSeconds: 10,
  idleSeconds: 15,
  connections: 256,
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
