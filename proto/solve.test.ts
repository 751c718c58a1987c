import assert from "node:assert/strict";
import { test } from "node:test";
import { budgetText, parseBudget } from "./solve.ts";

const GOOD: [text: string, budget: object, said: string][] = [
  ["30m", { seconds: 1800 }, "30 min"],
  ["90s", { seconds: 90 }, "90 s"],
  ["1.5h", { seconds: 5400 }, "90 min"],
  ["50 executions", { executions: 50 }, "50 executions"],
  ["1 execution", { executions: 1 }, "1 execution"],
  ["2h,50 executions", { seconds: 7200, executions: 50 }, "50 executions or 120 min"],
  [" 1d , 1000 tokens", { seconds: 86_400, tokens: 1000 }, "1440 min or 1000 tokens"],
];
for (const [text, budget, said] of GOOD)
  test(`the budget "${text}" is read`, () => {
    assert.deepEqual(parseBudget(text), budget);
    assert.equal(budgetText(parseBudget(text)!), said);
  });

for (const text of [
  "",
  "30",
  "m",
  "-5m",
  "0m",
  "0 executions",
  "1.5 executions",
  "5m,6m",
  "5 m 6",
  "1e3s",
  "5 min",
  "∞h",
])
  test(`the budget "${text}" is refused`, () => assert.equal(parseBudget(text), undefined));
