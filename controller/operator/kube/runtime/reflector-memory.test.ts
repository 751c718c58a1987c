/** Measures the memory of a cached pod: 5,000 actor pods, as an API server sends them (test/fixtures/kubernetes), all different. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { ApiClient } from "../api-client.ts";
import { POD, type Pod } from "../resources.ts";
import { Reflector } from "./reflector.ts";

const PODS = 5000;
const PAGE = 500;
/** client-go's caches take 22 to 33 KB. */
const GOAL_BYTES = 8000;

setFlagsFromString("--expose-gc");
const collectGarbage = runInNewContext("gc") as () => void;

const text = JSON.stringify(
  JSON.parse(readFileSync(new URL("../../../../test/fixtures/kubernetes/actor-pod.json", import.meta.url), "utf8")),
);
const { metadata } = JSON.parse(text) as Pod;
const owner = metadata.ownerReferences![0]!;

/** Names, uids, addresses, container ids and versions differ between pods, labels between runs. */
function podText(i: number): string {
  const hex = i.toString(16).padStart(8, "0");
  return text
    .replaceAll(owner.name, `run-${i % 50}-actor-${i}-1`)
    .replaceAll(owner.uid, `${hex}${owner.uid.slice(8)}`)
    .replaceAll(metadata.uid!, `${hex}${metadata.uid!.slice(8)}`)
    .replaceAll("10.1.2.3", `10.1.${i >> 8}.${i & 255}`)
    .replaceAll("22222222", hex)
    .replace(`"resourceVersion":"${metadata.resourceVersion}"`, `"resourceVersion":"${1000 + i}"`)
    .replace('"longrun.dev/run":"quickstart"', `"longrun.dev/run":"run-${i % 50}"`);
}

/** Lists the pods in pages and sends no events. */
const client = {
  list: async (_: unknown, options: { continue?: string }) => {
    const from = Number(options.continue ?? 0);
    const items = Array.from({ length: PAGE }, (_, i) => JSON.parse(podText(from + i)));
    const next = from + PAGE < PODS ? { continue: String(from + PAGE) } : {};
    return { items, metadata: { resourceVersion: "9000", ...next } };
  },
  async *watch(_: unknown, { signal }: { signal: AbortSignal }) {
    yield { type: "BOOKMARK", object: { metadata: { resourceVersion: "9000" } } };
    if (!signal.aborted) await once(signal, "abort");
  },
} as unknown as ApiClient;

test(`a cached pod takes less than ${GOAL_BYTES / 1000} KB`, async (t) => {
  const stop = new AbortController();
  const reflector = new Reflector<Pod>({ client, resource: POD, onChange: () => {}, indexLabel: "longrun.dev/run" });
  collectGarbage();
  const before = process.memoryUsage().heapUsed;
  const done = reflector.run(stop.signal);
  await reflector.synced;
  collectGarbage();
  const bytes = (process.memoryUsage().heapUsed - before) / PODS;
  assert.equal(reflector.size, PODS);
  assert.equal(reflector.byLabel("run-7").length, PODS / 50);
  t.diagnostic(`${Math.round(bytes)} bytes of heap for a pod of ${text.length} bytes of JSON`);
  assert.ok(bytes < GOAL_BYTES, `${bytes} bytes`);
  const last = JSON.parse(podText(PODS - 1));
  delete last.metadata.managedFields;
  assert.deepEqual(reflector.get(`${metadata.namespace}/${last.metadata.name}`), last);
  stop.abort();
  await done;
});
