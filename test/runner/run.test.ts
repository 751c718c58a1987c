/** `node test/run.ts` with test files that pass, fail, skip, and leave their process changed. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join, relative } from "node:path";
import { after, test } from "node:test";
import type { TestEvent } from "node:test/reporters";
import { ROOT } from "./imports.ts";
import { resultOf } from "./results.ts";

// Test files must lie in the project, whose imports decide how they run.
const folder = mkdtempSync(join(ROOT, "test/runner/.try-"));
after(() => rmSync(folder, { recursive: true }));

const IMPORTS =
  'import assert from "node:assert/strict";\nimport { after, before, describe, test } from "node:test";\n';

/** Returns the path of a new test file from the project's root. */
function testFile(name: string, text: string): string {
  writeFileSync(join(folder, name), IMPORTS + text);
  return relative(ROOT, join(folder, name));
}

function run(...args: string[]): { status: number | null; lines: string[]; record: unknown } {
  const record = join(folder, "record.jsonl");
  rmSync(record, { force: true });
  const { status, stdout, stderr } = spawnSync(process.execPath, [join(ROOT, "test/run.ts"), ...args], {
    ...{ cwd: ROOT, encoding: "utf8" },
    env: { ...process.env, LONGRUN_TEST_RECORD: record, NODE_TEST_CONTEXT: undefined, LONGRUN_TEST_PROCESS: undefined },
  });
  const lines = (stdout + stderr).split("\n").map((line) => line.replaceAll(relative(ROOT, folder), "FOLDER"));
  return { status, lines, record: status === 2 ? undefined : JSON.parse(readFileSync(record, "utf8")) };
}

const passing = testFile("passing.ts", 'test("one", () => {});\ndescribe("two", () => test("three", () => {}));\n');
const failing = testFile("failing.ts", 'test("four", () => assert.equal(1, 2, "{ seed: -7 }"));\n');

test("Files that start nothing share a process; a failure names its test, and has status 1", () => {
  const { status, lines } = run(passing, failing);
  assert.equal(status, 1);
  assert.ok(
    lines.some((line) => /^✔ FOLDER\/passing\.ts {2}2 tests, /.test(line)),
    lines.join("\n"),
  );
  assert.ok(
    lines.some((line) => /^✖ FOLDER\/failing\.ts {2}1 failed of 1, /.test(line)),
    lines.join("\n"),
  );
  assert.ok(lines.includes("failed: four (FOLDER/failing.ts:3)"), lines.join("\n"));
  assert.ok(lines.some((line) => line.startsWith("3 tests of 2 files: 2 passed, 1 failed, 0 skipped")));
});

test("With --twice a failed file runs once more, alone; the record has the test, its seed and the load", () => {
  const once = testFile(
    "once.ts",
    `import { existsSync, writeFileSync } from "node:fs";
    test("five", () => {
      const path = ${JSON.stringify(join(folder, "was-there"))};
      const isSecond = existsSync(path);
      writeFileSync(path, "");
      assert.ok(isSecond, "seed: 12");
    });`,
  );
  const { status, lines, record } = run("--twice", passing, once);
  assert.equal(status, 0, lines.join("\n"));
  const [tried] = (record as { secondTries: { seconds: number; load: number }[] }).secondTries;
  assert.deepEqual(
    { ...tried, seconds: 0, load: 0 },
    {
      ...{ file: once, test: "five", seed: "12", seconds: 0, load: 0, passed: true },
      why: "AssertionError [ERR_ASSERTION]: seed: 12",
    },
  );
  assert.ok(tried!.load > 0);
  assert.ok(
    lines.some((line) =>
      /^second try: FOLDER\/once\.ts: five; seed 12, .* load .*; passed; at first: AssertionError .*: seed: 12$/.test(
        line,
      ),
    ),
  );
});

test("A hook that fails is one failure, whatever number of tests it keeps from running", () => {
  const hook = testFile(
    "hook.ts",
    'describe("ten", () => {\n  before(() => assert.fail("no"));\n  test("a", () => {});\n  test("b", () => {});\n});\n',
  );
  const { status, lines } = run(hook);
  assert.equal(status, 1);
  assert.ok(lines.includes("failed: ten (FOLDER/hook.ts:3)"), lines.join("\n"));
  assert.ok(lines.some((line) => line.startsWith("2 tests of 1 files: 0 passed, 1 failed, 0 skipped")));
});

test("A file whose process was ended names the test that started last", () => {
  const start = (name: string, nesting: number) => ({ type: "test:start", data: { name, nesting } });
  const error = Object.assign(new Error("test failed"), { failureType: "testCodeFailure" });
  const events = [
    ...[start("/a/b.test.ts", 0), start("ends", 0)],
    { type: "test:pass", data: { name: "ends", nesting: 0, details: {} } },
    ...[start("suite", 0), start("hangs", 1)],
    { type: "test:fail", data: { name: "/a/b.test.ts", nesting: 0, details: { error } } },
  ] as TestEvent[];
  const { failures } = resultOf("b.test.ts", events, 240, false);
  assert.match(failures[0]!.message, /^Error: test failed.*\nthe last test that started: suite > hangs$/s);
});

test("With --strict a skipped test fails unless its reason is allowed", () => {
  const skipping = testFile("skipping.ts", 'test("six", { skip: "tea is not installed" }, () => {});\n');
  const strict = run("--strict", skipping);
  assert.equal(strict.status, 1);
  assert.ok(strict.lines.includes("skipped: 1 in FOLDER/skipping.ts: tea is not installed"));
  assert.ok(strict.lines.some((line) => line.startsWith("failed: no test may be skipped because of: tea is not")));
  assert.equal(run(skipping).status, 0);
});

test("A file of a shared process that leaves it changed fails, with what it changed", () => {
  const changing = testFile("changing.ts", 'process.env.LEFT_BEHIND = "x";\ntest("seven", () => {});\n');
  const { status, lines } = run(changing, passing);
  assert.equal(status, 1);
  const text = lines.join("\n");
  assert.match(text, /changing\.ts leaves the process changed/);
  assert.match(text, /LEFT_BEHIND/);
  assert.match(text, /✔ FOLDER\/passing\.ts {2}2 tests/);
});

test("Hooks of a file in a shared process are its own", () => {
  const hooks = (name: string) =>
    testFile(name, 'let x = 0;\nbefore(() => x++);\ntest("eight", () => assert.equal(x, LATE));\nconst LATE = 1;\n');
  const { status, lines } = run(hooks("a.ts"), hooks("b.ts"));
  assert.equal(status, 0, lines.join("\n"));
});

test("A file that ends its process counts as failed, and so do the files after it", () => {
  const ending = testFile("ending.ts", 'test("nine", () => process.exit(0));\n');
  const { status, lines } = run(ending, passing);
  assert.equal(status, 1);
  assert.match(lines.join("\n"), /✖ FOLDER\/passing\.ts/);
});

test("A file that does not exist is refused", () => {
  const { status, lines } = run("test/none.test.ts");
  assert.equal(status, 2);
  assert.deepEqual(lines, ["no test file test/none.test.ts", ""]);
});
