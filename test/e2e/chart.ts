/**
 * Tests the Helm chart on the node: install, `helm test`, an upgrade to other images that affects a run only after it is suspended and
 * resumed, another `helm test`, and removal during a run.
 */
import assert from "node:assert/strict";
import type { TestCluster } from "../cluster/node.ts";
import { CHART, helmOf } from "./helm.ts";
import { TARGETS } from "./images.ts";
import type { Kubectl } from "./kubectl.ts";
import { manifest } from "./manifests.ts";
import { say } from "./output.ts";
import { reached, untilPods } from "./run-pods.ts";

const SYSTEM = "longrun-system";

type Pod = { metadata: { name: string; uid: string }; status?: { containerStatuses?: { restartCount: number }[] } };

/**
 * @param kubectl for the namespace of the runs
 * @param system for the controller's namespace, which does not exist yet
 * @param whole for all namespaces
 */
export async function chart(cluster: TestCluster, kubectl: Kubectl, system: Kubectl, whole: Kubectl): Promise<void> {
  const helm = await helmOf(cluster, SYSTEM, say);
  const images = ["--set", "images.registry=registry.example.com/ml"];
  say(await helm("install", "longrun", CHART, ...images, "--create-namespace", "--wait", "--timeout", "3m"));
  await whole.run("label", "namespace", SYSTEM, "pod-security.kubernetes.io/enforce=restricted");
  const test = async () => say(await helm("test", "longrun", "--logs", "--timeout", "10m"));
  await test();

  await kubectl.apply(manifest("steady", 100, () => {}));
  const iteration = await reached(kubectl, "steady", 1);
  const podsOfRun = async () => {
    const pods = await kubectl.items<Pod>("pods", "--selector", "longrun.dev/run=steady");
    return pods.map(({ metadata, status }) => [
      metadata.name,
      metadata.uid,
      ...(status?.containerStatuses ?? []).map(({ restartCount }) => restartCount),
    ]);
  };
  const before = await podsOfRun();
  for (const name of Object.values(TARGETS)) await cluster.tagImage(name, name.replace(/:.*/, ":next"));
  const values = ["--reset-then-reuse-values", "--set", "controller.logLevel=debug,images.tag=next"];
  say(await helm("upgrade", "longrun", CHART, ...values, "--wait", "--timeout", "3m", "--hide-notes"));
  await reached(kubectl, "steady", iteration + 1);
  assert.deepEqual(await podsOfRun(), before, "the run has not noticed");
  const learnerImage = async () => (await kubectl.trainingRun("steady")).status?.images?.learner;
  assert.equal(await learnerImage(), TARGETS.learner, "the run keeps its images");
  say(`the chart was upgraded; ${before.map(([name]) => name).join(", ")} run on`);
  await kubectl.run("patch", "trainingrun", "steady", "--type=merge", '--patch={"spec":{"suspend":true}}');
  await kubectl.condition("steady", "Suspended", "True", 180);
  await kubectl.run("patch", "trainingrun", "steady", "--type=merge", '--patch={"spec":{"suspend":false}}');
  const next = TARGETS.learner.replace(/:.*/, ":next");
  await kubectl.untilRun("steady", "the resumed run has the new images", 120, ({ status }) => {
    return status?.images?.learner === next;
  });
  say(`resumed with ${next}`);
  await test();

  say(await helm("uninstall", "longrun", "--wait", "--timeout", "3m"));
  say(await kubectl.run("delete", "trainingrun", "steady", "--timeout=30s"));
  await untilPods(kubectl, "steady", undefined, "its pods are gone", 90, (pods) => pods.length === 0);
  await kubectl.run("get", "pvc", "steady-data");
  await whole.run("delete", "crd", "trainingruns.longrun.dev", "trainingruntimes.longrun.dev", "--timeout=60s");
  await whole.run("delete", "namespace", SYSTEM, "--timeout=90s");
  await system.until("nothing of the chart is left", 30, async () => {
    const kinds = "clusterroles,clusterrolebindings";
    return (await whole.items("--selector", "helm.sh/chart", kinds)).length === 0;
  });
}
