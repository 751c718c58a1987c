import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { actorCores, parseCoreList, usableCores } from "./cpus.ts";

describe("actorCores", () => {
  const cases: [cores: number[], threads: number, actors: number, expected: string[] | undefined][] = [
    [[0, 1], 1, 1, ["1"]],
    [[0, 1, 2, 3], 1, 1, ["1,2,3"]],
    [[0, 1, 2, 3, 4], 1, 2, ["1,3", "2,4"]],
    [[0, 1, 2], 1, 4, ["1", "2", "1", "2"]],
    [[4, 6], 1, 1, ["6"]],
    [[0], 1, 1, undefined],
    [[0, 1], 2, 1, undefined],
    [[0, 1], 0, 1, undefined],
  ];
  for (const [cores, threads, actors, expected] of cases)
    test(`${cores} less ${threads} for ${actors} actors give ${expected?.join(" | ")}`, () =>
      assert.deepEqual(actorCores(cores, threads, actors), expected));
});

test("Core lists are read and written", () => {
  assert.deepEqual(parseCoreList("0"), [0]);
  assert.deepEqual(parseCoreList("0-3"), [0, 1, 2, 3]);
  assert.deepEqual(parseCoreList("0-1,4,8-9"), [0, 1, 4, 8, 9]);
  assert.ok(usableCores().length >= 1);
});
