/** Tests `kubectl longrun` with a real API server without nodes; test/e2e tests the commands that need a kubelet. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { KubeConfig } from "@kubernetes/client-node";
import type { Run } from "../../controller/operator/desired/names.ts";
import { DEFAULT_SETTINGS } from "../../controller/operator/desired/settings.fixture.ts";
import { ApiClient } from "../../controller/operator/kube/api-client.ts";
import {
  DEPLOYMENT,
  NAMESPACE,
  POD,
  type Pod,
  SECRET,
  TRAINING_RUN,
} from "../../controller/operator/kube/resources.ts";
import type { KubeObject } from "../../controller/operator/kube/types.ts";
import { desiredLearner } from "../../controller/operator/parts/learner/desired.ts";
import { bundle } from "../../controller/plugin/bundle.ts";
import { main } from "../../controller/plugin/main.ts";
import { API_SERVER } from "../cluster/binaries.ts";
import { type ControlPlane, controlPlaneUnavailable, startControlPlane } from "../cluster/control-plane.ts";
import { until } from "../until.ts";

const skip = controlPlaneUnavailable(API_SERVER) ?? false;
const CRD = fileURLToPath(new URL("../../crds/longrun.dev_trainingruns.yaml", import.meta.url));
const SPEC = { tasks: [{ name: "diamonds" }], model: { policy: "quickstart" } };
const namespace = "team";

describe("kubectl longrun", { skip, concurrency: 4 }, () => {
  let controlPlane: ControlPlane;
  let client: ApiClient;
  let folder: string;

  before(async () => {
    folder = mkdtempSync(join(tmpdir(), "longrun-plugin-"));
    controlPlane = await startControlPlane({ crds: [CRD] });
    const config = new KubeConfig();
    config.loadFromFile(controlPlane.kubeconfig);
    client = new ApiClient(config, { qps: 1000, burst: 1000 });
    const labels = { "pod-security.kubernetes.io/enforce": "restricted" };
    await client.create(NAMESPACE, { metadata: { name: namespace, labels } });
    await client.create(
      { group: "", version: "v1", plural: "serviceaccounts", kind: "ServiceAccount", namespaced: true },
      {
        metadata: { namespace, name: "stopped-learner" },
      },
    );
  });
  after(async () => {
    client?.close();
    await controlPlane?.stop();
    rmSync(folder, { recursive: true, force: true });
  });

  const make = (name: string, spec: object = {}) =>
    client.create(TRAINING_RUN, { metadata: { namespace, name }, spec: { ...SPEC, ...spec } } as unknown as Run);
  const say = (name: string, status: object) =>
    client.mergePatch(TRAINING_RUN, { namespace, name }, { status }, { subresource: "status" });
  const get = async (name: string) => (await client.get<Run>(TRAINING_RUN, { namespace, name }))!;
  const condition = (type: string, status: string, reason: string, message: string) => ({
    ...{ type, status, reason, message, lastTransitionTime: "2026-01-01T00:00:00Z" },
  });
  const start = (...args: string[]) => {
    const said = { out: "", err: "" };
    const screen = (to: "out" | "err") => ({
      write(text: string) {
        said[to] += text;
      },
    });
    const argv = ["node", "kubectl-longrun", "--kubeconfig", controlPlane.kubeconfig, ...args, "-n", namespace];
    return { said, done: main(argv, screen("out"), screen("err")).then((status) => ({ status, ...said })) };
  };
  const kubectl = (...args: string[]) => start(...args).done;
  /** Starts the command and waits for its first output. */
  const begun = async (...args: string[]) => {
    const { said, done } = start(...args);
    await until(
      () => said.out !== "",
      () => `an output; on stderr: ${said.err}`,
    );
    return { done };
  };
  const readers = async (run: string) =>
    (await client.list<Pod>(POD, { namespace, labelSelector: `longrun.dev/run=${run}` })).items;

  test("The bundle is one file with the same behaviour", async () => {
    await make("bundled");
    const alone = join(folder, "alone");
    mkdirSync(alone);
    const file = join(alone, "kubectl-longrun");
    await bundle(file);
    const args = ["status", "bundled", "--once", "-n", namespace];
    const env = { ...process.env, KUBECONFIG: controlPlane.kubeconfig };
    const { stdout } = await promisify(execFile)(file, args, { env });
    assert.equal(stdout, "bundled     not seen by a controller yet · iteration 0 of 100\n");
    assert.deepEqual(readdirSync(alone), ["kubectl-longrun"]);
  });

  test("status prints once, as JSON, or until the run is over", async () => {
    await make("seen", { stopping: { iterations: 2 } });
    await say("seen", { phase: "Running", iteration: 1, score: { best: 371.9 } });
    const once = await kubectl("status", "seen", "--once");
    assert.equal(once.out, "seen        Running · iteration 1 of 2\nscores      best 371.9\n");
    assert.equal(JSON.parse((await kubectl("status", "seen", "--json")).out).iteration, 1);
    const watching = await begun("status", "seen", "--interval", "0.1");
    const conditions = [condition("Succeeded", "True", "Completed", "all 2 iterations are done")];
    await say("seen", { phase: "Succeeded", iteration: 2, conditions });
    const { out, status } = await watching.done;
    assert.equal(status, 0);
    assert.match(
      out,
      /Running · iteration 1 of 2\n[\s\S]*Succeeded · iteration 2 of 2\n[\s\S]*all 2 iterations are done\n$/,
    );
    assert.equal(out.match(/seen {8}/g)!.length, 2, "only what has changed");
  });

  test("pause and resume set spec.suspend, and wait for its effect if an option says so", async () => {
    await make("paused");
    const first = await kubectl("pause", "paused");
    assert.match(first.out, /^paused pauses: programs that run may finish/);
    const { spec, metadata } = await get("paused");
    assert.equal(spec.suspend, true);
    const { managedFields } = metadata as { managedFields?: { manager: string }[] };
    assert.ok(managedFields!.some(({ manager }) => manager === "kubectl-longrun"));
    const waiting = await begun("pause", "paused", "--wait");
    await say("paused", { conditions: [condition("Suspended", "True", "Suspended", "stopped at iteration 3")] });
    assert.deepEqual(await waiting.done, {
      status: 0,
      out: "paused is asked to pause already\nstopped at iteration 3\n",
      err: "",
    });
    assert.match((await kubectl("resume", "paused")).out, /^paused continues from its newest checkpoint/);
    assert.equal((await get("paused")).spec.suspend, false);
    const late = await kubectl("resume", "paused", "--wait", "--timeout", "0.1");
    assert.deepEqual([late.status, /not done after 0\.1 s/.test(late.err)], [1, true]);
    await say("paused", { phase: "Failed" });
    assert.deepEqual(await kubectl("pause", "paused"), { status: 2, out: "", err: "paused is over: Failed\n" });
  });

  test("A pod reads the volume of a run without a learner, fits the restricted level, and is deleted", async () => {
    const run = await make("stopped");
    await say("stopped", {
      phase: "Succeeded",
      checkpoint: { iteration: 1, digest: "d", path: "checkpoints/1-000001" },
    });
    assert.match((await kubectl("best", "stopped")).err, /has no learner yet, so no volume to read/);
    const inputs = { replicas: 0, configHash: "h", claimName: "stopped-data", settings: DEFAULT_SETTINGS } as const;
    await client.create(DEPLOYMENT, desiredLearner(run, inputs));
    const seen: Pod[] = [];
    const watching = setInterval(() => void readers("stopped").then((pods) => seen.push(...pods)), 50);
    const answers = await Promise.all([
      kubectl("best", "stopped", "--timeout", "1"),
      kubectl("report", "stopped", "--timeout", "1", "--out", join(folder, "report.html")),
      kubectl("pull", "stopped", "model", "--timeout", "1", "--out", join(folder, "model")),
    ]);
    clearInterval(watching);
    for (const { status, out, err } of answers) {
      assert.deepEqual([status, out], [1, ""]);
      assert.match(
        err,
        /^no learner runs: .*\npod team\/stopped-reader-\w+ does not run after 1 s: it says no reason\n$/,
      );
    }
    assert.deepEqual(await readers("stopped"), []);
    assert.ok(!readdirSync(folder).some((name) => /model|report/.test(name)), "nothing half is left here");
    const { spec, metadata } = seen[0]!;
    assert.equal(metadata.ownerReferences?.[0]?.uid, run.metadata.uid);
    assert.deepEqual(
      spec!.volumes!.map(({ name, persistentVolumeClaim }) => [name, persistentVolumeClaim?.claimName]),
      [["data", "stopped-data"]],
    );
    assert.equal(spec!.containers[0]!.volumeMounts![0]!.readOnly, true);
    assert.equal(spec!.automountServiceAccountToken, false);
  });

  test("evaluate creates a run, returns its first evaluation, and deletes the run", async () => {
    const schedule = { learningRateSchedule: { type: "Linear", warmupIterations: 5 }, criticWarmupIterations: 7 };
    await make("trained", {
      algorithm: schedule,
      stopping: { iterations: 20, convergence: { window: 10, tolerance: 1 } },
    });
    const evaluating = kubectl("evaluate", "trained", "--samples", "16");
    for (let made: Run | undefined; !made; await sleep(50))
      made = await client.get<Run>(TRAINING_RUN, { namespace, name: "trained-evaluation" });
    const { spec } = await get("trained-evaluation");
    assert.deepEqual(spec.initFrom, { run: "trained" });
    const { samples, before, after: afterwards } = spec.evaluation;
    assert.deepEqual([samples, before, afterwards, spec.learner.storage.retain], [16, true, false, "Never"]);
    const twice = await kubectl("evaluate", "trained");
    assert.deepEqual([twice.status, /already exists/.test(twice.err)], [2, true]);
    await say("trained-evaluation", {
      evaluation: { before: { iteration: 20, samples: 16, validFraction: 0.9, best: 280 } },
    });
    const { status, out } = await evaluating;
    assert.equal(status, 0);
    assert.deepEqual(JSON.parse(out), { iteration: 20, samples: 16, validFraction: 0.9, best: 280 });
    assert.equal(await client.get(TRAINING_RUN, { namespace, name: "trained-evaluation" }), undefined);
  });

  test("debug writes a support bundle of the run without its Secrets", async () => {
    await make("ill");
    await client.create(SECRET, {
      metadata: { namespace, name: "ill-ca", labels: { "longrun.dev/run": "ill" } },
      stringData: { "tls.key": "not-for-others" },
    } as unknown as KubeObject);
    const out = join(folder, "ill.tar.gz");
    assert.deepEqual(await kubectl("debug", "ill", "--out", out), { status: 0, out: `${out}\n`, err: "" });
    const tar = (...args: string[]) => promisify(execFile)("tar", args).then(({ stdout }) => stdout);
    const names = (await tar("-tzf", out)).split("\n").map((name) => name.slice(name.indexOf("/") + 1));
    for (const name of ["trainingrun.yaml", "events.yaml", "objects/pods.yaml", "controller.yaml", "machine.json"])
      assert.ok(names.includes(name), `${name} is in it: ${names}`);
    const content = await tar("-xzOf", out);
    assert.match(content, /name: ill\n/);
    assert.doesNotMatch(content, /not-for-others|bm90LWZvci1vdGhlcnM/);
    assert.match((await kubectl("debug", "ill", "--out", out)).err, /is there already; name another file with --out/);
  });

  test("An impossible command gives one line", async () => {
    await make("young");
    const REFUSALS: [args: string[], status: number, message: RegExp][] = [
      [["status", "nobody"], 2, /^there is no TrainingRun nobody in namespace team; see kubectl get/],
      [["status", "young", "--context", "elsewhere"], 2, /^--context elsewhere: .* has no such context$/],
      [["status", "young", "--interval", "0"], 2, /^--interval is 0, must be a number above 0$/],
      [["logs", "young"], 1, /^young has no learner pod now: kubectl longrun status young shows the reason$/],
      [["report", "young", "--live"], 1, /^no learner of young runs; without --live the report is fetched/],
      [["pull", "young", "model", "--out", "."], 2, /is there already and not empty; name another folder with --out$/],
      [["pull", "young", "answers"], 2, /Allowed choices are model, best, run/],
    ];
    for (const [args, status, message] of REFUSALS) {
      const answer = await kubectl(...args);
      assert.deepEqual([args, answer.status, answer.out], [args, status, ""]);
      assert.match(answer.err.trimEnd(), message);
      assert.equal(answer.err.trimEnd().split("\n").length, 1, answer.err);
    }
  });
});
