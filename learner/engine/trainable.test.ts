import assert from "node:assert/strict";
import { test } from "node:test";
import { HostMemory } from "./model-memory.ts";
import { GradientSum, Trainable } from "./trainable.ts";

test("all models' gradients are summed in one buffer of the largest model's size", async () => {
  const memory = new HostMemory();
  const held: number[] = [];
  const hold = memory.hold.bind(memory);
  memory.hold = (length, numbers) => {
    held.push(length);
    return hold(length, numbers);
  };
  const sum = new GradientSum(memory);
  const model = (numbers: number) =>
    new Trainable(memory, sum, [{ name: "w", shape: [numbers] }], new Float32Array(numbers));
  const [policy, critic] = [model(64), model(32)];
  const sums = [await sum.begin(critic), await sum.begin(policy), await sum.begin(critic)];
  assert.deepEqual(held, [64]);
  assert.equal(new Set(sums).size, 1);
});
