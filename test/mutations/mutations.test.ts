/** The list must fit the current project, and the runner must distinguish detected mutations from others. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { type Mutation, mutate, problemOf, ROOT, readMutations } from "./list.ts";
import { tryMutation } from "./run.ts";

const all = [...readMutations().values()].flat();

test("Every mutation applies to a present file, and names tests that `npm test` runs", () => {
  assert.ok(all.length >= 60, `${all.length} mutations`);
  assert.equal(new Set(all.map(({ id }) => id)).size, all.length, "ids differ");
  for (const mutation of all) {
    const { id, file, text, replacement, seen, tests } = mutation;
    assert.match(id, /^[a-z][a-z-]+$/);
    assert.equal(problemOf(mutation), undefined, id);
    assert.doesNotMatch(file, /\.test\.ts$/, `${id}: it is a fault of the project, not of a test`);
    assert.ok(text !== replacement && seen !== "" && tests.length > 0, id);
    for (const name of tests) assert.ok(name.endsWith(".test.ts") && existsSync(join(ROOT, name)), `${id}: ${name}`);
  }
});

const TEXTS: [source: string, mutated: string | undefined][] = [
  ["if (a < b) return;", "if (a <= b$&) return;"],
  ["if (a > b) return;", undefined],
  ["if (a < b || a < b) return;", undefined],
];
for (const [source, mutated] of TEXTS)
  test(`mutate replaces only text that occurs once: ${source}`, () =>
    assert.equal(mutate(source, { text: "a < b", replacement: "a <= b$&" }), mutated));

const folder = mkdtempSync(join(tmpdir(), "mutations-"));
after(() => rmSync(folder, { recursive: true }));
mkdirSync(join(folder, "core"));
const SOURCE = "export const largest = (a: number, b: number) => {\n  while (a < b) a = b;\n  return a;\n};\n";
writeFileSync(join(folder, "package.json"), '{ "type": "module" }');
writeFileSync(join(folder, "core/largest.ts"), SOURCE);
writeFileSync(join(folder, "core/nothing.test.ts"), 'import { test } from "node:test";\ntest("nothing", () => {});\n');
writeFileSync(
  join(folder, "core/largest.test.ts"),
  'import assert from "node:assert/strict";\nimport { describe, test } from "node:test";\nimport { largest } from "./largest.ts";\n' +
    'describe("of two", () => test("the larger one", () => assert.equal(largest(1, 2), 2)));\n',
);
const OUTCOMES: [text: string, replacement: string, tests: string[], status: string, detail: RegExp][] = [
  ["a < b", "a > b", ["nothing", "largest"], "killed", /^core\/largest\.test\.ts: the larger one$/],
  ["a < b", "a <= b", ["largest"], "killed by timeout", /took more than 2 s/],
  ["a < b", "a !== b", ["nothing", "largest"], "survived", /largest\.test\.ts passed\. It is wrong\.$/],
  ["a << b", "a > b", ["largest"], "text gone", /has the text "a << b" 0 times/],
  ["return a;", "return a", ["nothing"], "survived", /passed/],
  ["return a;", "return (a", ["nothing"], "text gone", /is no TypeScript/],
];
for (const [text, replacement, tests, status, detail] of OUTCOMES)
  test(`The mutation ${text} -> ${replacement} gives ${status}`, async () => {
    const names = tests.map((name) => `core/${name}.test.ts`);
    const mutation: Mutation = {
      id: "x",
      file: "core/largest.ts",
      text,
      replacement,
      seen: "It is wrong.",
      tests: names,
    };
    const outcome = await tryMutation(folder, mutation, { fileSeconds: status === "killed by timeout" ? 2 : 60 });
    assert.equal(outcome.status, status, outcome.detail);
    assert.match(outcome.detail, detail);
    assert.equal(readFileSync(join(folder, "core/largest.ts"), "utf8"), SOURCE, "the right text is back");
  });
