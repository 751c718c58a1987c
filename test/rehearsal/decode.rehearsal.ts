/** A decode step of Qwen2.5-3B's shape, LoRA, 64 slots: its demands on a GPU, the bus and memory. */
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import test from "node:test";
import { busBytes, DECODE, type Decode, decode, generationPeak } from "./decode.ts";
import { worse } from "./figures.ts";

const known: Decode = JSON.parse(await readFile(DECODE, "utf8"));

test("a token is one graph launch, a copy there, a copy back and a wait; without capture 25 launches and products a layer", async () => {
  const found = await decode();
  assert.deepEqual(
    worse(found, known),
    [],
    "where this is meant, write the figures anew: node test/rehearsal/decode.ts",
  );
  const { token } = found.captured;
  assert.deepEqual([token.graphLaunches, token.launches, token.products], [1, 0, 0]);
  assert.deepEqual([token.toDevice, token.toHost, token.onDevice, token.synchronisations], [1, 1, 0, 1]);
  const { layer } = found.uncaptured;
  assert.ok(layer.launches + layer.products <= 25);
});

test("160 samples through 64 slots: what crosses the bus does not grow with the cache", async () => {
  const [short, long] = [await busBytes(256), await busBytes(2048)];
  assert.deepEqual(long, short);
  assert.ok(
    short.toHost <= 10 * short.tokens,
    "a token and its probability, and those of slots that are empty at the end",
  );
  assert.ok(short.toDevice <= 32 * short.tokens, `${short.toDevice} bytes`);
});

test("64 slots of 2,048 tokens of 3B in bfloat16: generation alone takes the weights, the cache and a tenth more at most", async () => {
  const { peak, weights, cache } = await generationPeak(1024, 1024);
  const said = `${(peak / 1e9).toFixed(2)} GB, weights ${(weights / 1e9).toFixed(2)}, cache ${(cache / 1e9).toFixed(2)}`;
  assert.ok(peak <= 1.1 * (weights + cache), said);
});
