import assert from "node:assert/strict";
import { after, test } from "node:test";
import { adamwScalars, adamwStep, newMoments, sumOfSquares } from "./adamw.ts";
import { type DeviceAdamW, deviceAdamW } from "./device-adamw.ts";
import { uniforms } from "./model/random.ts";
import type { Range } from "./model-memory.ts";
import type { DeviceBuffer } from "./runtime/buffer.ts";
import { Runtime } from "./runtime/runtime.ts";

const ADAM = { beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weightDecay: 0.01 };
const SIZE = 3001;

const runtime = new Runtime({ kind: "cpu" });
after(() => runtime.release());

/** Numbers of many sizes, including 0 and subnormal ones. */
function numbers(seed: number): Float32Array {
  const next = uniforms(seed, "numbers");
  const magnitude = () => 10 ** (-42 + 44 * next());
  return Float32Array.from({ length: SIZE }, (_, i) => (i % 50 === 0 ? 0 : (next() - 0.5) * magnitude()));
}

const ALL = { from: 0, to: SIZE };

test("AdamW on a device and on the CPU give the same bits in every step, for all numbers and for a part", async () => {
  const optimiser = await deviceAdamW(runtime, 1);
  for (const range of [ALL, { from: 1200, to: 3000 }]) await compare(range, optimiser);
  await optimiser.release();
});

async function compare(range: Range, optimiser: DeviceAdamW): Promise<void> {
  const length = range.to - range.from;
  const [weights, moments] = [numbers(1), newMoments(length)];
  const buffers: DeviceBuffer[] = [];
  for (const start of [weights, moments.first, moments.second]) {
    const buffer = await runtime.allocate(start.length);
    await runtime.write(buffer, start);
    buffers.push(buffer);
  }
  const [w, first, second] = buffers as [DeviceBuffer, DeviceBuffer, DeviceBuffer];
  const gradient = await runtime.allocate(SIZE);
  const part = (all: Float32Array) => all.subarray(range.from, range.to);
  for (let step = 1; step <= 6; step++) {
    const values = numbers(step + 1);
    await runtime.write(gradient, values);
    const scalars = adamwScalars(step, { ...ADAM, learningRate: 0.01 / step, scale: step % 2 ? 1 : 0.1234 });
    const before = weights.slice();
    adamwStep({ weights: part(weights), gradient: part(values), ...moments }, scalars);
    await optimiser.step({ weights: w, gradient, first, second }, range, scalars);
    assert.ok(weights.every(Number.isFinite));
    assert.notDeepEqual(weights, before);
    for (const [buffer, expected] of [
      [w, weights],
      [first, moments.first],
      [second, moments.second],
      [gradient, values],
    ] as const) {
      const back = new Float32Array(expected.length);
      await runtime.read(buffer, back);
      assert.deepEqual(back, expected, `step ${step}`);
    }
  }
  for (const buffer of [...buffers, gradient]) buffer.release();
}

test("the norm on a device equals the CPU's up to rounding and shows an entry that is not finite", async () => {
  const optimiser = await deviceAdamW(runtime, 1);
  const gradient = await runtime.allocate(SIZE);
  const values = numbers(3);
  await runtime.write(gradient, values);
  const [ours, here] = [Math.sqrt(await optimiser.squares(gradient, ALL)), Math.sqrt(sumOfSquares(values))];
  assert.ok(here > 0 && Math.abs(ours / here - 1) < 1e-13, `${ours} and ${here}`);
  for (const [bad, expected] of [
    [Number.NaN, Number.NaN],
    [Number.NEGATIVE_INFINITY, Number.POSITIVE_INFINITY],
  ] as const) {
    values[77] = bad;
    await runtime.write(gradient, values);
    assert.equal(Math.sqrt(await optimiser.squares(gradient, ALL)), expected);
  }
  assert.equal(await optimiser.squares(gradient, { from: 10, to: 77 }), sumOfSquares(values.subarray(10, 77)));
  await runtime.zero(gradient);
  assert.equal(Math.sqrt(await optimiser.squares(gradient, ALL)), 0);
  gradient.release();
  await optimiser.release();
});
