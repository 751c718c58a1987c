import assert from "node:assert/strict";
import { createServer } from "node:http";
import { type AddressInfo, isIP } from "node:net";
import { describe, test } from "node:test";
import { finishedEvent, post } from "./webhook.ts";
import { allowanceOf, InsideError, internetLookup, isInside, parseHosts } from "./webhook-hosts.ts";

const LISTED = parseHosts(["Hooks.example.com, *.chat.example.com", "10.0.0.7", "fd00::7"], "--webhook-allow");

const HOSTS: [host: string, allowance: ReturnType<typeof allowanceOf>][] = [
  ["hooks.example.com", "any"],
  ["HOOKS.example.com", "any"],
  ["hooks.example.com.", "any"],
  ["10.0.0.7", "any"],
  ["fd00::7", "any"],
  ["a.chat.example.com", "internet"],
  ["a.b.chat.example.com", "internet"],
  ["chat.example.com", "none"],
  ["evilchat.example.com", "none"],
  ["hooks.example.com.evil.org", "none"],
  ["example.com", "none"],
  ["10.0.0.8", "none"],
  ["kubernetes.default.svc", "none"],
  ["127.0.0.1", "none"],
];
describe("a host is posted to", () => {
  for (const [host, allowance] of HOSTS)
    test(`${host}: ${allowance}`, () => assert.equal(allowanceOf(host, LISTED), allowance));
  test("No host is allowed if none is listed", () => {
    for (const [host] of HOSTS) assert.equal(allowanceOf(host, []), "none");
  });
});

test("An entry that is no host is refused", () => {
  for (const value of ["https://hook", "hook:8080", "*", "*.", "a/b", "", "a,,b", "10.0.0.0/8"])
    assert.throws(
      () => parseHosts([value], "--webhook-allow"),
      /--webhook-allow has .*, must be a host, \*\.DOMAIN or an IP address/,
    );
});

const INSIDE = [
  ...[
    "127.0.0.1",
    "127.9.9.9",
    "10.1.2.3",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
  ],
  ...["0.0.0.0", "224.0.0.1", "255.255.255.255", "::", "::1", "fe80::1", "fd00::1", "fc00::1", "ff02::1"],
  ...["::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::10.0.0.1", "64:ff9b::a00:1", "2002:a00:1::"],
];
const OUTSIDE = [
  "1.1.1.1",
  "8.8.8.8",
  "172.32.0.1",
  "192.169.0.1",
  "169.253.1.1",
  "100.128.0.1",
  "2606:4700::1111",
  "::ffff:8.8.8.8",
];
test("Addresses inside the cluster are recognised", () => {
  for (const address of INSIDE) assert.ok(isIP(address) && isInside(address), address);
  for (const address of OUTSIDE) assert.ok(isIP(address) && !isInside(address), address);
});

test("The checked address is the one that is dialled", async () => {
  const looked = (lookup: ReturnType<typeof internetLookup>, all: boolean) =>
    new Promise<unknown>((resolve) => lookup("localhost", { all }, (error, found) => resolve(error ?? found)));
  for (const all of [true, false]) {
    assert.ok((await looked(internetLookup("localhost"), all)) instanceof InsideError);
    // With a proxy in between.
    const found = await looked(internetLookup("hooks.example.com"), all);
    assert.match(JSON.stringify(found), /127\.0\.0\.1|::1/);
  }
});

test("A name that leads inside is refused without a connection, unless it is listed itself", async () => {
  let connections = 0;
  await using server = createServer((_, response) => void response.writeHead(204).end());
  server.on("connection", () => connections++);
  await new Promise<void>((resolve) => server.listen(0, "localhost", resolve));
  const { port } = server.address() as AddressInfo;
  const event = finishedEvent("/a", "b", {
    ...{ name: "quick", task: "diamonds", phase: "Succeeded", message: "done" },
    ...{ iterations: 1, completionTime: "2026-01-01T00:00:00Z" },
  });
  // `a.localhost` is this machine if the resolver follows RFC 6761; otherwise nothing is found and nothing is posted.
  const to = (host: string, hosts: string[]) => post(`http://${host}:${port}/`, event, { timeoutSeconds: 5, hosts });
  const refused = await to("a.localhost", ["*.localhost"]);
  assert.equal(refused.delivered, false);
  assert.match(refused.message, /inside the cluster and is not listed by its name|cannot be reached: E/);
  assert.match((await to("localhost", ["*.localhost"])).message, /not on the controller's list/);
  assert.match((await to("127.0.0.1", [])).message, /not on the controller's list/);
  assert.equal(connections, 0);
  assert.deepEqual(await to("localhost", ["localhost"]), { delivered: true, message: "the receiver answered 204" });
});
