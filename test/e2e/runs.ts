/** TrainingRuns on the cluster, used as a person would. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import type { TestCluster } from "../cluster/node.ts";
import { TARGETS } from "./images.ts";
import type { Kubectl } from "./kubectl.ts";
import { localClass, localVolume, manifest } from "./manifests.ts";
import { say, sayMoving } from "./output.ts";
import { actorPods, type Labelled, podsOf, reached, untilPods } from "./run-pods.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));

/** Runs the quickstart to Succeeded, undisturbed. */
export async function quickstart(kubectl: Kubectl): Promise<void> {
  // The unchanged manifest is accepted; two iterations are enough here.
  await kubectl.run("apply", "--filename", join(ROOT, "manifests/quickstart"), "--dry-run=server");
  await kubectl.apply(
    manifest("quickstart", 2, (spec) => {
      spec.learner = { ...spec.learner, storage: { retain: "Never" } };
      spec.evaluation = { samples: 4 };
    }),
  );
  const watch = kubectl.watch(sayMoving(), "trainingrun", "quickstart");
  try {
    await untilPods(kubectl, "quickstart", "actor", "an actor's pod runs", 240, (pods) =>
      pods.some(({ status }) => status?.phase === "Running"),
    );
    await answersStayWithTheLearner(kubectl);
    await kubectl.condition("quickstart", "Succeeded", "True", 600);
  } finally {
    watch.stop();
  }
  say((await kubectl.run("describe", "trainingrun", "quickstart")).replace(/^[\s\S]*?\nStatus:/, "Status:"));
  await untilPods(kubectl, "quickstart", undefined, "no pod of the finished run is left", 60, (pods) =>
    pods.every(({ status }) => status?.phase === "Succeeded"),
  );
}

/** Checks from inside the containers that only the learner has the answers. */
async function answersStayWithTheLearner(kubectl: Kubectl): Promise<void> {
  const script = `
import glob, os
print(dict(uid=os.getuid(), token=os.path.exists("/var/run/secrets/kubernetes.io"), tls=os.path.exists("/tls"),
  answers=glob.glob("/opt/longrun-tasks/*/prepared/private"), writable=os.access("/opt", os.W_OK)))`;
  const inSandbox = ["--container", "sandbox-0", "--", "/opt/python/bin/python", "-I", "-S", "-c", script];
  // The sandbox kills all other processes in its container after each execution, so also this one if they coincide.
  const seen = await kubectl.until("a look into a sandbox", 60, async () => {
    const [pod] = await actorPods(kubectl, "quickstart");
    return (await kubectl.run("exec", pod!.metadata.name, ...inSandbox)).trim();
  });
  say(`a sandbox sees ${seen}`);
  assert.equal(seen, "{'uid': 10002, 'token': False, 'tls': False, 'answers': [], 'writable': False}");

  // Only the learner's image has them.
  const read = "fs.readFileSync('/opt/longrun-tasks/diamonds/prepared/private/answers.csv').length";
  const readAnswers = async (component: string) => {
    const [pod] = await podsOf(kubectl, "quickstart", component);
    return kubectl.run(
      "exec",
      pod!.metadata.name,
      "--container",
      component === "actor" ? "supervisor" : "learner",
      "--",
      "node",
      "--print",
      read,
    );
  };
  assert.ok(Number(await readAnswers("learner")) > 0);
  await assert.rejects(readAnswers("actor"), /ENOENT/);
}

/** Checks that the API server refuses invalid runs, and that a condition names missing parts within a minute. */
export async function blockers(kubectl: Kubectl): Promise<void> {
  const refused = await kubectl
    .apply(manifest("refused", 2, (spec) => (spec.actors = { ...spec.actors, replicas: 2 })))
    .catch((error: Error) => error.message);
  say(refused);
  assert.match(refused, /actors\.replicas.*External/s);

  const learner = { image: "longrun/no-such-image:1", imagePullPolicy: "Never", storage: { retain: "Never" } };
  await kubectl.apply(manifest("blocked", 2, (spec) => (spec.learner = { ...spec.learner, ...learner })));
  const blocked = await kubectl.untilRun("blocked", "the missing image is named", 60, ({ status }) =>
    status?.conditions?.find(({ type, message }) => type === "Ready" && message.includes("no-such-image")),
  );
  say(`${blocked.reason}: ${blocked.message}`);
  await kubectl.run("delete", "trainingrun", "blocked", "--timeout=60s");
}

/**
 * Runs the controller as a process of this machine, which reaches the learner through the API server. The run starts from the quickstart's
 * trained policy.
 */
export async function controllerOutside(cluster: TestCluster, kubectl: Kubectl, system: Kubectl): Promise<void> {
  const deployment = "deployment/longrun-controller";
  const replicas = (count: number) => system.run("scale", deployment, `--replicas=${count}`);
  await replicas(0);
  await system.until("no controller is in the cluster", 60, async () => {
    return (await system.items<Labelled>("pods")).length === 0;
  });
  const images = Object.entries(TARGETS).filter(([target]) => target !== "controller");
  const flags = [
    ...["--kubeconfig", cluster.kubeconfig, "--namespace", "training", "--metrics-address", "127.0.0.1:0"],
    ...images.flatMap(([target, name]) => [target === "learner" ? "--image" : `--${target}-image`, name]),
  ];
  const child = spawn(process.execPath, [join(ROOT, "controller/cli.ts"), "controller", ...flags], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  let log = "";
  child.stderr.on("data", (chunk) => {
    log += chunk;
  });
  const exited = once(child, "exit");
  try {
    await kubectl.apply(
      manifest("outside", 1, (spec) => {
        spec.learner = { ...spec.learner, storage: { retain: "Never" } };
        spec.initFrom = { run: "quickstart" };
      }),
    );
    const { message } = await kubectl.condition("outside", "Succeeded", "True", 300);
    say(`${message}, said the learner`);
    const copied = await kubectl.run("logs", "job/outside-init");
    say(copied.trim());
    assert.match(copied, /copied checkpoint 1-000002/);
  } catch (error) {
    say(log);
    throw error;
  } finally {
    child.kill("SIGTERM");
    say(`the controller ends with status ${(await exited)[0]}`);
  }
  await replicas(2);
  await system.run("rollout", "status", deployment, "--timeout=180s");
}

/** A full volume makes the run wait, and free space lets it continue without further action. */
export async function fullVolume(cluster: TestCluster, kubectl: Kubectl): Promise<void> {
  const path = join(cluster.folder, "volumes", "small");
  await cluster.inNode("mkdir", ["-p", path]);
  await cluster.inNode("mount", ["-t", "tmpfs", "-o", "size=128m,mode=0777", "tmpfs", path]);
  await kubectl.apply(localClass("small"));
  await kubectl.apply(localVolume("small", "small", path, "128Mi"));
  try {
    const storage = { className: "small", size: "128Mi", retain: "Never" };
    await kubectl.apply(manifest("full", 100, (spec) => (spec.learner = { ...spec.learner, storage })));
    await reached(kubectl, "full", 1);
    await cluster.inNode("sh", ["-c", `cat /dev/zero > ${path}/filler 2>/dev/null || true`]);
    const full = await kubectl.untilRun("full", "the full volume is named", 180, ({ status }) =>
      status?.conditions?.find(({ type, reason }) => type === "Ready" && reason === "VolumeFull"),
    );
    say(`${full.reason}: ${full.message}`);
    const { status } = await kubectl.trainingRun("full");
    assert.notEqual(status?.phase, "Failed");
    await cluster.inNode("rm", [`${path}/filler`]);
    const iterations = await reached(kubectl, "full", (status?.iteration ?? 0) + 1);
    const spec = { stopping: { iterations: iterations + 1 } };
    await kubectl.run("patch", "trainingrun", "full", "--type=merge", `--patch=${JSON.stringify({ spec })}`);
    say((await kubectl.condition("full", "Succeeded", "True", 300)).message);
  } finally {
    await kubectl.run("delete", "trainingrun", "full", "--timeout=90s", "--ignore-not-found");
    await untilPods(kubectl, "full", "learner", "no pod of the run on a small volume is left", 90, (pods) => {
      return pods.length === 0;
    });
    await cluster.inNode("umount", ["--lazy", path]);
  }
}

export async function deletion(kubectl: Kubectl): Promise<void> {
  say(await kubectl.run("delete", "trainingrun", "--all", "--timeout=120s"));
  const kinds =
    "pods,jobs,deployments,services,configmaps,secrets,serviceaccounts,networkpolicies,poddisruptionbudgets";
  await kubectl.until("every child is gone", 90, async () => {
    const left = await kubectl.items<Labelled>(kinds, "--selector", "app.kubernetes.io/managed-by=longrun");
    return left.length === 0;
  });
  await kubectl.until("only the volume that is to stay has stayed", 60, async () => {
    const claims = (await kubectl.items<Labelled>("pvc")).map(({ metadata }) => metadata.name);
    return claims.length === 1 && claims[0] === "other-data";
  });
  const events = await kubectl.run("get", "events.events.k8s.io", "--output=custom-columns=REASON:.reason,NOTE:.note");
  say(
    events
      .split("\n")
      .filter((line) => line.startsWith("Volume"))
      .join("\n"),
  );
  assert.match(events, /other-data stays/);
  assert.match(events, /quickstart-data goes/);
}

/**
 * Checks that no request of a controller was refused for missing rights, so its role is large enough; `install` checks that it is small.
 */
export async function roleSufficed(system: Kubectl): Promise<void> {
  const script = "fetch('http://127.0.0.1:8080/metrics').then((it) => it.text()).then(console.log)";
  for (const { metadata } of await system.items<Labelled>("pods")) {
    const metrics = await system.run("exec", metadata.name, "--", "node", "--eval", script);
    const samples = metrics.split("\n").filter((line) => line.startsWith("rest_client_requests_total"));
    const codes = samples.map(
      (line) => `${/code="([^"]*)"/.exec(line)?.[1]} ${/method="([^"]*)"/.exec(line)?.[1]}: ${line.split(" ").at(-1)}`,
    );
    say(`${metadata.name} sent requests to the API server: ${codes.join(", ")}`);
    assert.ok(!codes.some((code) => code.startsWith("403")), "the controller lacks a right");
  }
}
