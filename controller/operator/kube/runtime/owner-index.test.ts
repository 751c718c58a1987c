import assert from "node:assert/strict";
import { test } from "node:test";
import fc from "fast-check";
import type { KubeObject } from "../types.ts";
import { controllerUid, labelValue, ObjectIndex } from "./owner-index.ts";

test("After any changes the index finds the same objects as a search of all objects", () => {
  const change = fc.record({
    name: fc.constantFrom("a", "b", "c", "d"),
    value: fc.option(fc.constantFrom("x", "y"), { nil: undefined }),
    isGone: fc.boolean(),
  });
  fc.assert(
    fc.property(fc.array(change, { maxLength: 30 }), (changes) => {
      const index = new ObjectIndex<KubeObject>(labelValue("run"));
      const objects = new Map<string, KubeObject>();
      for (const { name, value, isGone } of changes) {
        const previous = objects.get(name);
        const labels = value ? { run: value } : undefined;
        const next = isGone ? undefined : { metadata: { name, ...(labels && { labels }) } };
        if (next) objects.set(name, next);
        else objects.delete(name);
        index.update(name, next, previous);
        for (const run of ["x", "y"]) {
          const expected = [...objects.values()].filter(({ metadata }) => metadata.labels?.run === run);
          assert.deepEqual(new Set(index.get(run)), new Set(expected));
        }
      }
    }),
  );
});

test("Only the owner that controls an object counts", () => {
  const owner = (uid: string, controller?: boolean) => ({
    apiVersion: "v1",
    kind: "A",
    name: "a",
    uid,
    ...(controller && { controller }),
  });
  const ownedBy = (...ownerReferences: ReturnType<typeof owner>[]) => ({ metadata: { name: "a", ownerReferences } });
  assert.equal(controllerUid(ownedBy(owner("1"), owner("2", true))), "2");
  assert.equal(controllerUid(ownedBy(owner("1"))), undefined);
  assert.equal(controllerUid({ metadata: { name: "a" } }), undefined);
});
