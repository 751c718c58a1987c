import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import { share } from "./share.ts";

test("share returns an equal, frozen value, whose equal parts are one object", () => {
  const json = fc.jsonValue({ maxDepth: 4 });
  fc.assert(
    fc.property(json, json, (next, like) => {
      const text = JSON.stringify(next);
      const shared = share(structuredClone(next), share(like, undefined));
      assert.equal(JSON.stringify(shared), text);
      assert.ok(Object.isFrozen(shared));
      const again = share(structuredClone(next), shared);
      // Every part is the same object, so the whole is, too; -0 and 0 are equal and print alike.
      if (!text.includes("__proto__")) assert.equal(again, shared);
    }),
  );
});

test("An object that differs in one place shares all other parts with the earlier one", () => {
  const pod = (phase: string) => ({
    metadata: { name: "a", labels: { run: "quickstart" } },
    spec: { containers: [{ name: "supervisor", command: ["node", "main.ts"] }] },
    status: { phase, conditions: [{ type: "Ready" }, { type: "Initialized" }] },
  });
  const before = share(pod("Pending"), undefined);
  const after = share(pod("Running"), before);
  assert.deepEqual(after, pod("Running"));
  assert.equal(after.spec, before.spec);
  assert.equal(after.metadata, before.metadata);
  assert.equal(after.status.conditions, before.status.conditions);
  assert.throws(() => Object.assign(after.metadata.labels, { run: "other" }), TypeError);
  assert.throws(() => after.spec.containers.push(after.spec.containers[0]!), TypeError);
});

test("share distinguishes a list from an object with the same members, and a missing field from an undefined one", () => {
  assert.deepEqual(share([], {}), []);
  assert.deepEqual(share({}, []), {});
  assert.deepEqual(share({ 0: "a" }, ["a"]), { 0: "a" });
  assert.deepEqual(share({ a: 1 } as object, { b: 1 }), { a: 1 });
  assert.deepEqual(share({ a: 1 } as object, { a: 1, b: 1 }), { a: 1 });
  const odd = JSON.parse('{"data":{"__proto__":{"x":"1"},"b":"2"}}');
  assert.equal(JSON.stringify(share(odd, { data: { b: "2" } })), '{"data":{"__proto__":{"x":"1"},"b":"2"}}');
});
