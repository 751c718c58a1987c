/** The files in the reading list of learner/README.md must exist and be short enough for one evening. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const LEARNER = join(import.meta.dirname, "../learner");
const MOST_LINES = 3000;

test("The reading list leads from train.ts past restrict.py to the metrics, in at most 3,000 lines", () => {
  const readme = readFileSync(join(LEARNER, "README.md"), "utf8");
  const section = readme.split("## Read it in one evening")[1]!.split("\n## ")[0]!;
  const files = [...section.matchAll(/^\| \[`.*?`\]\((.+?)\)/gm)].map(([, file]) => file!);
  assert.equal(files[0], "train.ts");
  assert.ok(files.includes("../actor/sandbox/restrict.py"));
  const lines = files.map((file) => readFileSync(join(LEARNER, file), "utf8").trimEnd().split("\n").length);
  const all = lines.reduce((sum, count) => sum + count, 0);
  assert.ok(all <= MOST_LINES, `${all} lines: ${files.map((file, i) => `${file} ${lines[i]}`).join(", ")}`);
});
