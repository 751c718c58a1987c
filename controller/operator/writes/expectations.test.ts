import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { JOB } from "../kube/resources.ts";
import type { KubeObject } from "../kube/types.ts";
import { CONFIRM_SECONDS, Expectations, type Written } from "./expectations.ts";

const job = (uid: string, resourceVersion: string, change: object = {}): KubeObject => ({
  metadata: { namespace: "team", name: "a", uid, resourceVersion, ...change },
});
const stored = (object: KubeObject): Written => ({ kind: "stored", resource: JOB, object });
const deleted = (object: KubeObject): Written => ({ kind: "deleted", resource: JOB, object });

function setUp(written: Written, cached: KubeObject | undefined, live?: KubeObject) {
  const state = { cached, live, nowMs: 0 };
  const expectations = new Expectations({ get: () => state.cached, read: async () => state.live }, () => state.nowMs);
  expectations.add("run", written);
  return { state, expectations };
}

describe("unseen", () => {
  const CASES: [what: string, written: Written, cached: KubeObject | undefined, isUnseen: boolean][] = [
    ["a creation that the cache lacks", stored(job("u1", "5")), undefined, true],
    ["a creation that it has", stored(job("u1", "5")), job("u1", "5"), false],
    ["a change that it lacks", stored(job("u1", "9")), job("u1", "5"), true],
    ["a change after ours", stored(job("u1", "9")), job("u1", "12"), false],
    ["versions are numbers, not texts", stored(job("u1", "10")), job("u1", "9"), true],
    ["the old object of the name", stored(job("u2", "9")), job("u1", "5"), true],
    ["a later object of the name", stored(job("u2", "9")), job("u3", "12"), false],
    ["a deletion that the cache lacks", deleted(job("u1", "5")), job("u1", "5"), true],
    ["a deletion that it has", deleted(job("u1", "5")), undefined, false],
    ["one on its way out", deleted(job("u1", "5")), job("u1", "6", { deletionTimestamp: "now" }), false],
    ["another object of the name", deleted(job("u1", "5")), job("u2", "7"), false],
  ];
  for (const [what, written, cached, isUnseen] of CASES)
    test(what, () => {
      const { expectations } = setUp(written, cached);
      assert.deepEqual(expectations.unseen("run"), isUnseen ? ["Job team/a"] : []);
      assert.deepEqual(expectations.unseen("other"), []);
    });

  test("A write that the cache lacks is seen later", () => {
    const { state, expectations } = setUp(stored(job("u1", "5")), undefined);
    assert.equal(expectations.unseen("run").length, 1);
    state.cached = job("u1", "5");
    assert.equal(expectations.unseen("run").length, 0);
    state.cached = undefined;
    assert.equal(expectations.unseen("run").length, 0, "once seen it is forgotten");
  });
});

describe("confirm", () => {
  const CASES: [
    what: string,
    written: Written,
    cached: KubeObject | undefined,
    live: KubeObject | undefined,
    stays: boolean,
  ][] = [
    ["the cache is late: it is waited for", stored(job("u1", "5")), undefined, job("u1", "5"), true],
    ["the cache is late with a change", stored(job("u1", "9")), job("u1", "5"), job("u1", "9"), true],
    ["made and gone again, never to be seen", stored(job("u1", "5")), undefined, undefined, false],
    ["the cache is late with the deletion", deleted(job("u1", "5")), job("u1", "5"), undefined, true],
    [
      "the deletion was undone by a finalizer: what is there is known",
      deleted(job("u1", "5")),
      job("u1", "5"),
      job("u1", "5"),
      false,
    ],
  ];
  for (const [what, written, cached, live, stays] of CASES)
    test(what, async () => {
      const { state, expectations } = setUp(written, cached, live);
      await expectations.confirm("run");
      assert.equal(expectations.unseen("run").length, 1, "too early to ask");
      state.nowMs = CONFIRM_SECONDS * 1000;
      await expectations.confirm("run");
      assert.equal(expectations.unseen("run").length, stays ? 1 : 0);
    });
});
