import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { DEFAULT_SETTINGS } from "../operator/desired/settings.fixture.ts";
import type { ControllerOptions } from "./cluster-options.ts";
import { runController } from "./controller-command.ts";

const folder = mkdtempSync(join(tmpdir(), "longrun-controller-"));
after(() => rmSync(folder, { recursive: true }));
const kubeconfig = join(folder, "kubeconfig");
const cluster = { name: "c", cluster: { server: "http://127.0.0.1:1" } };
const config = {
  clusters: [cluster],
  users: [],
  contexts: [{ name: "x", context: { cluster: "c" } }],
  "current-context": "x",
};
writeFileSync(kubeconfig, JSON.stringify(config));
writeFileSync(join(folder, "defaults"), "seed: 3");
writeFileSync(join(folder, "empty"), JSON.stringify({ clusters: [], users: [], contexts: [] }));

const OPTIONS: ControllerOptions = {
  ...{ kubeconfig, namespace: [], leaderElect: false, metricsAddress: "127.0.0.1:0" },
  ...{ kueue: false, webhookAllow: [], workers: 8, qps: 50, burst: 100, ...DEFAULT_SETTINGS },
};

const CASES: [what: string, change: Partial<ControllerOptions>, code: string, message: RegExp][] = [
  [
    "no such kubeconfig",
    { kubeconfig: join(folder, "none") },
    "input",
    /kubeconfig .*none cannot be read.*--kubeconfig/,
  ],
  ["a kubeconfig without a cluster", { kubeconfig: join(folder, "empty") }, "failed", /names no cluster/],
  [
    "no image of learners",
    { image: undefined },
    "input",
    /^--image is missing: longrun publishes no images; give the images/,
  ],
  ["no image of sandboxes", { sandboxImage: "" }, "input", /^--sandbox-image is missing/],
  ["no host", { webhookAllow: ["https://hook"] }, "input", /--webhook-allow has https:\/\/hook, must be a host/],
  ["no address", { metricsAddress: "8080" }, "input", /--metrics-address 8080: write HOST:PORT/],
];
for (const [what, change, code, message] of CASES)
  test(`runController: ${what}`, () =>
    assert.rejects(runController({ ...OPTIONS, ...change }, new AbortController().signal), { code, message }));

test("runController stops if it is told to before it has reached anything", async () => {
  const stopping = new AbortController();
  setTimeout(() => stopping.abort(), 200);
  const level = process.env.LOG_LEVEL;
  process.env.LOG_LEVEL = "silent";
  try {
    assert.equal(await runController(OPTIONS, stopping.signal), 0);
  } finally {
    if (level === undefined) delete process.env.LOG_LEVEL;
    else process.env.LOG_LEVEL = level;
  }
});
