/** Tests the cache with a real API server, through proxies that break connections and watches. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { ApiClient } from "../api-client.ts";
import { CONFIG_MAP, type ConfigMap } from "../resources.ts";
import type { KubeObject } from "../types.ts";
import {
  admin,
  BOUND_SECONDS,
  cluster,
  configOf,
  faults,
  lists,
  skip,
  start,
  tcp,
  until,
  watches,
} from "./reflector.fixture.ts";

test("The cache lists in pages, follows every change, and keeps raw JSON without managedFields", {
  skip,
}, async (t) => {
  const seed = Array.from({ length: 7 }, (_, i) => `seed-${i}`);
  const { namespace, reflector, told, synced, create, update, remove, caughtUp } = await start(t, {
    server: faults.url,
    seed,
    pageSize: 3,
    indexLabel: "longrun.dev/run",
  });
  await synced();
  assert.equal(lists(namespace), 3);
  assert.deepEqual(
    told.splice(0).sort(),
    seed.map((name) => `+ ${name}`),
  );
  const made = await create("a", { labels: { "longrun.dev/run": "r1" } });
  const owner = { apiVersion: "v1", kind: "ConfigMap", name: "a", uid: made.metadata.uid!, controller: true };
  await create("child", { ownerReferences: [owner] });
  await update("a", "1");
  await update("a", "2");
  await remove("seed-3");
  await caughtUp();
  assert.deepEqual(told, ["+ a", "+ child", "a: 0 -> 1", "a: 1 -> 2", "- seed-3"]);
  assert.equal(lists(namespace), 3);
  const cached = reflector.get(`${namespace}/a`)!;
  assert.equal(typeof cached.metadata.creationTimestamp, "string");
  assert.equal(typeof reflector.get(`${namespace}/seed-1`)!.metadata.creationTimestamp, "string");
  for (const object of reflector.list()) {
    assert.ok(!("managedFields" in object.metadata));
    assert.deepEqual([object.apiVersion, object.kind], ["v1", "ConfigMap"]);
  }
  assert.deepEqual(reflector.byLabel("r1"), [cached]);
  assert.deepEqual(reflector.byLabel("r2"), []);
  assert.deepEqual(
    reflector.byOwner(made.metadata.uid!).map(({ metadata }) => metadata.name),
    ["child"],
  );
  await admin.mergePatch(CONFIG_MAP, { namespace, name: "a" }, { metadata: { labels: { "longrun.dev/run": "r2" } } });
  await remove("child");
  await caughtUp();
  assert.deepEqual(reflector.byLabel("r1"), []);
  assert.equal(reflector.byLabel("r2").length, 1);
  assert.deepEqual(reflector.byOwner(made.metadata.uid!), []);
});

test("A watch that is reset continues where it broke, without a list", { skip }, async (t) => {
  const { namespace, told, synced, create, update, caughtUp } = await start(t, { server: faults.url });
  await synced();
  await create("a");
  await caughtUp();
  faults.onEvent = (event) =>
    event.object.metadata?.name === "b" && event.type === "ADDED" ? { kind: "reset" } : undefined;
  await create("b");
  await until(
    () => watches(namespace) === 2,
    () => "no second watch",
  );
  faults.clearFaults();
  await update("a", "1");
  await caughtUp();
  assert.deepEqual(told, ["+ a", "+ b", "a: 0 -> 1"]);
  assert.equal(lists(namespace), 1);
});

test("After 410 a new list reports the objects that were deleted, replaced and added meanwhile", {
  skip,
}, async (t) => {
  const { namespace, told, synced, create, update, remove, caughtUp } = await start(t, {
    server: faults.url,
    seed: ["gone", "replaced", "same", "changed"],
  });
  await synced();
  told.length = 0;
  // Nothing passes until the 410, so that all events are missed.
  let isOver = false;
  faults.onEvent = (event) => {
    if (isOver) return undefined;
    isOver = event.object.metadata?.name === "trigger";
    return isOver ? { kind: "expire" } : { kind: "drop" };
  };
  await remove("gone");
  await remove("replaced");
  await create("replaced");
  await update("changed", "1");
  await create("trigger");
  await caughtUp();
  assert.deepEqual(told.sort(), ["+ replaced", "+ trigger", "- gone", "- replaced", "changed: 0 -> 1"]);
  assert.equal(lists(namespace), 2);
});

test("An object that is deleted and created again is reported as deleted, then added", { skip }, async (t) => {
  const { told, synced, create, remove, caughtUp, reflector, namespace } = await start(t, {
    server: faults.url,
    seed: ["a"],
  });
  await synced();
  const first = reflector.get(`${namespace}/a`)!.metadata.uid;
  told.length = 0;
  faults.onEvent = (event) => (event.type === "DELETED" ? { kind: "drop" } : undefined);
  await remove("a");
  await create("a");
  await caughtUp();
  assert.deepEqual(told, ["- a", "+ a"]);
  assert.notEqual(reflector.get(`${namespace}/a`)!.metadata.uid, first);
});

test("Garbage in the stream ends the watch, not the cache", { skip }, async (t) => {
  const { told, problems, synced, create, caughtUp } = await start(t, { server: faults.url });
  await synced();
  const kinds = [{ kind: "garbage" } as const];
  faults.onEvent = () => kinds.pop();
  await create("a");
  await create("b");
  await caughtUp();
  assert.deepEqual(told, ["+ a", "+ b"]);
  assert.match(problems[0]!, /is not a whole event/);
});

test("The next list makes up for an event that was lost on the way", { skip }, async (t) => {
  const { told, synced, remove, caughtUp } = await start(t, {
    server: faults.url,
    seed: ["a"],
    watchSeconds: 1,
    relistSeconds: 0.5,
  });
  await synced();
  faults.onEvent = (event) => (event.type === "DELETED" ? { kind: "drop" } : undefined);
  await remove("a");
  await caughtUp();
  assert.deepEqual(told, ["+ a", "- a"]);
});

test("The cache gives up a watch that stays silent", { skip }, async (t) => {
  const { namespace, problems, synced, create, caughtUp, reflector } = await start(t, {
    server: faults.url,
    silenceSeconds: 0.5,
  });
  await synced();
  await until(
    () => watches(namespace) > 0,
    () => "no watch",
  );
  await sleep(100);
  faults.stallWatches((watch) => watch.namespace === namespace);
  await create("a");
  await caughtUp();
  assert.match(problems[0]!, /no data for 0\.5 s/);
  assert.ok(reflector.silentSeconds! < 5);
});

test("After half-open and reset TCP connections the cache catches up within a bound", { skip }, async (t) => {
  const { told, problems, synced, create, caughtUp } = await start(t, { server: tcp.url, silenceSeconds: 0.5 });
  await synced();
  await create("a");
  await caughtUp();
  assert.ok(tcp.freeze() > 0);
  await create("b");
  await caughtUp();
  assert.match(problems.join("\n"), /no data for 0\.5 s/);
  for (let i = 0; i < 5; i++) {
    tcp.reset();
    await create(`c-${i}`);
    await caughtUp();
  }
  tcp.pieceBytes = 7; // TLS records, and the events in them, arrive in tiny pieces
  tcp.reset();
  await create("ü-less".replace("ü", "u"), { annotations: { text: "äöü€𝄞 ".repeat(50) } });
  await caughtUp();
  tcp.pieceBytes = Number.POSITIVE_INFINITY;
  tcp.resetAfterBytes = 300; // in the middle of an event
  await create("d", { annotations: { text: "x".repeat(2000) } });
  await caughtUp();
  assert.equal(new Set(told).size, told.length, "nothing was told twice");
});

test("The cache asks a server that accepts connections and never answers again", { skip }, async (t) => {
  tcp.mute = true;
  t.after(() => (tcp.mute = false));
  const { problems, reflector, synced } = await start(t, { server: tcp.url, seed: ["a"] });
  await until(
    () => problems.length > 0,
    () => "no failure",
  );
  assert.match(problems[0]!, /no answer within 2 s/);
  assert.equal(reflector.hasSynced, false);
  tcp.mute = false;
  await synced();
  assert.equal(reflector.get(`${[...reflector.list()][0]!.metadata.namespace}/a`)!.metadata.name, "a");
});

test("Refused lists and watches are repeated with back-off and Retry-After; hasSynced waits for a whole list", {
  skip,
}, async (t) => {
  faults.inject(({ verb }) => verb === "list", { kind: "answer", code: 500 }, 2);
  faults.inject(({ verb, path }) => verb === "list" && path.includes("continue="), { kind: "lost", how: "reset" }, 1);
  faults.inject(({ verb }) => verb === "watch", { kind: "answer", code: 429, retryAfterSeconds: 1 }, 1);
  const { told, problems, reflector, synced, create, caughtUp } = await start(t, {
    server: faults.url,
    seed: ["a", "b", "c", "d"],
    pageSize: 2,
  });
  const failures = () => problems.length;
  await until(
    () => failures() >= 3,
    () => problems.join("; "),
  );
  await synced();
  assert.equal(reflector.size >= 4, true);
  const startedMs = performance.now();
  await create("e");
  await caughtUp();
  assert.deepEqual(told, ["+ a", "+ b", "+ c", "+ d", "+ e"]);
  assert.match(problems.join("\n"), /429/);
  assert.ok(performance.now() - startedMs < BOUND_SECONDS * 1000);
});

test("Pages that outlive the server's limit are read as one list", { skip }, async (t) => {
  faults.inject(({ verb, path }) => verb === "list" && path.includes("continue="), {
    kind: "answer",
    code: 410,
    reason: "Expired",
  });
  const { namespace, told, synced } = await start(t, { server: faults.url, seed: ["a", "b", "c"], pageSize: 2 });
  await synced();
  assert.deepEqual(told.sort(), ["+ a", "+ b", "+ c"]);
  const paths = faults.requests.filter((request) => request.namespace === namespace).map(({ path }) => path);
  assert.equal(paths.filter((path) => !path.includes("watch") && !path.includes("limit=")).length, 1);
});

test("A handler that throws loses only its own call", { skip }, async (t) => {
  const names: string[] = [];
  const faultKinds: string[] = [];
  const { synced, create, caughtUp, problems } = await start(t, {
    server: faults.url,
    onFault: (kind) => faultKinds.push(kind),
    onChange: (key) => {
      names.push(key.split("/")[1]!);
      if (key.endsWith("/bad")) throw new Error("boom");
    },
  });
  await synced();
  await create("bad");
  await create("good");
  await caughtUp();
  assert.deepEqual(names.slice(-2), ["bad", "good"]);
  assert.deepEqual(faultKinds, ["handler"]);
  assert.equal(problems.length, 1);
});

test("A list that is older than the cache is refused at first, and believed if it stays so", { skip }, async (t) => {
  const client = new ApiClient(configOf(cluster.url));
  let old: Awaited<ReturnType<typeof client.list<ConfigMap>>> | undefined;
  let liesBehind = false;
  let asked = 0;
  const list = client.list.bind(client);
  client.list = (async (resource, options) => {
    asked += 1;
    old ??= await list<ConfigMap>(resource, options);
    return structuredClone(liesBehind ? old : await list<ConfigMap>(resource, options));
  }) as typeof client.list;
  t.after(() => client.close());
  const options = { client, server: cluster.url, seed: ["a", "b"], watchSeconds: 1, relistSeconds: 0.1 };
  const { told, problems, synced, update, remove, caughtUp } = await start(t, options);
  await synced();
  await update("a", "1");
  await remove("b");
  await caughtUp();
  told.length = 0;
  liesBehind = true;
  await until(
    () => problems.length >= 2,
    () => `asked ${asked} times, never behind`,
  );
  assert.match(problems[0]!, /LIST configmaps: at version \d+, older than \d+ seen before/);
  assert.deepEqual(told, []);
  await until(
    () => told.length > 0,
    () => "never believed",
  );
  assert.ok(problems.length >= 4);
  assert.deepEqual(told.slice(0, 2).sort(), ["+ b", "a: 1 -> 0"]);
  liesBehind = false;
  await caughtUp();
});

test("The cache has only selected objects, and reports an object that leaves the selection as deleted", {
  skip,
}, async (t) => {
  const { namespace, told, synced, create, reflector } = await start(t, {
    server: faults.url,
    labelSelector: "app.kubernetes.io/managed-by=longrun",
  });
  await synced();
  await create("other");
  await create("ours", { labels: { "app.kubernetes.io/managed-by": "longrun" } });
  await until(
    () => reflector.size === 1,
    () => told.join("; "),
  );
  const labels = { "app.kubernetes.io/managed-by": null };
  await admin.mergePatch(CONFIG_MAP, { namespace, name: "ours" }, { metadata: { labels } });
  await until(
    () => reflector.size === 0,
    () => told.join("; "),
  );
  assert.deepEqual(told, ["+ ours", "- ours"]);
});

test("transform decides which fields the cache keeps", { skip }, async (t) => {
  const { namespace, reflector, synced } = await start(t, {
    server: faults.url,
    seed: ["a"],
    transform: (object) => ({ metadata: object.metadata }) as ConfigMap,
    onChange: () => {},
  });
  await synced();
  assert.deepEqual(Object.keys(reflector.get(`${namespace}/a`) as KubeObject), ["metadata"]);
});
