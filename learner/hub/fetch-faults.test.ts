/** Tests a fetch over connections that break, from servers that answer wrongly, and without a network. */
import assert from "node:assert/strict";
import fs from "node:fs";
import type { ServerResponse } from "node:http";
import path from "node:path";
import { test } from "node:test";
import { ALL, cut, fetchFrom, isStorage, POLICY, root, sameAs, WEIGHTS } from "./fetch.fixture.ts";
import { COMMIT, type Fault, HubServer, refuse } from "./hub-server.fixture.ts";

test("a fetch over a connection that is cut again and again downloads each byte once", async () => {
  await using server = await HubServer.of(POLICY);
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length < WEIGHTS) return false;
    cut(response, body, request.headers.range, 300_000);
    return true;
  });
  const { folder, fetchedBytes, bytes } = await fetchFrom(server, { limits: { tries: 2 } });
  sameAs(server, folder, ALL);
  assert.equal(fetchedBytes, bytes);
  assert.ok(server.stored.filter(isPartial).length > 10);
  assert.ok(server.stored.filter(isPartial).every(({ path: url }) => isStorage({ url })));
});
const isPartial = ({ range }: { range: string | undefined }) => range !== undefined;

test("a failed fetch goes on where it ended, with the same commit although the branch has moved", async () => {
  await using server = await HubServer.of(POLICY);
  const out = path.join(root, "continued");
  let left = 1;
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    if (left-- > 0) cut(response, body, request.headers.range, 1_000_000);
    else response.destroy();
    return true;
  });
  await assert.rejects(fetchFrom(server, { out }), { code: "network" });
  const part = fs.readdirSync(out).find((name) => /^model\.safetensors\..*\.part$/.test(name))!;
  const { size: begun } = fs.statSync(path.join(out, part)); // bytes that arrived before the cut
  assert.ok(begun > 0 && begun <= 1_000_000, `${begun}`);

  server.faults.length = 0;
  server.stored.length = 0;
  server.revisions = { main: "f".repeat(40), old: COMMIT };
  const { commit, fetchedBytes } = await fetchFrom(server, { out });
  sameAs(server, out, ALL);
  assert.equal(commit, COMMIT);
  assert.equal(fetchedBytes, WEIGHTS - begun);
  assert.deepEqual(
    server.stored.map(({ range }) => range),
    [`bytes=${begun}-`],
  );
  await assert.rejects(fetchFrom(server, { out, revision: "other" }), {
    message: `--out ${out} has acme/model at main (${COMMIT}); give a new or empty folder`,
  });
  const { lines } = await fetchFrom(undefined, { out, env: { HF_ENDPOINT: "http://127.0.0.1:1" } });
  assert.deepEqual(lines, [], "a whole folder needs no network");
});

test("a fetch asks a server without ranges for the whole file again, a limited number of times", async () => {
  await using server = await HubServer.of(POLICY);
  let answers = 0;
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    answers++;
    cut(response, body, undefined, 500_000);
    return true;
  });
  await assert.rejects(fetchFrom(server, { limits: { tries: 3 } }), {
    code: "network",
    message:
      /^the connection to 127\S+ broke off: .*; \S+ k?B of 4.21 MB of model.safetensors are there, and the same command goes on from there$/,
  });
  assert.ok(answers <= 6, `${answers} answers`);
  server.faults.length = 0;
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    if (answers++ % 2 === 0) cut(response, body, undefined, 500_000);
    else response.writeHead(200, { "content-length": body.length }).end(body);
    return true;
  });
  const { folder } = await fetchFrom(server);
  sameAs(server, folder, ALL);
});

for (const [name, spoil] of [
  ["model.safetensors", (body: Buffer) => body.fill(7, 100, 200)],
  ["config.json", (body: Buffer) => body.fill(" ", 0, 1)],
] as const)
  test(`a ${name} with other bytes is fetched again once, then refused, and no file keeps its name`, async () => {
    await using server = await HubServer.of(POLICY);
    let wrong = 1;
    server.faults.push((request, response, body) => {
      if (!request.url!.includes(`/${name}`) || body.length === 0 || wrong-- <= 0) return false;
      response.writeHead(200, { "content-length": body.length }).end(spoil(Buffer.from(body)));
      return true;
    });
    const { folder, lines } = await fetchFrom(server);
    sameAs(server, folder, ALL);
    const problem = `${name} of acme/model came with another hash than ${server.endpoint} lists`;
    assert.ok(lines.includes(`${problem}; fetching it anew`), lines.join("\n"));

    wrong = 2;
    const out = path.join(root, `wrong ${name}`);
    await assert.rejects(fetchFrom(server, { out }), {
      code: "hash",
      message: `${problem}, 2 times; look at the disk and at the proxy or mirror between`,
    });
    assert.ok(!fs.readdirSync(out).some((file) => file.startsWith(name)), fs.readdirSync(out).join());
  });

test("an error names a page in place of a file as an answer that is too short", async () => {
  await using server = await HubServer.of(POLICY);
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    response.end("<html>sign in");
    return true;
  });
  await assert.rejects(fetchFrom(server, { limits: { tries: 2 } }), {
    code: "network",
    message: new RegExp(
      `^model.safetensors: the answer ended after 13 of ${WEIGHTS} bytes; look at the proxy or mirror`,
    ),
  });
});

test("a fetch does not use a range that it did not ask for", async () => {
  await using server = await HubServer.of(POLICY);
  let answers = 0;
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    if (answers++ === 0) cut(response, body, undefined, 1_000_000);
    else if (answers > 3) return false;
    else
      response.writeHead(206, { "content-range": `bytes 5-${body.length - 1}/${body.length}` }).end(body.subarray(5));
    return true;
  });
  const { folder, lines } = await fetchFrom(server);
  sameAs(server, folder, ALL);
  assert.match(
    lines.join("\n"),
    /model.safetensors: the server sends bytes 5-\d+\/\d+ in place of bytes \d+-\/\d+; trying/,
  );
  assert.doesNotMatch(lines.join("\n"), /another hash/);
});

test("a fetch refuses more bytes than the hub lists", async () => {
  await using server = await HubServer.of(POLICY);
  server.faults.push((request, response, body) => {
    if (!isStorage(request) || body.length === 0) return false;
    response.end(Buffer.concat([body, body]));
    return true;
  });
  await assert.rejects(fetchFrom(server), {
    code: "hash",
    message: `model.safetensors comes with more than the ${WEIGHTS} bytes that the server lists`,
  });
});
test("a fetch waits as Retry-After says, and ends if the wait is too long", async () => {
  await using server = await HubServer.of(POLICY);
  let refused = 1;
  const tooMany =
    (seconds: string): Fault =>
    (request, response) => {
      if (!request.url!.includes("/tree/") || refused-- <= 0) return false;
      refuse(response, 429, "", "", { "retry-after": seconds });
      return true;
    };
  server.faults = [tooMany("1")];
  const before = performance.now();
  const { lines } = await fetchFrom(server);
  assert.ok(performance.now() - before >= 1000);
  const said = `${server.endpoint} answers 429, too many requests; with a token in HF_TOKEN it allows more`;
  assert.ok(lines.includes(`${said}; trying again in 1 s`), lines.join("\n"));
  refused = 1;
  server.faults = [tooMany("3000")];
  await assert.rejects(fetchFrom(server), { code: "network", message: `${said}; it asks to wait for 3000 s` });
});

test("a fetch tries again after status 503, silence and expired signed addresses", async () => {
  await using server = await HubServer.of(POLICY);
  const once = new Set<string>();
  const first = (key: string) => !once.has(key) && once.add(key).has(key);
  const refuseWith = (response: ServerResponse, status: number) => {
    refuse(response, status);
    return true;
  };
  server.faults = [
    (request, response) => request.url!.includes("/revision/") && first("503") && refuseWith(response, 503),
    (request, response, body) => isStorage(request) && body.length > 0 && first("403") && refuseWith(response, 403),
    (request, response, body) => {
      if (!isStorage(request) || body.length === 0 || !first("silence")) return false;
      response.writeHead(200, { "content-length": body.length }).write(body.subarray(0, 1000));
      return true;
    },
  ];
  const { folder, lines } = await fetchFrom(server, { limits: { silenceSeconds: 0.5 } });
  sameAs(server, folder, ALL);
  assert.equal(once.size, 3);
  assert.match(lines.join("\n"), /answers 503; trying again/);
  assert.match(lines.join("\n"), /where http:\S+ keeps the files, answers 403; allow this host/);
  assert.match(lines.join("\n"), /silent for 0.5 s/);
});

test("a fetch without a network ends after the allowed tries with one line that names the remedy", async () => {
  const server = await HubServer.of(POLICY);
  const { endpoint } = server;
  const { host } = new URL(endpoint);
  await server[Symbol.asyncDispose]();
  const env = { HF_ENDPOINT: endpoint };
  await assert.rejects(fetchFrom(undefined, { env, limits: { tries: 2 } }), {
    code: "network",
    message: `cannot reach ${host}: connect ECONNREFUSED ${host}; check the network, or set HTTPS_PROXY for a proxy, HF_ENDPOINT for a mirror`,
  });
});
