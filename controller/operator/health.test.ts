import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, describe, test } from "node:test";
import { Counter, Registry } from "prom-client";
import { serveHealth } from "./health.ts";

describe("serveHealth", () => {
  const problems = { sick: [] as string[], unready: [] as string[] };
  let server: Awaited<ReturnType<typeof serveHealth>>;

  before(async () => {
    const registry = new Registry();
    new Counter({ name: "looks_total", help: "Looks", registers: [registry] }).inc(3);
    const { sick, unready } = problems;
    server = await serveHealth({
      address: { host: "127.0.0.1", port: 0 },
      registry,
      sick: () => sick,
      unready: () => unready,
    });
  });
  after(() => server.close());

  const CASES: [path: string, sick: string[], unready: string[], status: number, body: RegExp][] = [
    ["/healthz", [], [], 200, /^ok\n$/],
    ["/readyz", [], [], 200, /^ok\n$/],
    ["/healthz", [], ["pods are not listed yet"], 200, /^ok\n$/],
    ["/readyz", [], ["pods are not listed yet"], 503, /^pods are not listed yet\n$/],
    ["/healthz", ["a reconcile has taken 400 s"], [], 503, /400 s/],
    ["/readyz", ["a reconcile has taken 400 s"], ["pods"], 503, /400 s\npods/],
    ["/metrics", [], [], 200, /looks_total 3/],
    ["/", [], [], 404, /\/healthz/],
  ];
  for (const [path, sick, unready, status, body] of CASES)
    test(`${path} with ${JSON.stringify([...sick, ...unready])} answers ${status}`, async () => {
      problems.sick.splice(0, Number.POSITIVE_INFINITY, ...sick);
      problems.unready.splice(0, Number.POSITIVE_INFINITY, ...unready);
      const answer = await fetch(`http://127.0.0.1:${server.port}${path}`);
      assert.equal(answer.status, status);
      assert.match(await answer.text(), body);
    });
});

test("Bad addresses and slow clients stop neither the process nor its probes", async (t) => {
  const options = { registry: new Registry(), sick: () => [], unready: () => [] };
  const { port, close } = await serveHealth({ ...options, address: { host: "127.0.0.1", port: 0 } });
  t.after(close);
  const said = async (request: string) => {
    const socket = connect(port, "127.0.0.1");
    socket.write(request);
    const [answer] = (await once(socket, "data")) as [Buffer];
    socket.destroy();
    return answer.toString("latin1").split("\r\n")[0];
  };
  for (const path of ["//", "///", "http://[", "/%zz", "*"])
    assert.match((await said(`GET ${path} HTTP/1.1\r\nHost: x\r\n\r\n`))!, /^HTTP\/1\.1 40[04] /, path);
  const slow = Array.from({ length: 300 }, () => connect(port, "127.0.0.1").on("error", () => {}));
  t.after(() => {
    for (const socket of slow) socket.destroy();
  });
  for (const socket of slow) socket.write("GET /healthz HTTP/1.1\r\nHo");
  assert.equal((await fetch(`http://127.0.0.1:${port}/healthz`)).status, 200);
});

test("An address in use is an error", async (t) => {
  const options = { registry: new Registry(), sick: () => [], unready: () => [] };
  const first = await serveHealth({ ...options, address: { host: "127.0.0.1", port: 0 } });
  t.after(() => first.close());
  await assert.rejects(serveHealth({ ...options, address: { host: "127.0.0.1", port: first.port } }), /EADDRINUSE/);
});
