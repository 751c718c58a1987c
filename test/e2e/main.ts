/**
 * `npm run test:e2e`: longrun on a real node, from `kubectl apply -k` to its removal. Needs Linux and root; takes about 10 minutes on
 * 2 cores once programs and images exist, 20 the first time.
 *
 *     node test/e2e/main.ts [--keep]      --keep: waits for ctrl-C before it takes the cluster down
 *
 * A cluster in namespaces of its own (`test/cluster/node.ts`), images from the Dockerfile (`images.ts`), kubectl for all the
 * rest. Side by side, one run goes from its manifest to Succeeded undisturbed; another is scaled, loses its learner twice, an actor
 * and the leading controller, is evicted, fails, is suspended and resumed, and its store is audited; a third is written by
 * generators, one of which is lost; the volume of a fourth is full for a while. At the end the machine is as it was.
 */
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import * as node from "../cluster/node.ts";
import { lookForTools } from "../lane-tools.ts";
import { findTool, missingPackages } from "../tools.ts";
import { assertAccounted } from "./accounts.ts";
import { chart } from "./chart.ts";
import { disturbed, type StorePath } from "./disturbed.ts";
import { GENERATED_ITERATIONS, generators } from "./generators.ts";
import * as images from "./images.ts";
import { Kubectl } from "./kubectl.ts";
import { findInCgroup, machineState, processesThatName, whatIsNew } from "./machine.ts";
import { BATCH, localClass, localVolume } from "./manifests.ts";
import { say, step, timings, together } from "./output.ts";
import { evaluateFinished, lookAtFinished, Plugin } from "./plugin.ts";
import { blockers, controllerOutside, deletion, fullVolume, quickstart, roleSufficed } from "./runs.ts";
import { tutorial } from "./tutorial.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
const NAMESPACE = "training";
const SYSTEM = "longrun-system";
const VOLUMES = 12;

const { values: options } = parseArgs({ options: { keep: { type: "boolean", default: false } } });

async function main(): Promise<void> {
  const archives = await step("images from the Dockerfile", () => images.buildImages(say));
  const before = machineState();
  const cluster = await step("a cluster of one node", () => node.startCluster({ log: say, images: archives }));
  try {
    await test(cluster);
  } catch (error) {
    say(`failed: ${(error as Error).stack}`); // stopping the cluster may fail, too
    say(await lookAround(cluster));
    throw error;
  } finally {
    if (options.keep) {
      say(`export KUBECONFIG=${cluster.kubeconfig}   (ctrl-C takes the cluster down)`);
      await once(process, "SIGINT");
    }
    await step("the cluster is removed", () => cluster.stop());
  }
  const { folder, controlPlane, cgroup } = cluster;
  assert.deepEqual(whatIsNew(before, machineState()), [], "the machine is as it was");
  assert.deepEqual(processesThatName(folder, controlPlane.folder, cgroup), [], "no part of the cluster runs");
  assert.deepEqual(findInCgroup(cgroup), [], "nothing of a pod runs");
  assert.ok(!existsSync(folder) && !existsSync(controlPlane.folder), "no folder is left");
}

/** Returns the state of the cluster after a failure, for a person. */
async function lookAround(cluster: node.TestCluster): Promise<string> {
  const kubectl = new Kubectl(cluster.kubectl, cluster.kubeconfig);
  const questions = [
    ["get", "trainingruns,pods,pvc", "--all-namespaces"],
    ["describe", "trainingruns", "--all-namespaces"],
    ["get", "events", "--all-namespaces", "--field-selector=type!=Normal"],
    ["logs", "--namespace", SYSTEM, "--selector", "app.kubernetes.io/component=controller", "--tail=20"],
    ["logs", "--namespace", NAMESPACE, "--selector", "longrun.dev/run", "--all-containers", "--prefix", "--tail=10"],
  ];
  const answers = await Promise.all(questions.map((args) => kubectl.run(...args).catch((error) => error.message)));
  return [...answers, cluster.logs(3)].join("\n");
}

async function test(cluster: node.TestCluster): Promise<void> {
  const kubectl = new Kubectl(cluster.kubectl, cluster.kubeconfig, NAMESPACE);
  try {
    await testWith(cluster, kubectl);
  } finally {
    kubectl.close();
  }
}

async function testWith(cluster: node.TestCluster, kubectl: Kubectl): Promise<void> {
  const system = new Kubectl(cluster.kubectl, cluster.kubeconfig, SYSTEM);
  const whole = new Kubectl(cluster.kubectl, cluster.kubeconfig);
  const store: StorePath = async (run) => {
    const claim = await kubectl.json<{ spec: { volumeName: string } }>("get", "pvc", `${run}-data`);
    return join(cluster.folder, "volumes", claim.spec.volumeName, "run", "store.sqlite");
  };
  await step("kubectl apply -k manifests/install", () => install(whole, system));
  await makeVolumes(cluster, kubectl);

  const plugin = await Plugin.make(cluster, NAMESPACE);
  try {
    await together({
      quickstart: async () => {
        await step("quickstart to Succeeded", async () => {
          await quickstart(kubectl);
          say(JSON.stringify(assertAccounted(await store("quickstart"), { iterations: 2, batch: BATCH })));
        });
        await step("kubectl longrun of a run that is over", () => lookAtFinished(plugin, kubectl, "quickstart"));
        await step("kubectl longrun evaluate", () => evaluateFinished(plugin, kubectl, "quickstart"));
        await step("impossible runs are refused, conditions name blockers", () => blockers(kubectl));
      },
      other: () =>
        step("another run: scaled, crashed, evicted, failed, suspended, resumed", async () => {
          const iterations = await disturbed(kubectl, system, store, plugin);
          const accounts = assertAccounted(await store("other"), { iterations, batch: BATCH });
          say(JSON.stringify(accounts));
          assert.ok(accounts.learners >= 6, "a start, two crashes, an eviction and two resumptions are six learners");
          assert.ok(accounts.attemptsLost >= 1, "the killed actor's execution was tried again");
        }),
      generated: async () => {
        await step("two generators, of which one is lost", async () => {
          await generators(kubectl, async () => {
            const accounts = assertAccounted(await store("generated"), {
              iterations: GENERATED_ITERATIONS,
              batch: BATCH,
            });
            say(JSON.stringify(accounts));
          });
        });
        await step("a full volume", () => fullVolume(cluster, kubectl));
      },
    });
  } finally {
    plugin.remove();
  }
  await step("a controller outside of the cluster", () => controllerOutside(cluster, kubectl, system));
  await step("kubectl delete", () => deletion(kubectl));
  await roleSufficed(system);
  await step("kubectl delete -k manifests/install", async () => {
    await whole.run("delete", "--kustomize", join(ROOT, "manifests/install"), "--timeout=60s");
  });
  await step("manifests/README.md, word for word", () => tutorial(cluster));
  await step("helm install, test, upgrade, uninstall", () => chart(cluster, kubectl, system, whole));
}

async function install(kubectl: Kubectl, system: Kubectl): Promise<void> {
  say(await kubectl.run("apply", "--kustomize", join(ROOT, "manifests/install")));
  const timeout = "--timeout=180s";
  say(await system.run("rollout", "status", "deployment/longrun-controller", timeout));
  say(await system.run("get", "pods,lease"));
  const account = `--as=system:serviceaccount:${SYSTEM}:longrun-controller`;
  const may = (right: string) => kubectl.run("auth", "can-i", ...right.split(" "), account, "--all-namespaces");
  assert.equal((await may("create jobs")).trim(), "yes");
  for (const right of ["create pods", "update secrets", "get nodes", "update trainingruns"])
    await assert.rejects(may(right), `the controller may ${right}`); // the answer "no" is exit status 1

  await kubectl.run("create", "namespace", NAMESPACE);
  await kubectl.run("label", "namespace", NAMESPACE, "pod-security.kubernetes.io/enforce=restricted");
  await kubectl.run("create", "namespace", "longrun");
  await kubectl.run("apply", "--kustomize", join(ROOT, "manifests/install/namespaced"), "--dry-run=server");
}

/** Folders of the node, as volumes that exist before anybody claims them. */
async function makeVolumes(cluster: node.TestCluster, kubectl: Kubectl): Promise<void> {
  const volumes = Array.from({ length: VOLUMES }, (_, i) => {
    const path = join(cluster.folder, "volumes", `volume-${i}`);
    mkdirSync(path, { recursive: true });
    return localVolume(`volume-${i}`, "local", path, "200Gi");
  });
  await kubectl.apply({ apiVersion: "v1", kind: "List", items: [localClass("local", true), ...volumes] });
}

/** Installs missing programs from Debian's packages, if they are available. Removes no installed package. */
function installPackages(): void {
  const packages = missingPackages([...node.PROGRAMS, ...images.PROGRAMS], node.PATH);
  if (packages.length === 0 || process.getuid?.() !== 0 || !findTool("apt-get")) return;
  say(`apt-get install ${packages.join(" ")}`);
  const quiet = {
    env: { ...process.env, DEBIAN_FRONTEND: "noninteractive" },
    stdio: ["ignore", "ignore", "inherit"] as ["ignore", "ignore", "inherit"],
  };
  try {
    execFileSync("apt-get", ["update", "-qq"], quiet);
  } catch {
    // An unrelated package source may be out of reach.
  }
  execFileSync("apt-get", ["install", "-y", "-qq", "--no-install-recommends", "--no-remove", ...packages], quiet);
}

if (process.platform === "linux") installPackages();
lookForTools("test:e2e");
const start = performance.now();
try {
  await main();
  process.stdout.write("--- done: everything held\n");
} catch (error) {
  process.stdout.write(`--- failed: ${(error as Error).stack}\n`);
  process.exitCode = 1;
}
for (const [name, seconds] of timings) process.stdout.write(`${seconds.toFixed(1).padStart(8)} s  ${name}\n`);
process.stdout.write(`${((performance.now() - start) / 1000).toFixed(1).padStart(8)} s  in all\n`);
await sleep(0);
process.exit();
