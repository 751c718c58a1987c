/**
 * Imports go one way: a folder may only import from earlier folders, also types. Biome refuses circles among files, but not among folders.
 */
import assert from "node:assert/strict";
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { importsOf, ROOT } from "./runner/imports.ts";

const readme = readFileSync(join(ROOT, "learner/README.md"), "utf8");
const stated = /in the order ((?:`[a-z/]+`[,:]\s)+)/.exec(readme)?.[1] ?? "";
const inLearner = [...stated.matchAll(/`([a-z/]+)`/g)].map(([, folder]) => `learner/${folder}`);
const IN_CONTROLLER = ["", "/operator/kube", "/operator", "/local", "/debug", "/cli", "/plugin", "/cli.ts"];
/** Every folder with source files, or one above it. Each may import from itself and from earlier ones. */
const ORDER = [
  ...["proto", "crds", "actor", ...inLearner, "learner"],
  ...IN_CONTROLLER.map((path) => `controller${path}`),
];
/** Imports that a folder must not have, even from earlier folders. */
const WITHOUT: readonly [folder: string, imported: RegExp][] = [
  ["actor", /^crds\//],
  ["learner", /^actor\//],
  ["controller", /^(actor|learner)\//],
  ["learner/engine", /^(?!learner\/engine\/|node:)[a-z]+\//],
  ["learner/rl", /^@grpc\/|^proto\/(service|channel)|^learner\/(server|store)\//],
];
/** The only file of the engine that others import. */
const INTERFACE = "learner/engine/index.ts";

/** Returns the innermost folder of ORDER that a path is in. */
const folderOf = (path: string): string | undefined =>
  ORDER.filter((folder) => path === folder || path.startsWith(`${folder}/`)).sort((a, b) => b.length - a.length)[0];

/** Returns why a file of one folder may not import the other path. */
function faultOf(file: string, imported: string): string | undefined {
  const without = WITHOUT.find(([folder, what]) => file.startsWith(`${folder}/`) && what.test(imported));
  if (without) return `${without[0]} does without ${imported}`;
  if (imported.startsWith("learner/engine/") && !file.startsWith("learner/engine/") && imported !== INTERFACE)
    return `${imported} is behind ${INTERFACE}`;
  if (!/^(\.|[a-z]+\/.*\.[jt]s$)/.test(imported)) return undefined; // a package
  const [from, to] = [folderOf(file), folderOf(imported)];
  if (to === undefined) return `${imported} is in no folder of the order`;
  return ORDER.indexOf(to) > ORDER.indexOf(from!) ? `${to} comes after ${from}` : undefined;
}

test("Every file imports from its own folder or an earlier one", () => {
  const files = globSync("{proto,crds,actor,learner,controller}/**/*.ts", { cwd: ROOT }).filter(
    (file) => !/\.(test|fixture|parity)\.ts$|\.generated\./.test(file),
  );
  assert.ok(files.length > 400, `${files.length} files`);
  for (const folder of ORDER)
    assert.ok(
      files.some((file) => folderOf(file) === folder),
      `${folder} has no files`,
    );
  const faults = files.flatMap((file) =>
    importsOf(file, readFileSync(join(ROOT, file), "utf8")).flatMap(({ line, imported }) => {
      const fault = faultOf(file, imported);
      return fault === undefined ? [] : [`${file}:${line}: ${fault}`];
    }),
  );
  assert.deepEqual(faults, []);
});

const CASES: [file: string, line: string, fault: string | undefined][] = [
  ["learner/store/a.ts", 'import type { Run } from "../run.ts";', "learner comes after learner/store"],
  ["learner/metrics/a.ts", '} from "../evaluation/figures.ts";', "learner/evaluation comes after learner/metrics"],
  [
    "learner/metrics/a.ts",
    'const it = await import("../report/page.ts");',
    "learner/report comes after learner/metrics",
  ],
  ["learner/engine/graph/a.ts", 'export * from "../engine.ts";', "learner/engine comes after learner/engine/graph"],
  ["learner/engine/a.ts", 'import "../../crds/gpu.ts";', "learner/engine does without crds/gpu.ts"],
  ["learner/rl/a.ts", 'import grpc from "@grpc/grpc-js";', "learner/rl does without @grpc/grpc-js"],
  ["controller/kube/a.ts", 'import { a } from "../../learner/run.ts";', "controller does without learner/run.ts"],
  ["controller/local/a.ts", 'import { a } from "../cli/b.ts";', "controller/cli comes after controller/local"],
  ["actor/a.ts", 'import { a } from "../test/a.ts";', "test/a.ts is in no folder of the order"],
  ["learner/run.ts", 'import type { Store } from "./store/store.ts";', undefined],
  [
    "learner/rl/a.ts",
    'import { graph } from "../engine/graph/graph.ts";',
    "learner/engine/graph/graph.ts is behind learner/engine/index.ts",
  ],
  ["learner/rl/a.ts", 'import { seedFor } from "../engine/index.ts";', undefined],
  ["proto/a.ts", 'import { join } from "node:path";', undefined],
];
for (const [file, line, fault] of CASES)
  test(`The rule judges ${line} in ${file}`, () => {
    const [found] = importsOf(file, line);
    assert.equal(faultOf(file, found!.imported), fault);
  });

test("The image's stage that prepares the tasks copies every file that prepare.ts imports", () => {
  const [stage = ""] =
    /^FROM \S+ AS tasks\n(?:(?!FROM ).*\n)*/m.exec(readFileSync(join(ROOT, "Dockerfile"), "utf8")) ?? [];
  const copied = [...stage.matchAll(/^COPY ((?!--from)\S.*) \S+$/gm)].flatMap(([, paths]) => paths!.split(" "));
  const needed = new Set(["learner/tasks/prepare.ts"]);
  for (const file of needed)
    for (const { imported } of importsOf(file, readFileSync(join(ROOT, file), "utf8")))
      if (/^[a-z]+\/.*\.ts$/.test(imported)) needed.add(imported);
  assert.ok(needed.size > 3, [...needed].join());
  assert.deepEqual(
    [...needed].filter((file) => !copied.some((path) => file === path || file.startsWith(`${path}/`))),
    [],
  );
});
