/** A candidate for leadership with a clock that the test sets, without an API server. */
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { until } from "../../../../test/until.ts";
import type { ApiClient } from "../api-client.ts";
import type { Lease } from "../resources.ts";
import { LeaderElector } from "./leader-elector.ts";

/** Returns a candidate for a Lease in memory, with a clock that the test sets. */
function onOwnClock(t: TestContext, spec: Lease["spec"]) {
  const place = { nowMs: 0, writes: 0, lease: { metadata: { name: "own", resourceVersion: "1" }, spec } as Lease };
  const client = {
    get: async () => structuredClone(place.lease),
    mergePatch: async (_: unknown, __: unknown, change: Partial<Lease>) => {
      const metadata = { ...place.lease.metadata, resourceVersion: String(++place.writes + 1) };
      place.lease = { metadata, spec: { ...place.lease.spec, ...change.spec } };
      return structuredClone(place.lease);
    },
  } as unknown as ApiClient;
  const lost: string[] = [];
  const stop = new AbortController();
  const elector = new LeaderElector({
    ...{ client, namespace: "default", name: "own", identity: "a", now: () => place.nowMs, onLeading: () => {} },
    ...{ leaseSeconds: 10, renewSeconds: 8, retrySeconds: 0.01, onLost: (why) => lost.push(why) },
  });
  const done = elector.run(stop.signal);
  t.after(async () => {
    stop.abort();
    await done.catch(() => {});
  });
  return { elector, place, lost };
}

test("Another's lease is free when it has not changed for the longer one of its duration and ours", async (t) => {
  for (const [leaseDurationSeconds, freeMs] of [
    [30, 30_000],
    [1, 10_000],
  ] as const) {
    const { elector, place } = onOwnClock(t, { holderIdentity: "b", leaseDurationSeconds });
    await until(() => elector.leader === "b", "a sees b");
    place.nowMs = freeMs - 1;
    await sleep(100);
    assert.deepEqual([elector.isLeading, place.writes], [false, 0]);
    place.nowMs = freeMs;
    await until(() => elector.isLeading, "a leads");
  }
});

test("A leader that was paused for longer than its lease writes nothing more", async (t) => {
  const { elector, place, lost } = onOwnClock(t, {});
  await until(() => place.writes > 1, "a leads and renews");
  place.nowMs += 8000;
  const { writes } = place;
  assert.equal(elector.isLeading, false);
  await until(() => lost.length > 0, "the loss is reported");
  assert.match(lost[0]!, /was not renewed for 8\.0 s/);
  assert.equal(place.writes, writes);
});
