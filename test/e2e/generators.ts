/** A run on a real kubelet with two generators, one of which is lost. */
import assert from "node:assert/strict";
import type { Kubectl } from "./kubectl.ts";
import { BATCH, manifest } from "./manifests.ts";
import { say, sayMoving } from "./output.ts";

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
  const pods = async () => {
    const selector = "longrun.dev/run=generated,app.kubernetes.io/component=generator";
    const found = await kubectl.items<GeneratorPod>("pods", "--selector", selector);
    return found.filter(({ metadata }) => metadata.deletionTimestamp === undefined);
  };
  const isReady = ({ status }: GeneratorPod) => status?.containerStatuses?.every(({ ready }) => ready) ?? false;
  try {
    say((await kubectl.condition("generated", "GenerationAvailable", "True", 180)).message);
    await kubectl.until("the first iteration is done", 300, async () => {
      const { status } = await kubectl.trainingRun("generated");
      return (status?.iteration ?? 0) >= 1;
    });
    const before = await pods();
    assert.equal(before.length, 2);
    const lost = before[0]!.metadata;
    say(await kubectl.run("delete", "pod", lost.name, "--grace-period=0", "--force"));
    await kubectl.until("another generator is in its place", 120, async () => {
      const now = await pods();
      return now.length === 2 && now.every((pod) => pod.metadata.uid !== lost.uid && isReady(pod));
    });
    say((await kubectl.condition("generated", "Succeeded", "True", 600)).message);
  } finally {
    watch.stop();
  }
  const { status } = await kubectl.trainingRun("generated");
  say(JSON.stringify(status?.generation));
  assert.ok((status?.generation?.policyVersion ?? 0) >= 1, "the generators had weights that the learner had trained");
  await kubectl.until("no generator of the finished run is left", 120, async () => (await pods()).length === 0);
  await audit();
  await kubectl.run("delete", "trainingrun", "generated", "--timeout=120s");
  await kubectl.run("delete", "pvc", "generated-data", "--timeout=60s"); // it stays by `retain: Always`
}
