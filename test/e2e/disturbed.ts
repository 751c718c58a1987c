/** A run that is disturbed while executions run. */
import type { TestCluster } from "../cluster/node.ts";
import { attemptIsOpen, learnersOf, runningAttempt } from "./accounts.ts";
import type { Kubectl } from "./kubectl.ts";
import { findInCgroup } from "./machine.ts";
import { manifest } from "./manifests.ts";
import { say, sayMoving } from "./output.ts";
import { lookAtRunning, type Plugin } from "./plugin.ts";
import { actorPods, type Labelled, podsOf } from "./run-pods.ts";

/** Returns the path of a run's store on this machine. */
export type StorePath = (run: string) => Promise<string>;

/**
 * Disturbs a run repeatedly while executions run, each time when a learner has started its work.
 *
 * @param plugin for looking at the run and resuming it
 * @returns the final number of iterations
 */
export async function disturbed(
  cluster: TestCluster,
  kubectl: Kubectl,
  system: Kubectl,
  store: StorePath,
  plugin: Plugin,
): Promise<number> {
  const actors = { autoscaling: "External", replicas: 1, slots: 1, min: undefined, max: undefined };
  // More iterations than there is time for on any machine; the resume lowers the number.
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
    await kubectl.until("the first checkpoint", 60, async () => {
      const { status } = await kubectl.trainingRun("other"); // it is written beside the next iteration
      return status?.checkpoint !== undefined;
    });
    await lookAtRunning(plugin, "other");
    await killBusyActor(kubectl, await store("other"));
    const [learner] = findInCgroup(cluster.cgroup, "learner/main.ts");
    say(`SIGKILL to the learner, process ${learner}`);
    process.kill(learner!, "SIGKILL");
    await controllerFailover(system);
    await learners(2);

    say(await kubectl.run("delete", "pod", "--grace-period=0", "--force", "--selector", learnerOf("other")));
    await learners(3);

    await evict(kubectl, await podsOf(kubectl, "other", "learner"));
    await learners(4);
    const [evicted] = await evict(kubectl, (await running(2)).slice(0, 1));
    await kubectl.until("an evicted actor has a successor, and is no failure", 120, async () => {
      const pods = await actorPods(kubectl, "other");
      const others = pods.filter(({ metadata, status }) => metadata.name !== evicted && status?.phase === "Running");
      return others.length >= 2;
    });

    const patch = (spec: object) =>
      kubectl.run("patch", "trainingrun", "other", "--type=merge", `--patch=${JSON.stringify({ spec })}`);
    await patch({ failurePolicy: { retries: 0 } });
    for (const pid of findInCgroup(cluster.cgroup, "learner/main.ts")) process.kill(pid, "SIGKILL");
    say(await kubectl.run("wait", "trainingrun/other", "--for=condition=Failed", "--timeout=60s"));
    say((await kubectl.condition("other", "Failed", "True", 10)).message);
    await kubectl.until("no learner of the failed run is left", 60, async () => {
      return (await podsOf(kubectl, "other", "learner")).length === 0;
    });
    await patch({ failurePolicy: { retries: 20 } });
    say(await plugin.run("resume", "other"));
    const before = learnersOf(await store("other"));
    await kubectl.until("the resumed run has a learner that works", 120, async () => {
      return learnersOf(await store("other")) > before;
    });

    say(await patch({ suspend: true }));
    await kubectl.condition("other", "Suspended", "True", 180);
    await kubectl.until("no pod of the suspended run is left", 60, async () => {
      const pods = await kubectl.items<Labelled>("pods", "--selector", "longrun.dev/run=other");
      return pods.every(({ status }) => status?.phase !== "Running");
    });
    const suspended = await kubectl.trainingRun("other");
    say(`suspended at ${JSON.stringify(suspended.status?.checkpoint)}`);
    const iterations = suspended.status!.checkpoint!.iteration! + 2;
    const stopped = learnersOf(await store("other"));
    say(await patch({ suspend: false, stopping: { iterations } }));
    await learners(stopped + 1);
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

/** Evicts like `kubectl drain`. @returns names of the pods */
async function evict(kubectl: Kubectl, pods: Labelled[]): Promise<string[]> {
  for (const { metadata } of pods) {
    const path = `/api/v1/namespaces/${metadata.namespace}/pods/${metadata.name}/eviction`;
    const { name, namespace } = metadata;
    const eviction = { apiVersion: "policy/v1", kind: "Eviction", metadata: { name, namespace } };
    await kubectl.post(path, eviction);
    say(`evicted ${name}`);
  }
  return pods.map(({ metadata }) => metadata.name);
}

const learnerOf = (run: string) => `longrun.dev/run=${run},app.kubernetes.io/component=learner`;

/**
 * Sends SIGKILL to every process of an actor's pod while it executes a program, as if its machine were lost. Another actor must run that
 * execution again.
 */
async function killBusyActor(kubectl: Kubectl, store: string): Promise<void> {
  const pods = await actorPods(kubectl, "other");
  const actor = await kubectl.until("an actor was killed at work", 120, async () => {
    const attempt = await runningAttempt(store);
    const pod = attempt && pods.find(({ metadata }) => metadata.name.startsWith(`${attempt.actor}-`));
    if (!pod) return undefined;
    for (const pid of findInCgroup(pod.metadata.uid)) process.kill(pid, "SIGKILL");
    // The result may already have been on its way; then try the next attempt.
    return attemptIsOpen(store, attempt) && attempt.actor;
  });
  say(`SIGKILL to all of actor ${actor}, which was executing a program`);
}

/** Kills the leading controller; the other one takes the Lease when it has expired. */
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
