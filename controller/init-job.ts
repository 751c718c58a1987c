/** The Job that copies the checkpoint of `initFrom.run` before the learner starts. */
import { jobState } from "./actor-state.ts";
import type { Pass } from "./context.ts";
import { desiredInit, initHash } from "./desired/init.ts";
import { RUN, SPEC_HASH } from "./desired/names.ts";
import { JOB, PERSISTENT_VOLUME_CLAIM, type PersistentVolumeClaim } from "./kube/resources.ts";
import { volumeOf } from "./ownership.ts";
import { BlockedError } from "./refusals.ts";

/** Makes the init Job. A Job cannot be changed: one that has not begun, or has failed, is deleted if another is desired, and made anew. */
export async function reconcileInit(pass: Pass, claimName: string): Promise<void> {
  const { run, init, initPod } = pass.observed;
  if (!init) return createInit(pass, claimName);
  const made = init.metadata.annotations?.[SPEC_HASH];
  const waits = (initPod?.status?.phase ?? "Pending") === "Pending" || jobState(init) === "failed";
  if (!waits || made === initHash(run, pass.settings) || init.metadata.deletionTimestamp) return;
  await pass.writes.remove(JOB, init);
}

/** The other run may be gone: its volume is what counts. */
async function createInit(pass: Pass, claimName: string): Promise<void> {
  const { run } = pass.observed;
  const { namespace } = run.metadata;
  const source = run.spec.initFrom!.run!;
  const sourceRun = pass.context.cache.trainingRun(`${namespace}/${source}`);
  const own = sourceRun && volumeOf(sourceRun, pass.context.cache);
  const claim = own && !own.metadata.deletionTimestamp ? own : await newestClaim(pass, source);
  if (!claim)
    throw new BlockedError(
      "InitFromMissing",
      `there is no volume of a run ${source} in namespace ${namespace}: check spec.initFrom.run`,
    );
  await pass.writes.create(JOB, desiredInit(run, claimName, claim.metadata.name, pass.settings));
}

async function newestClaim({ observed: { run }, context }: Pass, source: string) {
  const { namespace } = run.metadata;
  const labelSelector = `${RUN}=${source}`;
  const { items } = await context.client.list<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, {
    namespace,
    labelSelector,
  });
  return items
    .filter((claim) => !claim.metadata.deletionTimestamp)
    .sort((a, b) => (b.metadata.creationTimestamp ?? "").localeCompare(a.metadata.creationTimestamp ?? ""))[0];
}
