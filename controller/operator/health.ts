/** `/metrics`, `/healthz` and `/readyz` of the controller. */
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import type { Registry } from "prom-client";
import type { Address } from "../../proto/address.ts";
import { limitedServer } from "../../proto/http-server.ts";

interface HealthOptions {
  address: Address;
  registry: Registry;
  /** Reasons to restart the process; empty: none. */
  sick: () => string[];
  /** Reasons why the process cannot work now; empty: none. */
  unready: () => string[];
}

/** @throws Error if the address cannot be used */
export async function serveHealth({
  address,
  registry,
  sick,
  unready,
}: HealthOptions): Promise<{ port: number; close(): Promise<void> }> {
  const server = limitedServer(async (request, response) => {
    const answer = (problems: string[]) => {
      response.writeHead(problems.length === 0 ? 200 : 503, { "content-type": "text/plain; charset=utf-8" });
      response.end(`${problems.length === 0 ? "ok" : problems.join("\n")}\n`);
    };
    switch (URL.parse(request.url ?? "/", "http://controller")?.pathname) {
      case "/healthz":
        return answer(sick());
      case "/readyz":
        return answer([...sick(), ...unready()]);
      case "/metrics":
        response.writeHead(200, { "content-type": registry.contentType });
        return response.end(await registry.metrics());
      default:
        response.writeHead(404).end("there are /metrics, /healthz and /readyz\n");
    }
  });
  server.listen(address.port, address.host);
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    async close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
