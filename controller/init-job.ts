/** The Job that copies the checkpoint of `initFrom.run` before the learner starts. */
import { jobState } from "./actor-state.ts";
import type { Look } from "./context.ts";
import { desiredInit, initHash } from "./desired/init.ts";
import { RUN, SPEC_HASH } from "./desired/names.ts";
import { JOB, PERSISTENT_VOLUME_CLAIM, type PersistentVolumeClaim } from "./kube/resources.ts";
import { volumeOf } from "./ownership.ts";
import { BlockedError } from "./refusals.ts";

/** Makes the init Job. A Job cannot be changed: one that has not begun, or has failed, is deleted if another is desired, and made anew. */
export async function reconcileInit(look: Look, claimName: string): Promise<void> {
  const { run, init, initPod } = look.observed;
  if (!init) return createInit(look, claimName);
  const made = init.metadata.annotations?.[SPEC_HASH];
  const waits = (initPod?.status?.phase ?? "Pending") === "Pending" || jobState(init) === "failed";
  if (!waits || made === initHash(run, look.settings) || init.metadata.deletionTimestamp) return;
  await look.writes.remove(JOB, init);
}

/** The other run may be gone: its volume is what counts. */
async function createInit(look: Look, claimName: string): Promise<void> {
  const { run } = look.observed;
  const { namespace } = run.metadata;
  const source = run.spec.initFrom!.run!;
  const sourceRun = look.context.cache.trainingRun(`${namespace}/${source}`);
  const own = sourceRun && volumeOf(sourceRun, look.context.cache);
  const claim = own && !own.metadata.deletionTimestamp ? own : await newestClaim(look, source);
  if (!claim)
    throw new BlockedError(
      "InitFromMissing",
      `there is no volume of a run ${source} in namespace ${namespace}: check spec.initFrom.run`,
    );
  await look.writes.create(JOB, desiredInit(run, claimName, claim.metadata.name, look.settings));
}

async function newestClaim({ observed: { run }, context }: Look, source: string) {
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
