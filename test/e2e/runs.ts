/** What happens to TrainingRuns on the cluster, as a person would do it. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parse } from "yaml";
import type { TestCluster } from "../cluster/node.ts";
import { attemptIsOpen, learnersOf, runningAttempt } from "./accounts.ts";
import type { Kubectl } from "./kubectl.ts";
import { findInCgroup } from "./machine.ts";
import { say, sayMoving } from "./output.ts";

const ROOT = fileURLToPath(new URL("../..", import.meta.url));
/** Samples that an iteration trains on. */
export const BATCH = 8;

type Labelled = {
  metadata: { name: string; uid: string; labels?: Record<string, string> };
  status?: { phase?: string };
};

/** Where the store of a run lies on this machine. */
export type StorePath = (run: string) => Promise<string>;

/** The manifest that ships, with smaller numbers and what `change` does to it. */
export function manifest(
  name: string,
  iterations: number,
  change: (spec: Record<string, Record<string, unknown>>) => void,
) {
  const run = parse(readFileSync(join(ROOT, "manifests/quickstart/trainingrun.yaml"), "utf8"));
  run.metadata.name = name;
  run.spec.algorithm.batchSize = BATCH;
  run.spec.stopping.iterations = iterations;
  run.spec.evaluation.samples = 4;
  change(run.spec);
  return run;
}

/** From the manifest to Succeeded, undisturbed. */
export async function quickstart(kubectl: Kubectl): Promise<void> {
  // As it is, it is accepted; two iterations are enough here.
  await kubectl.run("apply", "--filename", join(ROOT, "manifests/quickstart"), "--dry-run=server");
  await kubectl.apply(
    manifest("quickstart", 2, (spec) => (spec.learner = { ...spec.learner, storage: { retain: "Never" } })),
  );
  const watch = kubectl.watch(sayMoving(), "trainingrun", "quickstart");
  try {
    await kubectl.until("an actor's pod runs", 240, async () => {
      const pods = await actorPods(kubectl, "quickstart");
      return pods.some(({ status }) => status?.phase === "Running");
    });
    await answersStayWithTheLearner(kubectl);
    await kubectl.condition("quickstart", "Succeeded", "True", 600);
  } finally {
    watch.stop();
  }
  say((await kubectl.run("describe", "trainingrun", "quickstart")).replace(/^[\s\S]*?\nStatus:/, "Status:"));
  await kubectl.until("no pod of the finished run is left", 60, async () => {
    const pods = await kubectl.items<Labelled>("pods", "--selector", "longrun.dev/run=quickstart");
    return pods.every(({ status }) => status?.phase === "Succeeded");
  });
}

const podsOf = (kubectl: Kubectl, run: string, component: string) =>
  kubectl.items<Labelled>("pods", "--selector", `longrun.dev/run=${run},app.kubernetes.io/component=${component}`);
const actorPods = (kubectl: Kubectl, run: string) => podsOf(kubectl, run, "actor");

/** Seen from inside the containers. */
async function answersStayWithTheLearner(kubectl: Kubectl): Promise<void> {
  const script = `
import glob, os
print(dict(uid=os.getuid(), token=os.path.exists("/var/run/secrets/kubernetes.io"), tls=os.path.exists("/tls"),
  answers=glob.glob("/opt/longrun-tasks/*/prepared/private"), writable=os.access("/opt", os.W_OK)))`;
  const inSandbox = ["--container", "sandbox-0", "--", "/opt/python/bin/python", "-I", "-S", "-c", script];
  // The sandbox kills whatever else is in its container after each execution: this one too, if they coincide.
  const seen = await kubectl.until("a look into a sandbox", 60, async () => {
    const [pod] = await actorPods(kubectl, "quickstart");
    return (await kubectl.run("exec", pod!.metadata.name, ...inSandbox)).trim();
  });
  say(`a sandbox sees ${seen}`);
  assert.equal(seen, "{'uid': 10002, 'token': False, 'tls': False, 'answers': [], 'writable': False}");

  // They are in the learner's image alone.
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

/** What cannot be is refused by the API server; what is missing is named by a condition within a minute. */
export async function blockers(kubectl: Kubectl): Promise<void> {
  const refused = await kubectl
    .apply(manifest("refused", 2, (spec) => (spec.actors = { ...spec.actors, replicas: 2 })))
    .catch((error: Error) => error.message);
  say(refused);
  assert.match(refused, /actors\.replicas.*External/s);

  const learner = { image: "longrun/no-such-image:1", imagePullPolicy: "Never", storage: { retain: "Never" } };
  await kubectl.apply(manifest("blocked", 2, (spec) => (spec.learner = { ...spec.learner, ...learner })));
  const blocked = await kubectl.until("the missing image is named", 60, async () => {
    const { conditions = [] } = (await kubectl.trainingRun("blocked")).status ?? {};
    return conditions.find(({ type, message }) => type === "Ready" && message.includes("no-such-image"));
  });
  say(`${blocked.reason}: ${blocked.message}`);
  await kubectl.run("delete", "trainingrun", "blocked", "--timeout=60s");
}

/**
 * A controller that is a process of this machine reaches the learner through the API server. The run starts from what
 * quickstart has learned.
 */
export async function controllerOutside(cluster: TestCluster, kubectl: Kubectl, system: Kubectl): Promise<void> {
  const deployment = "deployment/longrun-controller";
  const replicas = (count: number) => system.run("scale", deployment, `--replicas=${count}`);
  await replicas(0);
  await system.until("no controller is in the cluster", 60, async () => {
    return (await system.items<Labelled>("pods")).length === 0;
  });
  const flags = ["--kubeconfig", cluster.kubeconfig, "--namespace", "training", "--metrics-address", "127.0.0.1:0"];
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
        spec.evaluation = { before: false, after: false };
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

/**
 * What comes next comes while executions run, each time to a learner that has begun its work.
 *
 * @param lookAtRunning what people do meanwhile
 * @returns the iterations that the run was given in the end
 */
export async function disturbed(
  cluster: TestCluster,
  kubectl: Kubectl,
  system: Kubectl,
  store: StorePath,
  lookAtRunning: () => Promise<void>,
): Promise<number> {
  const actors = { autoscaling: "External", replicas: 1, slots: 1, min: undefined, max: undefined };
  // More than there is time for, however fast the machine is: the number is lowered with the resumption.
  const run = manifest("other", 100, (spec) => (spec.actors = actors));
  await kubectl.apply(run);
  const watch = kubectl.watch(sayMoving(), "trainingrun", "other");
  const reached = (iteration: number) =>
    kubectl.until(`iteration ${iteration}`, 300, async () => {
      const { status } = await kubectl.trainingRun("other");
      return (status?.iteration ?? 0) >= iteration;
    });
  const learners = (count: number) =>
    kubectl.until(`learner ${count} works`, 120, async () => learnersOf(await store("other")) === count);
  const running = (count: number) =>
    kubectl.until(`${count} actors run`, 120, async () => {
      const pods = await actorPods(kubectl, "other");
      return pods.filter(({ status }) => status?.phase === "Running").length === count && pods;
    });
  try {
    await running(1);
    say(await kubectl.run("scale", "trainingrun", "other", "--replicas=2"));
    await running(2);

    await reached(1);
    await lookAtRunning();
    await killBusyActor(kubectl, await store("other"));
    const [learner] = findInCgroup(cluster.cgroup, "learner/main.ts");
    say(`SIGKILL to the learner, process ${learner}`);
    process.kill(learner!, "SIGKILL");
    await controllerFailover(system);
    await learners(2);

    say(await kubectl.run("delete", "pod", "--grace-period=0", "--force", "--selector", learnerOf("other")));
    await learners(3);

    const patch = (spec: object) =>
      kubectl.run("patch", "trainingrun", "other", "--type=merge", `--patch=${JSON.stringify({ spec })}`);
    say(await patch({ suspend: true }));
    await kubectl.condition("other", "Suspended", "True", 180);
    await kubectl.until("no pod of the suspended run is left", 60, async () => {
      const pods = await kubectl.items<Labelled>("pods", "--selector", "longrun.dev/run=other");
      return pods.every(({ status }) => status?.phase !== "Running");
    });
    const suspended = await kubectl.trainingRun("other");
    say(`suspended at ${JSON.stringify(suspended.status?.checkpoint)}`);
    const iterations = suspended.status!.checkpoint!.iteration! + 2;
    say(await patch({ suspend: false, stopping: { iterations } }));
    await learners(4);
    await kubectl.condition("other", "Succeeded", "True", 400);
    return iterations;
  } finally {
    watch.stop();
    say(
      await kubectl.run(
        "get",
        "events.events.k8s.io",
        "--field-selector=regarding.kind=TrainingRun,regarding.name=other",
      ),
    );
  }
}

const learnerOf = (run: string) => `longrun.dev/run=${run},app.kubernetes.io/component=learner`;

/**
 * SIGKILL to every process of an actor's pod while it executes a program, as when its machine is gone. Another has to
 * run that execution again.
 */
async function killBusyActor(kubectl: Kubectl, store: string): Promise<void> {
  const pods = await actorPods(kubectl, "other");
  const actor = await kubectl.until("an actor was killed at work", 120, async () => {
    const attempt = await runningAttempt(store);
    const pod = attempt && pods.find(({ metadata }) => metadata.name.startsWith(`${attempt.actor}-`));
    if (!pod) return undefined;
    for (const pid of findInCgroup(pod.metadata.uid)) process.kill(pid, "SIGKILL");
    // The result may have been on its way already; then it is the next one's turn.
    return attemptIsOpen(store, attempt) && attempt.actor;
  });
  say(`SIGKILL to all of actor ${actor}, which was executing a program`);
}

/** The leading controller is killed as by a crash; the other takes the Lease when it has run out. */
async function controllerFailover(system: Kubectl): Promise<void> {
  const holder = async () => {
    const lease = await system.json<{ spec: { holderIdentity?: string } }>("get", "lease", "longrun-controller");
    return lease.spec.holderIdentity ?? "";
  };
  const leader = await holder();
  const pod = await system.json<Labelled>("get", "pod", leader.split("_")[0]!);
  for (const pid of findInCgroup(pod.metadata.uid, "controller/cli.ts")) process.kill(pid, "SIGKILL");
  const start = performance.now();
  const next = await system.until("another controller leads", 40, async () => {
    const now = await holder();
    return now !== "" && now !== leader && now;
  });
  const seconds = ((performance.now() - start) / 1000).toFixed(1);
  say(`SIGKILL to the leading controller ${leader}; ${next} leads after ${seconds} s`);
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

/** No request of a controller was refused for want of a right: its role is large enough; `install` sees that it is small. */
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
