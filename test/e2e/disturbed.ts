/** A run that is disturbed while executions run. */
import { attemptIsOpen, learnersOf, runningAttempt } from "./accounts.ts";
import type { Kubectl } from "./kubectl.ts";
import { findInCgroup } from "./machine.ts";
import { manifest } from "./manifests.ts";
import { say, sayMoving } from "./output.ts";
import { lookAtRunning, type Plugin } from "./plugin.ts";
import { actorPods, type Labelled, podsOf, reached, untilPods } from "./run-pods.ts";

/** Returns the path of a run's store on this machine. */
export type StorePath = (run: string) => Promise<string>;

/**
 * Disturbs a run repeatedly while executions run, each time when a learner has started its work.
 *
 * @param plugin for looking at the run and resuming it
 * @returns the final number of iterations
 */
export async function disturbed(kubectl: Kubectl, system: Kubectl, store: StorePath, plugin: Plugin): Promise<number> {
  const actors = { autoscaling: "External", replicas: 1, slots: 1, min: undefined, max: undefined };
  // More iterations than there is time for on any machine; the resume lowers the number.
  const run = manifest("other", 100, (spec) => (spec.actors = actors));
  await kubectl.apply(run);
  const watch = kubectl.watch(sayMoving(), "trainingrun", "other");
  const learners = (count: number) =>
    kubectl.until(`learner ${count} works`, 120, async () => learnersOf(await store("other")) === count);
  const running = (count: number) =>
    untilPods(kubectl, "other", "actor", `${count} actors run`, 120, (pods) => {
      return pods.filter(({ status }) => status?.phase === "Running").length === count && pods;
    });
  try {
    await running(1);
    say(await kubectl.run("scale", "trainingrun", "other", "--replicas=2"));
    await running(2);

    await reached(kubectl, "other", 1);
    // It is written beside the next iteration.
    await kubectl.untilRun("other", "the first checkpoint", 60, ({ status }) => status?.checkpoint !== undefined);
    await lookAtRunning(plugin, "other");
    await killBusyActor(kubectl, await store("other"));
    say(`SIGKILL to the learner, process ${await killLearner(kubectl)}`);
    await controllerFailover(system);
    await learners(2);

    say(await kubectl.run("delete", "pod", "--grace-period=0", "--force", "--selector", learnerOf("other")));
    await learners(3);

    await evict(kubectl, await podsOf(kubectl, "other", "learner"));
    await learners(4);
    const [evicted] = await evict(kubectl, (await running(2)).slice(0, 1));
    await untilPods(kubectl, "other", "actor", "an evicted actor has a successor, and is no failure", 120, (pods) => {
      const others = pods.filter(({ metadata, status }) => metadata.name !== evicted && status?.phase === "Running");
      return others.length >= 2;
    });

    const patch = (spec: object) =>
      kubectl.run("patch", "trainingrun", "other", "--type=merge", `--patch=${JSON.stringify({ spec })}`);
    await patch({ failurePolicy: { retries: 0 } });
    await killLearner(kubectl);
    say(await kubectl.run("wait", "trainingrun/other", "--for=condition=Failed", "--timeout=60s"));
    say((await kubectl.condition("other", "Failed", "True", 10)).message);
    await untilPods(
      kubectl,
      "other",
      "learner",
      "no learner of the failed run is left",
      60,
      (pods) => pods.length === 0,
    );
    await patch({ failurePolicy: { retries: 20 } });
    say(await plugin.run("resume", "other"));
    const before = learnersOf(await store("other"));
    await kubectl.until("the resumed run has a learner that works", 120, async () => {
      return learnersOf(await store("other")) > before;
    });

    say(await patch({ suspend: true }));
    await kubectl.condition("other", "Suspended", "True", 180);
    await untilPods(kubectl, "other", undefined, "no pod of the suspended run is left", 60, (pods) =>
      pods.every(({ status }) => status?.phase !== "Running"),
    );
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

/** Sends SIGKILL to the learner. @returns its process id */
async function killLearner(kubectl: Kubectl): Promise<number> {
  const [pod] = await podsOf(kubectl, "other", "learner");
  const [learner] = findInCgroup(pod!.metadata.uid, "learner/main.ts");
  process.kill(learner!, "SIGKILL");
  return learner!;
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
