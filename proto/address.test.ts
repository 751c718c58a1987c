import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { type Address, dialledHost, formatAddress, readAddress } from "./address.ts";

describe("readAddress", () => {
  const good: [text: string, address: Address][] = [
    ["127.0.0.1:0", { host: "127.0.0.1", port: 0 }],
    ["localhost:7000", { host: "localhost", port: 7000 }],
    ["[::1]:65535", { host: "::1", port: 65535 }],
    ["0.0.0.0:80", { host: "0.0.0.0", port: 80 }],
    [":7000", { port: 7000 }],
  ];
  for (const [text, address] of good)
    test(text, () => {
      assert.deepEqual(readAddress(text), address);
      assert.equal(formatAddress(address), text);
    });
  for (const text of ["", "7000", "localhost", "localhost:", "localhost:70000", "::1:80", "a:b:1", "localhost:-1"])
    test(`refuses "${text}"`, () => assert.equal(readAddress(text), undefined));
});

test("A server at all addresses is dialled over loopback", () => {
  const hosts = [undefined, "0.0.0.0", "::", "127.0.0.1", "host"];
  assert.deepEqual(hosts.map(dialledHost), ["localhost", "127.0.0.1", "::1", "127.0.0.1", "host"]);
});
