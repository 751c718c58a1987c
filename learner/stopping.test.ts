import assert from "node:assert/strict";
import { test } from "node:test";
import { reasonToStop } from "./stopping.ts";

const rows = (...rewards: (number | null)[]) =>
  rewards.map((meanReward, i) => ({ iteration: i + 1, meanReward, elapsedSeconds: (i + 1) * 10 }));

const cases: [string, Parameters<typeof reasonToStop>, RegExp | undefined][] = [
  ["nothing done yet", [[], { iterations: 1 }], undefined],
  ["iterations left", [rows(1, 2), { iterations: 3 }], undefined],
  ["all iterations", [rows(1, 2, 3), { iterations: 3 }], /all 3 iterations/],
  ["its only iteration", [rows(1), { iterations: 1 }], /^the only iteration is done \(stopping\.iterations\)$/],
  ["deadline", [rows(1, 2), { iterations: 9, deadlineSeconds: 20 }], /deadline of 20 s/],
  ["before the deadline", [rows(1, 2), { iterations: 9, deadlineSeconds: 21 }], undefined],
  ["flat", [rows(1, 2, 2, 2), { iterations: 9, convergence: { window: 2, tolerance: 0.1 } }], /has not risen/],
  ["rising", [rows(1, 2, 2, 2.2), { iterations: 9, convergence: { window: 2, tolerance: 0.1 } }], undefined],
  [
    "a whole window, and nothing before it",
    [rows(2, 1), { iterations: 9, convergence: { window: 2, tolerance: 0.1 } }],
    undefined,
  ],
  ["no reward yet", [rows(null, null), { iterations: 9, convergence: { window: 2, tolerance: 0.1 } }], undefined],
  ["too early to tell", [rows(1), { iterations: 9, convergence: { window: 2, tolerance: 0.1 } }], undefined],
];
for (const [name, [progress, stopping], expected] of cases) {
  test(`a run stops at its limits: ${name}`, () => {
    const reason = reasonToStop(progress, stopping);
    if (expected === undefined) assert.equal(reason, undefined);
    else assert.match(reason ?? "", expected);
  });
}
