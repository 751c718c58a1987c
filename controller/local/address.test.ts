import assert from "node:assert/strict";
import { createServer } from "node:net";
import { describe, test } from "node:test";
import { checkFree, dialledHost, formatAddress, parseAddress } from "./address.ts";

describe("parseAddress", () => {
  const good: [text: string, host: string, port: number][] = [
    ["127.0.0.1:0", "127.0.0.1", 0],
    ["localhost:7000", "localhost", 7000],
    ["[::1]:65535", "::1", 65535],
    ["0.0.0.0:80", "0.0.0.0", 80],
  ];
  for (const [text, host, port] of good)
    test(text, () => {
      assert.deepEqual(parseAddress(text, "--listen"), { host, port });
      assert.equal(formatAddress({ host, port }), text);
    });
  for (const text of [
    "",
    "7000",
    ":7000",
    "localhost",
    "localhost:",
    "localhost:70000",
    "::1:80",
    "a:b:1",
    "localhost:-1",
  ])
    test(`parseAddress refuses "${text}"`, () =>
      assert.throws(() => parseAddress(text, "--listen"), { code: "input", message: /^--listen .*: write HOST:PORT/ }));
});

test("A server at all addresses is dialled over loopback", () => {
  assert.deepEqual(["0.0.0.0", "::", "127.0.0.1", "host"].map(dialledHost), ["127.0.0.1", "::1", "127.0.0.1", "host"]);
});

test("checkFree finds a port that is in use", async () => {
  await using server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await assert.rejects(checkFree({ host: "127.0.0.1", port }, "--listen"), {
    code: "input",
    message: `--listen 127.0.0.1:${port}: the port is in use; choose another one, or 0 for any free one`,
  });
  await new Promise((resolve) => server.close(resolve));
  await checkFree({ host: "127.0.0.1", port }, "--listen");
});
