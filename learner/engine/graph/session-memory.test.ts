import assert from "node:assert/strict";
import { test } from "node:test";
import { Arena } from "./session-memory.ts";

const MB = 2 ** 20;

test("a region has the requested size, rounded up to 256 bytes, and stays when its piece is freed", () => {
  const arena = new Arena();
  const first = arena.allocate(1);
  arena.allocate(257);
  assert.equal(arena.bytes, 256 + 512);
  arena.free(first);
  arena.allocate(200);
  assert.equal(arena.bytes, 256 + 512, "the freed piece is used again");
  arena.allocate(0);
  assert.equal(arena.bytes, 256 + 512 + 256);
});

test("an allocation takes the smallest sufficient free piece", () => {
  const arena = new Arena();
  for (const piece of [300, 100, 200].map((size) => arena.allocate(size * MB))) arena.free(piece);
  arena.allocate(150 * MB); // of the 200
  arena.allocate(300 * MB);
  arena.allocate(100 * MB);
  assert.equal(arena.bytes, 600 * MB);
});

test("an allocation divides a piece that is twice as large or leaves 128 MB", () => {
  for (const [first, second, third, bytes] of [
    [100, 50, 50, 100],
    [100, 60, 30, 130], // 40 would be left: they are not used
    [300, 172, 128, 300],
    [300, 173, 127, 427],
  ] as const) {
    const arena = new Arena();
    arena.free(arena.allocate(first * MB));
    arena.allocate(second * MB);
    arena.allocate(third * MB);
    assert.equal(arena.bytes, bytes * MB, `${first}, ${second}, ${third}`);
  }
});

test("adjacent free pieces of one region are joined in any order; pieces of two regions are never joined", () => {
  for (const order of [
    [0, 1, 2],
    [2, 1, 0],
    [0, 2, 1],
    [1, 0, 2],
  ]) {
    const arena = new Arena();
    arena.free(arena.allocate(400 * MB));
    const pieces = [100, 100, 200].map((size) => arena.allocate(size * MB));
    assert.equal(arena.bytes, 400 * MB);
    for (const i of order) arena.free(pieces[i]!);
    arena.free(arena.allocate(400 * MB));
    assert.equal(arena.bytes, 400 * MB, `${order}`);
    arena.allocate(401 * MB);
    arena.allocate(400 * MB);
    assert.equal(arena.bytes, 801 * MB);
  }
});
