import assert from "node:assert/strict";
import { test } from "node:test";
import { engineText } from "./engine-text.ts";

const CASES: [what: string, iterations: Parameters<typeof engineText>[0], text: string | undefined][] = [
  ["nobody knows", [undefined, {}], undefined],
  [
    "a busy engine needs no remedy",
    [{ generating: 60, updating: 35, idleOther: 5 }],
    "60% generating, 35% updating, 5% idle",
  ],
  [
    "the three add up to 100",
    [{ generating: 1, updating: 1, idleOther: 0.1 }],
    "48% generating, 48% updating, 4% idle",
  ],
  [
    "the main reason, and its remedy",
    [{ generating: 20 }, { updating: 30, idlePrograms: 10, idleStaleness: 40 }],
    "20% generating, 30% updating, 50% idle (as many samples were open as algorithm.maxStaleness allows: raise algorithm.maxStaleness, or make programs faster)",
  ],
];
for (const [what, iterations, text] of CASES)
  test(`The line about the engine is right: ${what}`, () => assert.equal(engineText(iterations), text));
