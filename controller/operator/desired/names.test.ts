import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { slotOf } from "../parts/actors/desired.ts";
import { runOf } from "../run.fixture.ts";
import { actorName, digestOf, parseActorName } from "./names.ts";

describe("names", () => {
  const CASES: [name: string, expected: object | undefined][] = [
    ["quick-actor-0-0", { index: 0, generation: 0 }],
    ["quick-actor-12-345", { index: 12, generation: 345 }],
    ["quick-actor-1", undefined],
    ["quick-actor-1-2-3", undefined],
    ["quick-init", undefined],
    ["other-actor-0-0", undefined],
  ];
  for (const [name, expected] of CASES)
    test(`parseActorName reads ${name}`, () => assert.deepEqual(parseActorName(runOf(), name), expected));

  test("The longest name of a run fits a pod's name", () => {
    const run = runOf({}, {}, { name: "x".repeat(40) });
    // A Job's pod adds a dash and five characters; 63 is the most.
    assert.ok(actorName(run, 9999, 999999).length <= 63);
  });

  test("slotOf finds the slot of a container", () =>
    assert.deepEqual([slotOf("sandbox-3"), slotOf("supervisor"), slotOf("sandbox-x")], [3, undefined, undefined]));

  test("digestOf does not depend on the order of keys", () =>
    assert.equal(digestOf({ a: 1, b: { c: 2, d: 3 } }), digestOf({ b: { d: 3, c: 2 }, a: 1 })));
});
