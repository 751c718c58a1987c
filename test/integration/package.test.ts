/** The result of `npm run package` must work where npm installs it: below node_modules, on any Node. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, test } from "node:test";
import { copySources, withJavaScriptNames } from "../../controller/package.ts";

const ROOT = join(import.meta.dirname, "../..");
const folder = mkdtempSync(join(tmpdir(), "longrun-package-"));
const installed = join(folder, "node_modules/longrun");
before(() => {
  copySources(installed);
  writeFileSync(join(installed, "package.json"), readFileSync(join(ROOT, "package.json")));
  symlinkSync(join(ROOT, "node_modules"), join(installed, "node_modules"));
});
after(() => rmSync(folder, { recursive: true }));

const NAMES: [source: string, expected: string][] = [
  ['import { a } from "./a.ts";', 'import { a } from "./a.js";'],
  ["new URL('../b/a.ts', import.meta.url)", "new URL('../b/a.js', import.meta.url)"],
  // biome-ignore lint/suspicious/noTemplateCurlyInString: it is a source
  ["`${APP}/learner/main.ts`", "`${APP}/learner/main.ts`"],
  ["// see `a file` in a.ts", "// see `a file` in a.ts"],
];
for (const [source, expected] of NAMES) test(source, () => assert.equal(withJavaScriptNames(source), expected));

test("The package has no TypeScript and no test, and has every file that it imports or starts", () => {
  const files = globSync("{actor,controller,crds,learner,proto}/**/*.{js,mjs,ts}", { cwd: installed });
  assert.ok(files.length > 400, `${files.length} files`);
  assert.deepEqual(
    files.filter((file) => /\.ts$|\.test\.|fixture/.test(file) && !file.endsWith(".d.ts")),
    [],
  );
  const missing = files.flatMap((file) => {
    const source = readFileSync(join(installed, file), "utf8");
    const named = [...source.matchAll(/(?:from|import|import\(|URL\() ?\(?"(\.\.?\/[^"]+)"/g)].map(([, name]) => name!);
    return named
      .filter((name) => globSync(join(installed, dirname(file), name)).length === 0)
      .map((name) => `${file}: ${name}`);
  });
  assert.deepEqual(missing, []);
});

const COMMANDS: [args: string[], says: RegExp][] = [
  [["--version"], /^\d+\.\d+\.\d+\n$/],
  [["model", "info", "quickstart"], /^architecture {2}qwen2/],
  [["validate", join(installed, "manifests/quickstart/trainingrun.yaml")], /is valid\n$/],
  [["help", "grade"], /^Usage: longrun grade/],
];
for (const [args, says] of COMMANDS)
  test(`The installed package runs longrun ${args.join(" ").replace(installed, "")}`, () => {
    const longrun = join(installed, "controller/longrun.mjs");
    const { status, stdout, stderr } = spawnSync(process.execPath, [longrun, ...args], {
      encoding: "utf8",
      cwd: folder,
    });
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, says);
  });

test("A package of plain `npm pack` has no program, and its command says how to make one", () => {
  const packed = spawnSync("npm", ["pack", "--dry-run", "--json"], { cwd: ROOT, encoding: "utf8" });
  const [{ files }] = JSON.parse(packed.stdout) as [{ files: { path: string }[] }];
  const programs = files.map(({ path }) => path).filter((path) => /\.(ts|mjs)$/.test(path));
  assert.deepEqual(programs, ["controller/longrun.mjs"]);
  const alone = join(folder, "alone/longrun.mjs");
  cpSync(join(ROOT, "controller/longrun.mjs"), alone);
  const { status, stderr } = spawnSync(process.execPath, [alone, "--version"], { encoding: "utf8" });
  assert.deepEqual([status, stderr.trim().split("\n").length], [1, 1]);
  assert.match(stderr, /npm run package/);
});
