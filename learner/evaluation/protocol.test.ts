import assert from "node:assert/strict";
import { test } from "node:test";
import { armsOf } from "./protocol.ts";

type Evaluation = Parameters<typeof armsOf>[0]["evaluation"];
const cases: [name: string, evaluation: Partial<Evaluation>, improveProbability: number, arms: object][] = [
  ["paper: N and N", { improve: true }, 0, { protocol: "Paper", scratch: 8, improve: 8 }],
  ["equal: N/2 and N/2", { improve: true, protocol: "Equal" }, 0, { protocol: "Equal", scratch: 4, improve: 4 }],
  ["not said: as the run trains", {}, 0.5, { protocol: "Paper", scratch: 8, improve: 8 }],
  ["not said, and the run trains without", {}, 0, { protocol: "Scratch", scratch: 8, improve: 0 }],
  ["none", { improve: false }, 0.5, { protocol: "Scratch", scratch: 8, improve: 0 }],
];
for (const [name, evaluation, improveProbability, arms] of cases)
  test(`the protocol has the arms of an evaluation: ${name}`, () => {
    const spec = {
      evaluation: { samples: 8, protocol: "Paper", before: true, after: true, ...evaluation },
      prompts: { improveProbability },
    };
    assert.deepEqual(armsOf(spec as Parameters<typeof armsOf>[0]), arms);
  });
