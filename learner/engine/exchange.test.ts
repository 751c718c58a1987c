/** Tests the exchange of gradients between workers when one worker fails. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout } from "node:timers/promises";
import { Exchange } from "./exchange.ts";

test("when the exchange of gradients has failed, no worker adds to the sum any more", async () => {
  const added: string[] = [];
  const workerOf = (name: string) => ({
    addGradient: async (_: unknown, { from }: { from: number }) => {
      if (name === "b" && from === 0) throw new Error("b is out of memory");
      await setTimeout(10);
      added.push(`${name} ${from}`);
    },
    prepareStep: async () => assert.fail("a sum without a gradient is used"),
    shareWeights: async () => {},
    takeWeights: async () => {},
  });
  const workers = ["a", "b", "c"].map(workerOf);
  const all = workers.map((worker, i) => ({ worker, range: { from: 4 * i, to: 4 * i + 4 } }));
  await assert.rejects(new Exchange(4).gradient("policy", 12, workers, all, undefined), /b is out of memory/);
  assert.deepEqual(added.toSorted(), ["a 0", "a 4", "a 8", "b 4", "b 8", "c 4", "c 8"]);
  await setTimeout(50);
  assert.equal(added.length, 7);
});
