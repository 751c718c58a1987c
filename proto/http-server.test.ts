import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, type Socket } from "node:net";
import { after, test } from "node:test";
import { type HttpLimits, limitedServer } from "./http-server.ts";

const stops: (() => void)[] = [];
after(() => {
  for (const stop of stops) stop();
});

async function serve(limits: Partial<HttpLimits>, body = "fine") {
  const server = limitedServer((_, response) => response.end(body), limits);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  const dial = async (): Promise<Socket> => {
    const socket = connect(port, "127.0.0.1");
    socket.on("error", () => {});
    await once(socket, "connect");
    return socket;
  };
  stops.push(() => {
    server.close();
    server.closeAllConnections();
  });
  return { server, dial, ask: async () => (await fetch(`http://127.0.0.1:${port}/`)).text() };
}

/** Returns everything that arrives until the server ends the connection, 20 s at most: a busy machine takes longer than the limits. */
async function until(socket: Socket): Promise<string> {
  let said = "";
  socket.on("data", (bytes: Buffer) => {
    said += bytes;
  });
  await once(socket, "close", { signal: AbortSignal.timeout(20_000) });
  return said;
}

const slow: [string, string][] = [
  ["says nothing", ""],
  ["does not end its headers", "GET / HTTP/1.1\r\nhost: a\r\n"],
  ["does not end its body", "POST / HTTP/1.1\r\nhost: a\r\ncontent-length: 100\r\n\r\nabc"],
];
for (const [name, text] of slow)
  test(`The server ends a connection that ${name}`, async () => {
    const { dial } = await serve({ headersSeconds: 0.2, requestSeconds: 0.4, idleSeconds: 0.5 });
    const socket = await dial();
    socket.write(text);
    await until(socket);
  });

test("a connection that does not read its answer is ended", async () => {
  const { server, dial } = await serve({ idleSeconds: 0.3 }, "x".repeat(64 * 2 ** 20));
  const accepted = once(server, "connection");
  const socket = await dial();
  socket.pause();
  const [connection] = (await accepted) as [Socket];
  const ended = once(connection, "close", { signal: AbortSignal.timeout(20_000) });
  socket.write("GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  await ended;
  // The data that was sent can still be read, but is incomplete.
  socket.resume();
  assert.ok((await until(socket)).length < 64 * 2 ** 20);
});

test("the oldest of too many connections is closed and the newest is answered", async () => {
  const { dial, ask } = await serve({ connections: 3 });
  const first = await dial();
  const gone = until(first);
  for (let count = 0; count < 3; count++) await dial();
  await gone;
  assert.equal(await ask(), "fine");
});

test("headers that are too long are refused", async () => {
  const { dial, ask } = await serve({ headerBytes: 2000 });
  const socket = await dial();
  socket.write(`GET / HTTP/1.1\r\nhost: a\r\nx: ${"y".repeat(4000)}\r\n\r\n`);
  assert.match(await until(socket), /^HTTP\/1.1 431 /);
  assert.equal(await ask(), "fine");
});
