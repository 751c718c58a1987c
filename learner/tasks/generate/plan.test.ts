import assert from "node:assert/strict";
import { test } from "node:test";
import { metrics } from "../../grading/metrics.ts";
import { drawTask, leakable } from "./plan.ts";

test("as many tasks give their label away as were asked for, also where one of them selects words", () => {
  const count = Object.keys(metrics).length;
  for (const seed of [0, 1])
    for (const leaking of [1, count - 1]) {
      const drawn = Array.from({ length: count }, (_, i) => drawTask(seed, i + 1, 0, { count, leaking }));
      assert.equal(drawn.filter(({ plan }) => plan.leaks).length, leaking);
      assert.equal(new Set(drawn.map(({ plan }) => plan.metric)).size, count);
    }
  assert.equal(leakable(0, count).length, count - 1);
});
