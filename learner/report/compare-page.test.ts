import assert from "node:assert/strict";
import { test } from "node:test";
import { type Attempt, compare, type Effort } from "../solve/compare.ts";
import { comparePage, plotPlaces } from "./compare-page.ts";

const effort = (arm: string, folder: string, scores: (number | undefined)[]): Effort => ({
  ...{ arm, folder, task: "diamonds", metric: "MAE", direction: "Lower", graded: "{}" },
  attempts: scores.map((score, index): Attempt => ({ root: `r${index}`, seconds: 60 * (index + 1), score })),
});

test("the page of a comparison draws both curves and shows the numbers, and a name in it stays text", async () => {
  const efforts = [effort("greedy, <img src=x>", "a", [undefined, 9, 5]), effort("RL of small", "b", [8, 7])];
  const page = await comparePage(compare(efforts, plotPlaces));
  assert.equal(page.match(/<svg /g)?.length, 2);
  assert.match(page, /<h2>diamonds \(MAE, lower is better\)<\/h2>/);
  assert.match(
    page,
    /greedy, &#60;img src=x&#62;<\/th><td>5\.000<\/td><td>5\.000 to 9\.000<\/td><td>1<\/td><td>3<\/td>/,
  );
  assert.doesNotMatch(page, /<img|<script|NaN|https?:\/\/(?!www\.w3\.org)/);
});

test("a comparison without a valid program has no plot, and says so in its table", async () => {
  const page = await comparePage(compare([effort("x", "a", [undefined])], plotPlaces));
  assert.doesNotMatch(page, /<svg /);
  assert.match(page, /<th scope="row">x<\/th><td>–<\/td><td>–<\/td>/);
});

test("a curve is drawn at whole numbers of executions, and at equal steps of time", () => {
  assert.deepEqual(plotPlaces("executions", 4), [1, 2, 3, 4]);
  assert.equal(new Set(plotPlaces("executions", 1234)).size, 100);
  assert.equal(plotPlaces("executions", 1234).at(-1), 1234);
  assert.deepEqual(plotPlaces("seconds", 50).slice(0, 2), [0.5, 1]);
  assert.deepEqual(plotPlaces("seconds", 0), []);
});
