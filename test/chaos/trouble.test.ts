import assert from "node:assert/strict";
import { test } from "node:test";
import { schedule, type Trouble } from "./trouble.ts";

const named = (name: string, weight: number): Trouble => ({ name, weight, strike: async () => name });
const TROUBLES = [named("kill", 3), named("stop", 2), named("cut", 1)];

/** Returns the first troubles of a seed; each takes `draws` random numbers for itself. */
function first(seed: number, draws: number) {
  const found: { name: string; waitSeconds: number }[] = [];
  for (const { trouble, waitSeconds, random } of schedule(TROUBLES, seed, 4)) {
    for (let i = 0; i < draws; i++) random.next();
    found.push({ name: trouble.name, waitSeconds });
    if (found.length === 3000) break;
  }
  return found;
}

test("The seed alone decides the order and the times of the troubles", () => {
  assert.deepEqual(first(7, 0), first(7, 5), "a trouble's own random numbers do not change the order");
  assert.notDeepEqual(first(7, 0), first(8, 0));
});

test("Troubles follow their weights, and begin every few seconds", () => {
  const found = first(1, 0);
  for (const { name, weight } of TROUBLES) {
    const share = found.filter((it) => it.name === name).length / found.length;
    assert.ok(Math.abs(share - weight / 6) < 0.03, `${name}: ${share}`);
  }
  const mean = found.reduce((sum, { waitSeconds }) => sum + waitSeconds, 0) / found.length;
  assert.ok(Math.abs(mean - 4) < 0.2, `${mean} s`);
});
