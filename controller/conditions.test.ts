import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { clip, EVENTS, REASONS } from "./conditions.ts";

/** Returns the first cells of the tables below a heading of README.md, up to the next section. */
function namesUnder(heading: string): Set<string> {
  const text = readFileSync(new URL("./README.md", import.meta.url), "utf8");
  const section = text.split(`\n### ${heading}\n`)[1]!.split("\n### ")[0]!;
  const cells = [...section.matchAll(/^\| (.+?) \|/gm)].map(([, cell]) => cell!);
  return new Set(cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name!)));
}

test("README.md says of every reason of a condition what it means, and of none that there is not", () =>
  assert.deepEqual([...namesUnder("Conditions")].sort(), Object.keys(REASONS).sort()));

test("and of every event that no condition tells of", () =>
  assert.deepEqual([...namesUnder("Events")].sort(), [...EVENTS].sort()));

test("a long message is cut to what the schema takes, and never within a character", () => {
  assert.equal(clip("x".repeat(2000)).length, 1024);
  for (const text of ["😀".repeat(600), `x${"😀".repeat(600)}`]) assert.ok(clip(text).isWellFormed());
});
