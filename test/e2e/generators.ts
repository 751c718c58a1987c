/** A run on a real kubelet with two generators, one of which is lost. */
import assert from "node:assert/strict";
import type { Kubectl } from "./kubectl.ts";
import { BATCH, manifest } from "./manifests.ts";
import { say, sayMoving } from "./output.ts";
import { reached } from "./run-pods.ts";

/** Enough iterations for a new generator to replace the lost one before the run ends. */
export const GENERATED_ITERATIONS = 12;

interface GeneratorPod {
  metadata: { name: string; uid: string; deletionTimestamp?: string };
  status?: { containerStatuses?: { ready: boolean }[] };
}

/**
 * Runs a TrainingRun with generators until it has succeeded. Deletes a generator by force after the first iteration.
 *
 * @param audit checks the store of the finished run
 */
export async function generators(kubectl: Kubectl, audit: () => Promise<void>): Promise<void> {
  await kubectl.apply(
    manifest("generated", GENERATED_ITERATIONS, (spec) => {
      spec.learner = { ...spec.learner, storage: { retain: "Always" } };
      spec.generation = { replicas: { min: 2, max: 2 } };
      spec.model = { ...spec.model, generationBatchSize: BATCH / 2 };
    }),
  );
  const watch = kubectl.watch(sayMoving(), "trainingrun", "generated");
  const left = (pods: GeneratorPod[]) => pods.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  const labels = { "longrun.dev/run": "generated", "app.kubernetes.io/component": "generator" };
  const untilGenerators = <T>(what: string, holds: (pods: GeneratorPod[]) => T | undefined | false) =>
    kubectl.untilPods<GeneratorPod, T>(labels, what, 120, (pods) => holds(left(pods)));
  const isReady = ({ status }: GeneratorPod) => status?.containerStatuses?.every(({ ready }) => ready) ?? false;
  try {
    say((await kubectl.condition("generated", "GenerationAvailable", "True", 180)).message);
    await reached(kubectl, "generated", 1);
    const [lost] = await untilGenerators("both generators are there", (pods) => {
      return pods.length === 2 && pods.map(({ metadata }) => metadata);
    });
    say(await kubectl.run("delete", "pod", lost!.name, "--grace-period=0", "--force"));
    await untilGenerators("another generator is in its place", (pods) => {
      return pods.length === 2 && pods.every((pod) => pod.metadata.uid !== lost!.uid && isReady(pod));
    });
    say((await kubectl.condition("generated", "Succeeded", "True", 600)).message);
  } finally {
    watch.stop();
  }
  const { status } = await kubectl.trainingRun("generated");
  say(JSON.stringify(status?.generation));
  assert.ok((status?.generation?.policyVersion ?? 0) >= 1, "the generators had weights that the learner had trained");
  await untilGenerators("no generator of the finished run is left", (pods) => pods.length === 0);
  await audit();
  await kubectl.run("delete", "trainingrun", "generated", "--timeout=120s");
  await kubectl.run("delete", "pvc", "generated-data", "--timeout=60s"); // it stays by `retain: Always`
}
