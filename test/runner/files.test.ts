/** What `npm test` knows of its files. */
import assert from "node:assert/strict";
import { existsSync, globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { needsOf, startsNothing, testFiles } from "./files.ts";
import { closureOf, importsOf, ROOT } from "./imports.ts";

const CASES: [file: string, startsNothing: boolean, needs: string[]][] = [
  ["learner/rl/advantages.test.ts", true, []],
  ["learner/engine/model/tokenizer.test.ts", false, ["tokenizer"]], // a fixture with hooks
  ["learner/engine/runtime/session.test.ts", false, []], // native code
  ["learner/engine/calls.test.ts", false, []], // threads
  ["actor/client.test.ts", false, []], // the same
  ["controller/local/run-folder.test.ts", false, []], // changes the folder of the process
  ["actor/fork-server.test.ts", false, ["python"]],
  ["controller/operator/kube/api-client.test.ts", false, ["etcd", "kube-apiserver", "kube-controller-manager"]],
  ["test/integration/oci.test.ts", false, ["registry"]],
  ["test/integration/s3-fetch.test.ts", false, ["versitygw"]],
  ["test/chart/render.test.ts", false, ["helm", "kubectl"]],
  [
    "test/observability/panels.observability.ts",
    false,
    ["etcd", "kube-apiserver", "kube-controller-manager", "prometheus", "promtool"],
  ],
];
for (const [file, isAlone, needs] of CASES)
  test(`${file} ${isAlone ? "shares a process" : "has its own process"} and needs ${needs.join(", ") || "nothing"}`, () => {
    assert.equal(startsNothing(file), isAlone);
    assert.deepEqual(needsOf(file), needs);
  });

test("Most files of tests share a process", () => {
  const all = testFiles();
  const shared = all.filter(startsNothing);
  assert.ok(shared.length > all.length / 3, `${shared.length} of ${all.length}`);
});

test("Every test file that looks for a program of a cluster is known to need one", () => {
  const looksFor = /\b(?:find|missing|ensure|make)Binar(?:y|ies)\(/;
  const looking = (name: string) =>
    /^test\/.*\.ts$/.test(name) &&
    existsSync(join(ROOT, name)) &&
    !/^test\/(?:cluster\/binaries|runner\/needs|run)\.ts$/.test(name) &&
    looksFor.test(readFileSync(join(ROOT, name), "utf8"));
  const ofLanes = globSync("test/**/*.{chart,faults,observability,release,tasks}.ts", { cwd: ROOT });
  const unknown = [...testFiles(), ...ofLanes].filter(
    (file) => [...closureOf(file)].some(looking) && needsOf(file).length === 0,
  );
  assert.deepEqual(unknown, []);
});

test("Imports of types are not loaded; others are found whatever they look like", () => {
  const source = [
    'import type { A } from "./a.ts";',
    'import { type B, b } from "./b.ts";',
    'import {\n  c,\n} from "../c.ts";',
    'import "node:child_process";',
    'const d = await import("./d.ts");',
    'export * from "./e.ts";',
    'export type { F } from "./f.ts";',
  ].join("\n");
  const found = importsOf("x/y/z.ts", source);
  const loaded = found.filter(({ isType }) => !isType).map(({ imported }) => imported);
  assert.deepEqual(loaded, ["x/y/b.ts", "x/c.ts", "node:child_process", "x/y/d.ts", "x/y/e.ts"]);
  assert.deepEqual(
    found.map(({ line }) => line),
    [1, 2, 5, 6, 7, 8, 9],
  );
});
