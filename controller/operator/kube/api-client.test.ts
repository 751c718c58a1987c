/** Tests every verb with a real API server, and faults of the connection. */
import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, afterEach, before, test } from "node:test";
import { KubeConfig } from "@kubernetes/client-node";
import { type ControlPlane, controlPlaneUnavailable, startControlPlane } from "../../../test/cluster/control-plane.ts";
import { ApiProxy } from "../../../test/faults/api-proxy.ts";
import { TcpProxy } from "../../../test/faults/tcp-proxy.ts";
import { ApiClient, type ApiClientOptions, type RequestObservation } from "./api-client.ts";
import { ApiError, isAlreadyExists, isConflict, isExpired } from "./errors.ts";
import { KubeMetrics } from "./metrics.ts";
import { CONFIG_MAP, type ConfigMap, NAMESPACE, POD, type Pod, pathOf, TRAINING_RUN } from "./resources.ts";

const skip = controlPlaneUnavailable();

let cluster: ControlPlane;
let faults: ApiProxy;
const clients: ApiClient[] = [];

before(async () => {
  if (skip) return;
  cluster = await startControlPlane({ users: { stranger: [] } });
  faults = await ApiProxy.start(cluster);
});
afterEach(() => {
  faults?.clearFaults();
  for (const client of clients.splice(0)) client.close();
});
after(async () => {
  await faults?.stop();
  await cluster?.stop();
});

function clientOf(options: ApiClientOptions = {}, server = faults.url, user: object = { token: cluster.token }) {
  const config = new KubeConfig();
  config.loadFromClusterAndUser(
    { name: "test", server, caFile: cluster.caFile, skipTLSVerify: false },
    { name: "test", ...user },
  );
  const client = new ApiClient(config, options);
  clients.push(client);
  return client;
}

const configMap = (name: string, value: string, metadata: object = {}): ConfigMap => ({
  metadata: { namespace: "default", name, ...metadata },
  data: { value },
});
const key = (name: string) => ({ namespace: "default", name });
async function all(watch: AsyncIterable<unknown>): Promise<void> {
  for await (const _event of watch);
}
const fails = (status: number, reason: string) => (error: unknown) => {
  assert.ok(error instanceof ApiError, String(error));
  assert.deepEqual([error.status, error.reason], [status, reason], error.message);
  return true;
};

test("The client builds the paths of the API", () => {
  for (const [path, expected] of [
    [pathOf(POD), "/api/v1/pods"],
    [pathOf(POD, { namespace: "n", name: "p" }), "/api/v1/namespaces/n/pods/p"],
    [pathOf(POD, { namespace: "n", name: "p" }, "status"), "/api/v1/namespaces/n/pods/p/status"],
    [pathOf(TRAINING_RUN, { namespace: "n" }), "/apis/longrun.dev/v1alpha1/namespaces/n/trainingruns"],
    [pathOf(NAMESPACE, { name: "n", namespace: "m" }), "/api/v1/namespaces/n"],
    [pathOf(CONFIG_MAP, { namespace: "n", name: "../x?y" }), "/api/v1/namespaces/n/configmaps/..%2Fx%3Fy"],
  ])
    assert.equal(path, expected);
});

test("The client gets, creates, applies, patches and deletes an object", { skip }, async () => {
  const client = clientOf();
  assert.equal(await client.get(CONFIG_MAP, key("verbs")), undefined);
  const made = await client.create(CONFIG_MAP, configMap("verbs", "1"));
  assert.equal(made.metadata.uid?.length, 36);
  await assert.rejects(client.create(CONFIG_MAP, configMap("verbs", "1")), (error) => isAlreadyExists(error));
  const applied = await client.apply(CONFIG_MAP, configMap("verbs", "2"));
  assert.equal(applied.data?.value, "2");
  const patched = await client.mergePatch<ConfigMap>(CONFIG_MAP, key("verbs"), { data: { more: "3" } });
  assert.deepEqual((await client.get<ConfigMap>(CONFIG_MAP, key("verbs")))?.data, { value: "2", more: "3" });
  assert.equal((await client.apply(CONFIG_MAP, configMap("verbs", "5"), { dryRun: true })).data?.value, "5");
  const { uid, resourceVersion } = patched.metadata;
  assert.equal((await client.get(CONFIG_MAP, key("verbs")))?.metadata.resourceVersion, resourceVersion);
  assert.equal(await client.delete(CONFIG_MAP, key("verbs"), { uid: uid! }), true);
  assert.equal(await client.delete(CONFIG_MAP, key("verbs"), { uid: uid! }), false);
});

test("Server-side apply keeps others' fields or refuses them without force, and drops fields that we no longer give", {
  skip,
}, async () => {
  const client = clientOf();
  const other = `${pathOf(CONFIG_MAP, key("shared"))}?fieldManager=somebody`;
  await client.request({
    method: "PATCH",
    path: other,
    contentType: "application/apply-patch+yaml",
    body: { apiVersion: "v1", kind: "ConfigMap", ...configMap("shared", "theirs"), data: { theirs: "1", both: "1" } },
  });
  const ours = (data: Record<string, string>) => ({ ...configMap("shared", ""), data });
  await assert.rejects(client.apply(CONFIG_MAP, ours({ both: "2" }), { force: false }), fails(409, "Conflict"));
  await client.apply(CONFIG_MAP, ours({ both: "2", ours: "1" }));
  const last = await client.apply(CONFIG_MAP, ours({ both: "2" }));
  assert.deepEqual(last.data, { theirs: "1", both: "2" });
});

test("uid and resourceVersion are preconditions of every write", { skip }, async () => {
  const client = clientOf();
  const first = await client.create(CONFIG_MAP, configMap("twice", "1"));
  await client.delete(CONFIG_MAP, key("twice"), { uid: first.metadata.uid! });
  // The object is gone: an apply for its uid must not create a new one.
  const stale = configMap("twice", "2", { uid: first.metadata.uid });
  await assert.rejects(client.apply(CONFIG_MAP, stale), (error) => isConflict(error));
  assert.equal(await client.get(CONFIG_MAP, key("twice")), undefined);
  const second = await client.create(CONFIG_MAP, configMap("twice", "3"));
  await client.mergePatch(CONFIG_MAP, key("twice"), { data: { value: "4" } });
  const old = { uid: second.metadata.uid!, resourceVersion: second.metadata.resourceVersion! };
  for (const write of [
    () => client.apply(CONFIG_MAP, stale),
    () => client.apply(CONFIG_MAP, configMap("twice", "5", old)),
    () => client.mergePatch(CONFIG_MAP, key("twice"), { metadata: old, data: { value: "5" } }),
    () => client.mergePatch(CONFIG_MAP, key("twice"), { metadata: { uid: first.metadata.uid }, data: { value: "5" } }),
    () => client.delete(CONFIG_MAP, key("twice"), { uid: first.metadata.uid! }),
    () => client.delete(CONFIG_MAP, key("twice"), old),
  ])
    await assert.rejects(write, (error) => isConflict(error), String(write));
  assert.equal((await client.get<ConfigMap>(CONFIG_MAP, key("twice")))?.data?.value, "4");
});

test("The client lists in pages and by label, and ends a watch in time or when it expires", {
  skip,
}, async () => {
  const client = clientOf();
  for (const name of ["p1", "p2", "p3"])
    await client.create(CONFIG_MAP, configMap(name, "", { labels: { page: "y" } }));
  const select = { namespace: "default", labelSelector: "page=y" };
  const first = await client.list<ConfigMap>(CONFIG_MAP, { ...select, limit: 2 });
  const rest = await client.list<ConfigMap>(CONFIG_MAP, { ...select, limit: 2, continue: first.metadata.continue! });
  const items = [...first.items, ...rest.items];
  assert.deepEqual(
    items.map(({ kind, metadata }) => `${kind} ${metadata.name}`),
    ["ConfigMap p1", "ConfigMap p2", "ConfigMap p3"],
  );
  const seen: string[] = [];
  const startedMs = performance.now();
  const watch = client.watch<ConfigMap>(CONFIG_MAP, {
    ...select,
    resourceVersion: first.metadata.resourceVersion,
    timeoutSeconds: 1,
    onOpen: () => void client.mergePatch(CONFIG_MAP, key("p2"), { data: { value: "ä𝄞" } }),
  });
  for await (const { type, object } of watch) seen.push(`${type} ${object.metadata.name ?? ""} ${object.data?.value}`);
  assert.deepEqual(
    seen.filter((line) => !line.startsWith("BOOKMARK")),
    ["MODIFIED p2 ä𝄞"],
  );
  assert.ok(performance.now() - startedMs < 8000);
  faults.onEvent = () => ({ kind: "expire" });
  const expired = client.watch(CONFIG_MAP, { ...select, resourceVersion: "1", timeoutSeconds: 5 });
  await assert.rejects(all(expired), (error) => isExpired(error));
});

test("The client repeats 429 and 503 with Retry-After, and throws long waits, other errors and lost connections", {
  skip,
}, async () => {
  const client = clientOf({ maxRetries: 2 });
  const get = () => client.get(CONFIG_MAP, key("kube-root-ca.crt"));
  const isGet = ({ verb }: { verb: string }) => verb === "get";
  faults.inject(isGet, { kind: "answer", code: 429, retryAfterSeconds: 1 });
  faults.inject(isGet, { kind: "answer", code: 503, retryAfterSeconds: 0 });
  const startedMs = performance.now();
  await get();
  assert.ok(performance.now() - startedMs > 990);
  faults.inject(isGet, { kind: "answer", code: 429, retryAfterSeconds: 0 }, 3);
  await assert.rejects(get(), fails(429, "TooManyRequests"));
  assert.equal(faults.pendingFaults, 0);
  faults.inject(isGet, { kind: "answer", code: 429, retryAfterSeconds: 60 });
  await assert.rejects(get(), (error: ApiError) => error.retryAfterSeconds === 60);
  faults.inject(isGet, { kind: "answer", code: 500 }, 1);
  await assert.rejects(get(), fails(500, "InternalError"));
  faults.inject(isGet, { kind: "answer", code: 503 }, 1);
  await assert.rejects(get(), fails(503, "Unknown"));
  faults.inject(isGet, { kind: "lost", how: "reset" });
  await assert.rejects(get(), fails(0, "ECONNRESET"));
  await get();
});

test("A request without an answer in time fails; if the server has committed it, the repetition is refused", {
  skip,
}, async () => {
  const client = clientOf({ timeoutSeconds: 0.5 });
  faults.inject(({ verb }) => verb === "create", { kind: "lost", how: "hang" });
  await assert.rejects(client.create(CONFIG_MAP, configMap("slow", "1")), (error: ApiError) => {
    assert.match(error.message, /POST .*configmaps.*: no answer within 0\.5 s/);
    return fails(0, "Timeout")(error);
  });
  await assert.rejects(client.create(CONFIG_MAP, configMap("slow", "1")), (error) => isAlreadyExists(error));
});

test("An abort ends a request, a wait for the rate limit and a watch", { skip }, async () => {
  const client = clientOf({ qps: 1, burst: 2 });
  faults.inject(({ verb }) => verb === "get", { kind: "lost", how: "hang" });
  const abortSoon = () => ({ signal: AbortSignal.timeout(100) });
  const startedMs = performance.now();
  await assert.rejects(client.get(CONFIG_MAP, key("a"), abortSoon()));
  const watch = client.watch(CONFIG_MAP, { resourceVersion: "0", timeoutSeconds: 60, ...abortSoon() });
  await all(watch);
  await assert.rejects(client.get(CONFIG_MAP, key("a"), abortSoon()), { name: "AbortError" });
  assert.ok(performance.now() - startedMs < 3000);
});

test("The client sends at most qps requests a second after a burst", { skip }, async () => {
  const client = clientOf({ qps: 20, burst: 10 });
  const startedMs = performance.now();
  await Promise.all(Array.from({ length: 30 }, () => client.get(CONFIG_MAP, key("none"))));
  const seconds = (performance.now() - startedMs) / 1000;
  assert.ok(seconds > 0.98, `30 requests took ${seconds} s; 10 at once and 20 a second are 1 s`);
});

test("The client keeps connections open; a reset one costs at most one failure", { skip }, async (t) => {
  const tcp = await TcpProxy.start(cluster.url);
  t.after(() => tcp.stop());
  const client = clientOf({}, tcp.url);
  for (let i = 0; i < 20; i++) await client.get(CONFIG_MAP, key("none"));
  assert.equal(tcp.accepted, 1);
  tcp.reset();
  await client.get(CONFIG_MAP, key("none")).catch(() => {});
  for (let i = 0; i < 5; i++) await client.get(CONFIG_MAP, key("none"));
  assert.equal(tcp.accepted, 2);
});

test("beforeWrite holds back writes, not reads, before anything is sent over an open connection", {
  skip,
}, async (t) => {
  const tcp = await TcpProxy.start(cluster.url);
  t.after(() => tcp.stop());
  let refused: Error | undefined = new Error("not the leader");
  let connectionsThen = 0;
  const client = clientOf(
    {
      beforeWrite: () => {
        connectionsThen = tcp.accepted;
        if (refused) throw refused;
      },
    },
    tcp.url,
  );
  await assert.rejects(client.create(CONFIG_MAP, configMap("held", "1")), refused);
  assert.equal(connectionsThen, 1, "asked after the handshake");
  assert.equal(await client.get(CONFIG_MAP, key("held")), undefined);
  refused = undefined;
  const { metadata } = await client.create(CONFIG_MAP, configMap("held", "1"));
  refused = new Error("no longer");
  const uid = metadata.uid!;
  for (const write of [
    () => client.apply(CONFIG_MAP, configMap("held", "2")),
    () => client.mergePatch(CONFIG_MAP, key("held"), { data: { value: "2" } }),
    () => client.delete(CONFIG_MAP, key("held"), { uid }),
  ])
    await assert.rejects(write, refused);
  assert.equal((await client.get<ConfigMap>(CONFIG_MAP, key("held")))?.data?.value, "1");
});

test("The client verifies TLS, reports a refused token, and asks for a new one", {
  skip,
}, async (t) => {
  const untrusting = new KubeConfig();
  untrusting.loadFromClusterAndUser(
    { name: "test", server: cluster.url, skipTLSVerify: false },
    { name: "test", token: cluster.token },
  );
  const stranger = new ApiClient(untrusting);
  t.after(() => stranger.close());
  await assert.rejects(stranger.get(CONFIG_MAP, key("a")), (error: ApiError) =>
    /SIGNED|UNABLE|issuer/i.test(error.reason),
  );
  const forbidden = clientOf({}, cluster.url, { token: cluster.tokenOf("stranger") });
  await assert.rejects(forbidden.get(CONFIG_MAP, key("a")), fails(403, "Forbidden"));

  // A plugin whose first token is refused: it is called again, and the request succeeds.
  const folder = mkdtempSync(join(tmpdir(), "longrun-token-"));
  t.after(() => rmSync(folder, { recursive: true }));
  const plugin = join(folder, "plugin");
  const credential = (token: string) =>
    JSON.stringify({ status: { token, expirationTimestamp: "2020-01-01T00:00:00Z" } });
  writeFileSync(join(folder, "credential"), credential(cluster.token));
  writeFileSync(
    plugin,
    `[ -e '${folder}/asked' ] && exec cat '${folder}/credential'; touch '${folder}/asked'; echo '${credential("wrong")}'`,
  );
  const user = { exec: { command: "sh", args: [plugin], env: [] } };
  const byPlugin = clientOf({}, cluster.url, user);
  assert.equal(await byPlugin.get(CONFIG_MAP, key("none")), undefined);
});

test("The client counts requests under the well-known names, and passes warnings on", { skip }, async () => {
  const metrics = new KubeMetrics();
  const warnings: string[] = [];
  const observed: RequestObservation[] = [];
  const client = clientOf({
    onRequest: (request) => {
      observed.push(request);
      metrics.observeRequest(request);
    },
    onWarning: (text) => warnings.push(text),
  });
  await client.get(CONFIG_MAP, key("none"));
  faults.inject(({ verb }) => verb === "get", { kind: "lost", how: "reset" });
  await client.get(CONFIG_MAP, key("none")).catch(() => {});
  const pod = {
    metadata: { namespace: "default", name: "warned" },
    spec: {
      containers: [{ name: "a", image: "a", env: [{ name: "TWICE" }, { name: "TWICE" }] }],
    },
  } as Pod;
  await client.create(POD, pod);
  assert.match(warnings.join(), /hides previous definition/);
  assert.deepEqual(
    observed.map(({ method, resource, code }) => `${method} ${resource} ${code}`),
    ["GET configmaps 404", "GET configmaps <error>", "POST pods 201"],
  );
  const text = await metrics.registry.metrics();
  const host = new URL(faults.url).host;
  assert.ok(text.includes(`rest_client_requests_total{code="404",method="GET",host="${host}"} 1\n`));
  assert.ok(text.includes(`rest_client_request_duration_seconds_count{verb="POST",host="${host}"} 1\n`));
});
