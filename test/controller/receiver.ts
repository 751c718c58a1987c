/** An HTTP server that receives webhooks. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";

export interface Received {
  id: string;
  data: { phase: string; message: string };
}

/**
 * Starts a server, which ends with the test.
 *
 * @param answers its statuses in order, after which it does not answer; absent: it accepts everything
 */
export async function receive(t: TestContext, answers?: number[]): Promise<{ url: string; received: Received[] }> {
  const received: Received[] = [];
  const server = createServer(async (request, response) => {
    let body = "";
    for await (const chunk of request) body += chunk;
    received.push(JSON.parse(body));
    const status = answers ? answers.shift() : 204;
    if (status !== undefined) response.writeHead(status).end();
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, received };
}
