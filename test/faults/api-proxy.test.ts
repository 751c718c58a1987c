/** Tests each fault of the proxy, as seen by its client and by the real API server behind it. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import type { IncomingMessage } from "node:http";
import { request } from "node:https";
import { after, afterEach, before, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { type ControlPlane, controlPlaneUnavailable, startControlPlane } from "../cluster/control-plane.ts";
import { ApiProxy, Cut, type WatchEvent } from "./api-proxy.ts";
import { type ApiObject, parseRequest } from "./api-request.ts";

const CONFIG_MAPS = "/api/v1/namespaces/default/configmaps";
const skip = controlPlaneUnavailable();

let cluster: ControlPlane;
let proxy: ApiProxy;
before(async () => {
  if (skip) return;
  cluster = await startControlPlane({ users: { stranger: [] } });
  proxy = await ApiProxy.start(cluster);
});
afterEach(() => {
  proxy?.clearFaults();
  if (proxy) proxy.beforeWrite = proxy.afterWrite = () => {};
  proxy?.thawReads();
});
after(async () => {
  await proxy?.stop();
  await cluster?.stop();
});

const send = (method: string, path: string, body?: unknown, user = "admin", base = proxy.url) =>
  new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { authorization: `Bearer ${cluster.tokenOf(user)}`, "content-type": "application/json" };
    const sent = request(
      `${base}${path}`,
      { method, headers, ca: readFileSync(cluster.caFile), agent: false },
      resolve,
    );
    sent.setTimeout(2000, () => sent.destroy(new Error("no answer")));
    sent.on("error", reject).end(body === undefined ? undefined : JSON.stringify(body));
  });

async function call(method: string, path: string, body?: unknown, user?: string, base?: string) {
  const response = await send(method, path, body, user, base);
  let text = "";
  for await (const chunk of response) text += chunk;
  return { code: response.statusCode, headers: response.headers, object: JSON.parse(text) as ApiObject };
}

const create = (name: string) => call("POST", CONFIG_MAPS, { metadata: { name } });
const update = (name: string, value: string) =>
  call("PUT", `${CONFIG_MAPS}/${name}`, { metadata: { name }, data: { value } });
/** Asks the API server directly. */
const exists = async (name: string) =>
  (await call("GET", `${CONFIG_MAPS}/${name}`, undefined, "admin", cluster.url)).code === 200;

/** Watches the config maps named `prefix…`, from now on. */
async function watch(prefix: string, resourceVersion: string) {
  const response = await send("GET", `${CONFIG_MAPS}?watch=1&resourceVersion=${resourceVersion}`);
  const seen: string[] = [];
  let end: string | undefined;
  let rest = "";
  response.on("data", (chunk) => {
    const lines = (rest + chunk).split("\n");
    rest = lines.pop()!;
    for (const line of lines) {
      let event: WatchEvent | undefined;
      try {
        event = JSON.parse(line);
      } catch {
        seen.push("garbage");
        continue;
      }
      const name = event!.object.metadata?.name ?? String(event!.object.code);
      if (name.startsWith(prefix) || event!.type === "ERROR") seen.push(`${event!.type} ${name}`);
    }
  });
  response.on("end", () => (end = "end"));
  response.on("error", (error) => (end = (error as NodeJS.ErrnoException).code ?? error.message));
  return { seen, ended: () => end, close: () => response.destroy() };
}

async function until(what: string, holds: () => boolean): Promise<void> {
  for (let tries = 0; tries < 400 && !holds(); tries++) await sleep(10);
  assert.ok(holds(), what);
}

test("The proxy passes requests unchanged with their user, and records them", { skip }, async () => {
  assert.equal((await create("plain")).code, 201);
  assert.equal((await create("plain")).code, 409);
  assert.equal((await call("GET", `${CONFIG_MAPS}/plain`)).object.metadata?.name, "plain");
  assert.equal((await call("GET", CONFIG_MAPS, undefined, "stranger")).code, 403);
  assert.equal((await call("POST", `${CONFIG_MAPS}?dryRun=All`, { metadata: { name: "dry" } })).code, 201);
  assert.deepEqual(proxy.creations, ["configmaps default/plain"]);
  assert.deepEqual(
    proxy.requests.map(({ verb, name, code }) => [verb, name, code]),
    [
      ["create", "plain", 201],
      ["create", "plain", 409],
      ["get", "plain", 200],
      ["list", undefined, 403],
      ["create", undefined, 201],
    ],
  );
});

test("A request that the proxy answers with a fault never reaches the API server, and only once", {
  skip,
}, async () => {
  const isCreate = ({ verb }: { verb: string }) => verb === "create";
  proxy.inject(isCreate, { kind: "answer", code: 429, retryAfterSeconds: 3 });
  proxy.inject(isCreate, { kind: "answer", code: 500 });
  const [limited, broken] = [await create("refused"), await create("refused")];
  assert.deepEqual(
    [limited.code, limited.headers["retry-after"], limited.object.reason],
    [429, "3", "TooManyRequests"],
  );
  assert.deepEqual([broken.code, broken.object.kind, broken.object.reason], [500, "Status", "InternalError"]);
  assert.equal(await exists("refused"), false);
  assert.equal(proxy.pendingFaults, 0);
  assert.equal((await create("refused")).code, 201);
});

test("After a lost answer the API server has done the write, and the client does not know", { skip }, async () => {
  proxy.inject(({ name }) => name === "reset", { kind: "lost", how: "reset" });
  proxy.inject(({ name }) => name === "hung", { kind: "lost", how: "hang" });
  proxy.inject(({ name }) => name === "gateway", { kind: "lost", how: "504" });
  await assert.rejects(create("reset"), { code: "ECONNRESET" });
  await assert.rejects(create("hung"), /no answer/);
  assert.equal((await create("gateway")).code, 504);
  for (const name of ["reset", "hung", "gateway"]) assert.ok(await exists(name), name);
});

test("The hooks run before and after every write, and may cut it", { skip }, async () => {
  const steps: string[] = [];
  proxy.beforeWrite = async ({ name }) => {
    steps.push(`before ${name} ${await exists(name!)}`);
    if (name === "cut-before") throw new Cut();
  };
  proxy.afterWrite = async ({ name, code }) => {
    steps.push(`after ${name} ${code} ${await exists(name!)}`);
    if (name === "cut-after") throw new Cut();
  };
  await create("hooked");
  await assert.rejects(create("cut-before"));
  await assert.rejects(create("cut-after"));
  await call("GET", CONFIG_MAPS);
  assert.deepEqual(steps, [
    "before hooked false",
    "after hooked 201 true",
    "before cut-before false",
    "before cut-after false",
    "after cut-after 201 true",
  ]);
});

test("The proxy resets, stalls, expires, corrupts, drops and delays the events of watches", { skip }, async () => {
  const now = (await call("GET", CONFIG_MAPS)).object.metadata!.resourceVersion!;
  const watches = {
    reset: await watch("w", now),
    stalled: await watch("w", now),
    expired: await watch("w", now),
    garbage: await watch("w", now),
    dropped: await watch("w", now),
    late: await watch("w", now),
  };
  const [reset, stalled, expired, garbage, dropped, late] = proxy.requests.filter(({ verb }) => verb === "watch");
  proxy.onEvent = ({ object, type }, of) => {
    if (!object.metadata?.name?.startsWith("w")) return undefined;
    if (of === expired) return { kind: "expire" };
    if (of === garbage) return { kind: "garbage" };
    if (of === dropped && type === "ADDED") return { kind: "drop" };
    if (of === late && type === "ADDED") return { kind: "delay", seconds: 0.5 };
  };
  assert.equal(
    proxy.resetWatches((of) => of === reset),
    1,
  );
  assert.equal(
    proxy.stallWatches((of) => of === stalled),
    1,
  );
  await create("w");
  await update("w", "changed");
  await until("the watch without an early fault is there", () => watches.dropped.seen.length > 0);
  assert.deepEqual(watches.dropped.seen, ["MODIFIED w"]);
  assert.deepEqual(watches.late.seen, [], "the event was not late");
  await until("late events come, in order", () => watches.late.seen.length === 2);
  assert.deepEqual(watches.late.seen, ["ADDED w", "MODIFIED w"]);
  assert.deepEqual([watches.reset.seen, watches.reset.ended()], [[], "ECONNRESET"]);
  assert.deepEqual([watches.stalled.seen, watches.stalled.ended()], [[], undefined]);
  assert.deepEqual([watches.expired.seen, watches.expired.ended()], [["ERROR 410"], "end"]);
  assert.deepEqual([watches.garbage.seen, watches.garbage.ended()], [["garbage"], "end"]);
  for (const { close } of Object.values(watches)) close();
});

test("Frozen reads show the state at the freeze, and thawed reads show the present state", { skip }, async () => {
  await create("frozen-old");
  const { object: then } = await update("frozen-old", "then");
  const seen = await watch("frozen", then.metadata!.resourceVersion!);
  await proxy.freezeReads();
  await update("frozen-old", "now");
  await create("frozen-new");
  const names = async () => {
    const { object } = await call("GET", `${CONFIG_MAPS}?limit=500`);
    return object.items!.map(({ metadata }) => metadata!.name).filter((name) => name!.startsWith("frozen"));
  };
  assert.deepEqual(await names(), ["frozen-old"]);
  const old = (await call("GET", `${CONFIG_MAPS}/frozen-old`)).object;
  assert.deepEqual([old.kind, old.apiVersion, old.data], ["ConfigMap", "v1", { value: "then" }]);
  assert.equal((await call("GET", `${CONFIG_MAPS}/frozen-new`)).code, 404);
  assert.equal((await create("frozen-new")).code, 409, "writes are of the present");
  assert.deepEqual(seen.seen, []);
  proxy.thawReads();
  assert.deepEqual(await names(), ["frozen-new", "frozen-old"]);
  await until("the watch tells the rest", () => seen.seen.length === 2);
  assert.deepEqual(seen.seen, ["MODIFIED frozen-old", "ADDED frozen-new"]);
  seen.close();
});

test("parseRequest reads the paths of the API", () => {
  const cases: [method: string, path: string, expected: string][] = [
    ["GET", "/api/v1/pods?watch=true", "watch pods"],
    ["GET", "/api/v1/namespaces/default", "get namespaces default"],
    ["PUT", "/api/v1/namespaces/default/finalize", "update namespaces default finalize"],
    ["GET", "/apis/batch/v1/namespaces/ns/jobs", "list batch/jobs ns"],
    [
      "PATCH",
      "/apis/longrun.dev/v1alpha1/namespaces/ns/trainingruns/a/status",
      "patch longrun.dev/trainingruns ns a status",
    ],
    ["DELETE", "/api/v1/namespaces/ns/pods/p", "delete pods ns p"],
    ["DELETE", "/api/v1/namespaces/ns/pods?labelSelector=a", "deletecollection pods ns"],
    ["GET", "/readyz?verbose", "get"],
  ];
  for (const [method, path, expected] of cases) {
    const { verb, resource, namespace, name, subresource } = parseRequest(method, path, Buffer.alloc(0));
    assert.equal([verb, resource, namespace, name, subresource].filter(Boolean).join(" "), expected);
  }
});
