/** Jobs that run before the learner starts: one fetches the model of `model.source`, one copies the checkpoint of `initFrom.run`. */

import type { Look } from "../../context.ts";
import { RUN, SPEC_HASH } from "../../desired/names.ts";
import { JOB, type Job, PERSISTENT_VOLUME_CLAIM, type PersistentVolumeClaim, type Pod } from "../../kube/resources.ts";
import { volumeOf } from "../../writes/ownership.ts";
import { BlockedError } from "../../writes/refusals.ts";
import { resumeJob } from "../../writes/resume-job.ts";
import { jobState } from "../actors/actor-state.ts";
import { needsModel } from "../lifecycle/lifecycle.ts";
import { desiredInit, initHash } from "./init.ts";
import { desiredModelJob } from "./model.ts";

/** Creates the next Job. They run one after the other, because a volume may allow only one pod at a time. */
export async function reconcileInit(look: Look, claimName: string): Promise<void> {
  const { run, init, initPod, model, modelPod } = look.observed;
  if (needsModel(look.observed)) {
    const desired = desiredModelJob(run, claimName, look.settings);
    if (!model) await look.writes.create(JOB, desired);
    else await removeOutdated(look, { job: model, pod: modelPod, hash: desired.metadata.annotations![SPEC_HASH]! });
  } else if (!init) await createInit(look, claimName);
  else await removeOutdated(look, { job: init, pod: initPod, hash: initHash(run, look.settings) });
}

/** Resumes a Job that was suspended by hand. A Job cannot be changed: if another one is desired, a Job that has not started or has failed is deleted and created again. */
async function removeOutdated(look: Look, { job, pod, hash }: { job: Job; pod: Pod | undefined; hash: string }) {
  const made = job.metadata.annotations?.[SPEC_HASH];
  const waits = (pod?.status?.phase ?? "Pending") === "Pending" || jobState(job) === "failed";
  if (waits && made !== hash && !job.metadata.deletionTimestamp) await look.writes.remove(JOB, job);
  else await resumeJob(look, job);
}

/** Creates the copy Job. The other run may be deleted; only its volume is needed. */
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
