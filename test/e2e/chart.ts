/** The Helm chart on the node: install, `helm test`, an upgrade that a run does not notice, removal while it goes on. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { cpSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { ensureBinaries } from "../cluster/binaries.ts";
import type { TestCluster } from "../cluster/node.ts";
import type { Kubectl } from "./kubectl.ts";
import { say } from "./output.ts";
import { manifest } from "./runs.ts";

const CHART = fileURLToPath(new URL("../../charts/longrun", import.meta.url));
const SYSTEM = "longrun-system";

type Pod = { metadata: { name: string; uid: string }; status?: { containerStatuses?: { restartCount: number }[] } };

/**
 * @param kubectl in the namespace of the runs
 * @param system in the controller's, which is not there yet
 * @param whole for all namespaces
 */
export async function chart(cluster: TestCluster, kubectl: Kubectl, system: Kubectl, whole: Kubectl): Promise<void> {
  const { helm: path } = await ensureBinaries(["helm"], { log: say });
  const helm = async (...args: string[]) => {
    const env = { ...process.env, KUBECONFIG: cluster.kubeconfig };
    try {
      return (await promisify(execFile)(path, [...args, "--namespace", SYSTEM], { env })).stdout;
    } catch (cause) {
      const { stdout, stderr } = cause as { stdout: string; stderr: string };
      throw new Error(`helm ${args[0]}: ${stderr.trim()}\n${stdout}`, { cause });
    }
  };
  say(await helm("install", "longrun", CHART, "--create-namespace", "--wait", "--timeout", "3m"));
  await whole.run("label", "namespace", SYSTEM, "pod-security.kubernetes.io/enforce=restricted");
  say(await helm("test", "longrun", "--logs", "--timeout", "5m"));

  await kubectl.apply(manifest("steady", 100, () => {}));
  const reached = (iteration: number) =>
    kubectl.until(`iteration ${iteration}`, 300, async () => {
      const { status } = await kubectl.trainingRun("steady");
      return (status?.iteration ?? 0) >= iteration && status!.iteration!;
    });
  const iteration = await reached(1);
  const podsOfRun = async () => {
    const pods = await kubectl.items<Pod>("pods", "--selector", "longrun.dev/run=steady");
    return pods.map(({ metadata, status }) => [
      metadata.name,
      metadata.uid,
      ...(status?.containerStatuses ?? []).map(({ restartCount }) => restartCount),
    ]);
  };
  const before = await podsOfRun();
  await upgrade(helm);
  await reached(iteration + 1);
  assert.deepEqual(await podsOfRun(), before, "the run has not noticed");
  say(`the chart was upgraded; ${before.map(([name]) => name).join(", ")} run on`);

  say(await helm("uninstall", "longrun", "--wait", "--timeout", "3m"));
  say(await kubectl.run("delete", "trainingrun", "steady", "--timeout=30s"));
  await kubectl.until("its pods are gone", 90, async () => (await podsOfRun()).length === 0);
  await kubectl.run("get", "pvc", "steady-data");
  await whole.run("delete", "crd", "trainingruns.longrun.dev", "--timeout=60s");
  await whole.run("delete", "namespace", SYSTEM, "--timeout=90s");
  await system.until("nothing of the chart is left", 30, async () => {
    const kinds = "clusterroles,clusterrolebindings";
    return (await whole.items("--selector", "helm.sh/chart", kinds)).length === 0;
  });
}

/** To a package of the next version, with a value changed. */
async function upgrade(helm: (...args: string[]) => Promise<string>): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "longrun-chart-"));
  try {
    cpSync(CHART, join(folder, "longrun"), { recursive: true });
    const file = join(folder, "longrun/Chart.yaml");
    writeFileSync(file, readFileSync(file, "utf8").replace(/^version: .*/m, "version: 0.9.9"));
    await helm("package", join(folder, "longrun"), "--destination", folder);
    const args = ["--reset-then-reuse-values", "--set", "controller.logLevel=debug", "--wait", "--timeout", "3m"];
    say(await helm("upgrade", "longrun", join(folder, "longrun-0.9.9.tgz"), ...args, "--hide-notes"));
  } finally {
    rmSync(folder, { recursive: true });
  }
}
