/** A decode step of Qwen2.5-3B's shape, LoRA, 64 slots: its demands on a GPU, the bus and memory. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { busBytes, DECODE, type Decode, decode, generationPeak } from "./decode.ts";
import { worse } from "./figures.ts";

const known: Decode = JSON.parse(await readFile(DECODE, "utf8"));

test("A token takes one graph launch, two copies and a wait; a layer has ten kernels and no copy", async () => {
  const found = await decode();
  assert.deepEqual(
    worse(found, known),
    [],
    "where this is meant, write the figures anew: node test/rehearsal/decode.ts",
  );
  const { token } = found.captured;
  assert.deepEqual([token.graphLaunches, token.launches, token.products], [1, 0, 0]);
  assert.deepEqual([token.toDevice, token.toHost, token.onDevice, token.synchronisations], [1, 1, 0, 1]);
  assert.deepEqual([found.captured.layer.graphKernels, found.captured.layer.graphCopies], [10, 0]);
  const { layer } = found.uncaptured;
  assert.deepEqual([layer.launches, layer.products, layer.onDevice], [7, 3, 0]);
});

test("With 160 samples in 64 slots, the bytes over the bus do not grow with the cache", async () => {
  const [short, long] = [await busBytes(256), await busBytes(2048)];
  assert.deepEqual(long, short);
  assert.ok(
    short.toHost <= 10 * short.tokens,
    "a token and its probability, and those of slots that are empty at the end",
  );
  assert.ok(short.toDevice <= 32 * short.tokens, `${short.toDevice} bytes`);
});

test("Generation with 64 slots of 2,048 tokens of 3B takes at most 1.1 times its weights and cache", async () => {
  const { peak, weights, cache } = await generationPeak(1024, 1024);
  const said = `${(peak / 1e9).toFixed(2)} GB, weights ${(weights / 1e9).toFixed(2)}, cache ${(cache / 1e9).toFixed(2)}`;
  assert.ok(peak <= 1.1 * (weights + cache), said);
});
