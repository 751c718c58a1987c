/** Tests events with a real API server. */
import assert from "node:assert/strict";
import { after, afterEach, before, type TestContext, test } from "node:test";
import { KubeConfig } from "@kubernetes/client-node";
import {
  type ControlPlane,
  controlPlaneUnavailable,
  startControlPlane,
} from "../../../../test/cluster/control-plane.ts";
import { ApiProxy } from "../../../../test/faults/api-proxy.ts";
import { ApiClient } from "../api-client.ts";
import { CONFIG_MAP, type ConfigMap, EVENT, NAMESPACE } from "../resources.ts";
import type { KubeObject } from "../types.ts";
import { EventRecorder, type EventRecorderOptions } from "./event-recorder.ts";

const skip = controlPlaneUnavailable();
const SCALED = {
  type: "Normal",
  reason: "ScaledUp",
  action: "Scale",
  note: "scaled actors 2 -> 6: 24 executions wait, 4 slots each",
} as const;

interface StoredEvent extends KubeObject {
  note: string;
  reason: string;
  type: string;
  action: string;
  eventTime: string;
  regarding: { kind: string; name: string; namespace: string; uid: string; apiVersion: string };
  reportingController: string;
  series?: { count: number; lastObservedTime: string };
}

let cluster: ControlPlane;
let faults: ApiProxy;
let client: ApiClient;

before(async () => {
  if (skip) return;
  cluster = await startControlPlane();
  faults = await ApiProxy.start(cluster);
  const config = new KubeConfig();
  config.loadFromFile(await faults.kubeconfigOf());
  client = new ApiClient(config, { qps: 1000, burst: 1000, maxRetries: 0 });
});
afterEach(() => faults?.clearFaults());
after(async () => {
  client?.close();
  await faults?.stop();
  await cluster?.stop();
});

let count = 0;
async function start(t: TestContext, options: Partial<EventRecorderOptions> = {}) {
  count += 1;
  const namespace = `events-${count}`;
  await client.create(NAMESPACE, { metadata: { name: namespace } });
  const about = await client.create<ConfigMap>(CONFIG_MAP, { metadata: { namespace, name: "quickstart" }, data: {} });
  let nowMs = Date.now();
  const dropped: string[] = [];
  const recorder = new EventRecorder({
    client,
    now: () => nowMs,
    onDropped: (reason) => dropped.push(reason),
    ...options,
  });
  t.after(() => recorder.close());
  return {
    recorder,
    about,
    dropped,
    pass: (seconds: number) => (nowMs += seconds * 1000),
    async stored() {
      await recorder.flush();
      return (await client.list<StoredEvent>(EVENT, { namespace })).items;
    },
  };
}

test("An event names the object, the decision and the reason", { skip }, async (t) => {
  const { recorder, about, stored } = await start(t);
  recorder.record(about, SCALED);
  const [event] = await stored();
  assert.deepEqual(
    [event!.type, event!.reason, event!.action, event!.note, event!.reportingController],
    ["Normal", "ScaledUp", "Scale", SCALED.note, "longrun.dev/controller"],
  );
  const { namespace, name, uid } = about.metadata;
  assert.deepEqual(event!.regarding, { apiVersion: "v1", kind: "ConfigMap", namespace, name, uid });
  assert.match(event!.eventTime, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z$/);
  assert.equal(event!.series, undefined);
});

test("A repeated event becomes a series with a count, in one object and with few writes", { skip }, async (t) => {
  const { recorder, about, stored, pass } = await start(t);
  const writesBefore = faults.writes.length;
  for (let i = 0; i < 50; i++) {
    recorder.record(about, SCALED);
    await recorder.flush();
    pass(1);
  }
  let events = await stored();
  assert.equal(events.length, 1);
  await recorder.close();
  events = await stored();
  assert.deepEqual([events.length, events[0]!.series?.count], [1, 50]);
  // The first event, the start of the series, the count after 30 s, and the last count.
  assert.equal(faults.writes.length - writesBefore, 4);
  recorder.record(about, { ...SCALED, note: "another" });
  pass(361);
  recorder.record(about, SCALED);
  assert.equal((await stored()).length, 3, "another note and one that comes after the series are events of their own");
});

test("A series whose event the server has deleted starts anew", { skip }, async (t) => {
  const { recorder, about, stored } = await start(t);
  recorder.record(about, SCALED);
  const [first] = await stored();
  await client.delete(EVENT, first!.metadata, { uid: first!.metadata.uid! });
  recorder.record(about, SCALED);
  const [second] = await stored();
  assert.equal(second!.series?.count, 2);
});

test("A flood of events about one object is limited, and an event about another object is recorded", {
  skip,
}, async (t) => {
  const { recorder, about, stored, dropped } = await start(t, { burst: 5, refillSeconds: 60 });
  for (let i = 0; i < 100; i++) recorder.record(about, { ...SCALED, note: `${i}` });
  recorder.record({ ...about, metadata: { ...about.metadata, name: "other", uid: "other" } }, SCALED);
  assert.equal((await stored()).length, 6);
  assert.deepEqual(new Set(dropped), new Set(["rate"]));
});

test("an event that the API server refuses is dropped, and later events are recorded", { skip }, async (t) => {
  const { recorder, about, stored, dropped } = await start(t, { maxWaiting: 3 });
  faults.inject(({ verb }) => verb === "create", { kind: "answer", code: 500 });
  for (let i = 0; i < 4; i++) recorder.record(about, { ...SCALED, note: `${i}` });
  assert.deepEqual((await stored()).map(({ note }) => note).sort(), ["1", "2"]);
  assert.deepEqual(dropped, ["full", "refused"]);
});

test("Long names and notes are cut to the API server's limits", { skip }, async (t) => {
  const { recorder, about, stored, dropped } = await start(t);
  const metadata = { ...about.metadata, name: "n".repeat(253) };
  recorder.record({ ...about, metadata }, { ...SCALED, note: `.${"ü".repeat(3000)}` });
  const [event] = await stored();
  assert.deepEqual(dropped, []);
  assert.equal(event!.metadata.name.length, 253);
  assert.equal(event!.note, `.${"ü".repeat(511)}`);
});
