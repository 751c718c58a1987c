import assert from "node:assert/strict";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, beforeEach, test } from "node:test";
import { loadConfig } from "./kubeconfig.ts";

const home = mkdtempSync(join(tmpdir(), "longrun-home-"));
const before = { ...process.env };
beforeEach(() => {
  process.env.HOME = home;
  for (const name of ["KUBECONFIG", "KUBERNETES_SERVICE_HOST"]) delete process.env[name];
});
after(() => {
  for (const name of ["KUBECONFIG", "KUBERNETES_SERVICE_HOST"]) delete process.env[name];
  Object.assign(process.env, before);
  rmSync(home, { recursive: true });
});

function kubeconfig(...contexts: string[]): string {
  return JSON.stringify({
    clusters: contexts.map((name) => ({ name, cluster: { server: `https://${name}.example:6443` } })),
    users: [],
    contexts: contexts.map((name) => ({
      name,
      context: { cluster: name, ...(name === "two" && { namespace: "of-two" }) },
    })),
    "current-context": contexts[0],
  });
}

test("loadConfig reports that there is no configuration, rather than an API server that nobody named", () =>
  assert.throws(() => loadConfig({}), {
    code: "input",
    message: "there is no kubeconfig, neither in KUBECONFIG nor ~/.kube/config; name one with --kubeconfig",
  }));

test("loadConfig prefers a given file to KUBECONFIG, and KUBECONFIG to the file in the home folder", () => {
  const serverOf = (file?: string) => loadConfig({ kubeconfig: file }).config.getCurrentCluster()?.server;
  mkdirSync(join(home, ".kube"));
  writeFileSync(join(home, ".kube/config"), kubeconfig("home"));
  for (const name of ["variable", "file"]) writeFileSync(join(home, name), kubeconfig(name));
  assert.equal(serverOf(), "https://home.example:6443");
  process.env.KUBECONFIG = join(home, "variable");
  assert.equal(serverOf(), "https://variable.example:6443");
  assert.equal(serverOf(join(home, "file")), "https://file.example:6443");
});

test("loadConfig takes a context of the file, and refuses an unknown one", () => {
  const file = join(home, "two");
  writeFileSync(file, kubeconfig("one", "two"));
  const { config, inPod, namespace } = loadConfig({ kubeconfig: file, context: "two" });
  assert.equal(config.getCurrentCluster()?.name, "two");
  assert.deepEqual({ inPod, namespace }, { inPod: false, namespace: "of-two" });
  assert.equal(loadConfig({ kubeconfig: file }).namespace, "default");
  assert.throws(() => loadConfig({ kubeconfig: file, context: "three" }), {
    code: "input",
    message: `--context three: ${file} has no such context`,
  });
});

test("loadConfig names a KUBECONFIG that it cannot read", () => {
  process.env.KUBECONFIG = join(home, "nowhere");
  assert.throws(() => loadConfig({}), {
    code: "input",
    message: /^the kubeconfig .*nowhere cannot be read: .*--kubeconfig$/,
  });
});
