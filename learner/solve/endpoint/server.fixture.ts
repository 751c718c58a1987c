/** A server of chat completions that answers as a script says, and keeps what it was asked. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

export interface Asked {
  path: string | undefined;
  headers: IncomingMessage["headers"];
  body: Record<string, unknown>;
}

/** One answer; the last of a script is given again and again. */
export type Scripted = (response: ServerResponse, asked: Asked) => unknown;

export const json =
  (status: number, value: unknown, headers: Record<string, string> = {}): Scripted =>
  (response) =>
    response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(value));

export const completion = (content: unknown, more: { reason?: string; usage?: object } = {}): Scripted => {
  const { reason = "stop", usage = { prompt_tokens: 100, completion_tokens: 20 } } = more;
  return json(200, { choices: [{ index: 0, message: { role: "assistant", content }, finish_reason: reason }], usage });
};

/** Returns the address up to `/v1`, and the requests so far. */
export async function scriptedServer(...script: Scripted[]) {
  const asked: Asked[] = [];
  let most = 0;
  let open = 0;
  const server = createServer(async (request, response) => {
    const chunks: Buffer[] = [];
    for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
    const one = { path: request.url, headers: request.headers, body: JSON.parse(Buffer.concat(chunks).toString()) };
    asked.push(one);
    most = Math.max(most, ++open);
    response.on("close", () => open--);
    script[Math.min(asked.length, script.length) - 1]!(response, one);
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}/v1`,
    asked,
    mostOpen: () => most,
    [Symbol.dispose]: () => {
      server.closeAllConnections();
      server.close();
    },
  };
}
