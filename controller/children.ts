/** The children that every run has once: what each should be, and the write that makes it so. */

import { jobState } from "./actor-state.ts";
import { type CertificateSecrets, ensureCertificates, type SecretData } from "./certificates.ts";
import { type Finding, findCondition, type RefusedChildren } from "./conditions.ts";
import { type Pass, tell } from "./context.ts";
import { desiredNetworkPolicies, desiredServiceAccounts } from "./desired/access.ts";
import { actorHash } from "./desired/actors.ts";
import { desiredConfigMap } from "./desired/config-map.ts";
import { desiredInit, initHash } from "./desired/init.ts";
import { inputsOf } from "./desired/inputs.ts";
import { desiredDisruptionBudget, desiredLearner, desiredService, learnerHash } from "./desired/learner.ts";
import { childMetadata, digestOf, learnerHosts, RUN, type Run, SPEC_HASH } from "./desired/names.ts";
import { defaultStorageClass, desiredVolume, sizeOf, withSize } from "./desired/volume.ts";
import { ApiError, isConflict } from "./kube/errors.ts";
import {
  CONFIG_MAP,
  DEPLOYMENT,
  type Deployment,
  JOB,
  NETWORK_POLICY,
  PERSISTENT_VOLUME_CLAIM,
  type PersistentVolumeClaim,
  POD_DISRUPTION_BUDGET,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Secret,
} from "./kube/resources.ts";
import type { KubeObject, Resource } from "./kube/types.ts";
import { hasEnded, type LifecyclePlan } from "./lifecycle.ts";
import type { Derived } from "./memory.ts";
import { claimNames, mayTake, volumeOf } from "./ownership.ts";
import { imagesNote, keptLearner, markLearner } from "./pin.ts";
import { BlockedError, checkPodTemplate, writeBlocker } from "./refusals.ts";

/**
 * Applies each child by itself: a refused child does not keep the others from being applied. A learner that must stop is
 * scaled down first, and waits for nothing. A learner is started or changed only when the children that it needs exist.
 *
 * @param held why no child may be made yet
 * @throws the first error that another try may mend, after all children were tried
 */
export async function reconcileChildren(
  pass: Pass,
  lifecycle: LifecyclePlan,
  held: Finding | undefined,
): Promise<RefusedChildren> {
  const { observed, context } = pass;
  const { run, deployment } = observed;
  // A run that cannot start, or may not yet, gets nothing made.
  if ((lifecycle.stage === "Refused" || lifecycle.stage === "Queued") && !deployment) return { blocked: held };
  const attempts = new Attempts(run);
  const learner = (claimName: string) => async () => {
    const { configHash, inputs } = derivedOf(pass);
    const { settings } = pass;
    const desired = desiredLearner(run, { configHash, claimName, settings, replicas: lifecycle.learnerReplicas });
    const images = imagesNote(observed, lifecycle, settings);
    await applyLearner(pass, markLearner(desired, keptLearnerOf(pass, claimName), { images, inputs, claimName }));
  };

  const stops = lifecycle.learnerReplicas === 0 && (deployment?.spec?.replicas ?? 0) > 0;
  const known = observed.volume?.metadata.name ?? pass.memory.volume;
  const stopped = stops ? await attempts.all(learner(known)) : undefined;
  if (held) return attempts.settle({ blocked: stopped?.finding ?? held });

  let claimName = known;
  const named = await attempts.all(async () => {
    claimName = await chooseClaim(pass);
  });
  if (named.failed) return attempts.settle({ blocked: stopped?.finding ?? named.finding });
  const volume = () => reconcileVolume(pass, claimName);
  const needed = await attempts.all(
    ...desiredServiceAccounts(run).map((it) => () => apply(pass, SERVICE_ACCOUNT, it)),
    ...desiredNetworkPolicies(run, context.settings).map((it) => () => apply(pass, NETWORK_POLICY, it)),
    () => reconcileCertificates(pass),
    // The learner of an earlier version reads the ConfigMap that its controller made.
    ...(observed.config && keptLearnerOf(pass, claimName)
      ? []
      : [() => apply(pass, CONFIG_MAP, derivedOf(pass).config)]),
    () => apply(pass, SERVICE, desiredService(run)),
    // An existing claim is enough for the learner, whatever its size.
    ...(observed.volume ? [] : [volume]),
  );
  const other = await attempts.all(...(observed.volume ? [volume] : []), () =>
    apply(pass, POD_DISRUPTION_BUDGET, desiredDisruptionBudget(run)),
  );
  const refused = { blocked: stopped?.finding ?? needed.finding, other: other.finding };
  if (stops || needed.failed) return attempts.settle(refused);

  const last = await attempts.all(
    ...(lifecycle.stage === "Initialising" ? [() => reconcileInit(pass, claimName)] : []),
    // Kueue has not admitted the changed template: the learner stops with its present one.
    ...(lifecycle.stage === "Suspending" && lifecycle.admission?.state === "waiting" ? [] : [learner(claimName)]),
  );
  return attempts.settle({ ...refused, blocked: last.finding });
}

/** Digest of the learner's pod as it would be made now. */
function learnerHashOf(pass: Pass, claimName: string): string {
  return learnerHash(pass.observed.run, { configHash: derivedOf(pass).configHash, claimName, settings: pass.settings });
}

function keptLearnerOf(pass: Pass, claimName: string): Deployment | undefined {
  return keptLearner(pass.observed, learnerHashOf(pass, claimName), derivedOf(pass).inputs, claimName);
}

/** Returns the digest of the desired pod template: the present template's if the run keeps it. */
export function currentLearnerHash(pass: Pass): string {
  const claimName = pass.observed.volume?.metadata.name ?? "";
  return keptLearnerOf(pass, claimName)?.metadata.annotations?.[SPEC_HASH] ?? learnerHashOf(pass, claimName);
}

/** Tries every step, also after one has failed. */
class Attempts {
  readonly #run: Run;
  #error: unknown;

  constructor(run: Run) {
    this.#run = run;
  }

  /** Returns whether a step failed, and the finding about the first refusal. */
  async all(...steps: (() => Promise<unknown>)[]): Promise<{ failed: boolean; finding: Finding | undefined }> {
    let failed = false;
    let finding: Finding | undefined;
    for (const step of steps)
      try {
        await step();
      } catch (error) {
        const found = writeBlocker(error, this.#run);
        // If the API server does not answer, the next step would wait just as long.
        if (!found && !isAnswer(error)) throw error;
        if (!found) this.#error ??= error;
        finding ??= found;
        failed = true;
      }
    return { failed, finding };
  }

  /** Returns `refused`. @throws the first error that another try may mend */
  settle(refused: RefusedChildren): RefusedChildren {
    if (this.#error !== undefined) throw this.#error;
    return refused;
  }
}

function isAnswer(error: unknown): boolean {
  return error instanceof ApiError && error.status >= 400 && error.status !== 429 && error.status <= 500;
}

/** Applies the Deployment. If its template is refused, a learner that must stop is still scaled to 0, or it would keep its GPU. */
async function applyLearner(pass: Pass, desired: Deployment): Promise<void> {
  const { run, deployment } = pass.observed;
  try {
    checkPodTemplate(run, "learner", `Deployment ${desired.metadata.name}`);
    await apply(pass, DEPLOYMENT, desired);
  } catch (error) {
    const leaves = desired.spec!.replicas === 0 && deployment && deployment.spec!.replicas !== 0;
    if (leaves && !isConflict(error)) await pass.writes.patch(DEPLOYMENT, deployment, { spec: { replicas: 0 } });
    throw error;
  }
}

/** Makes the claim, or changes it. If the API server refuses to grow it, its other fields are still applied. */
async function reconcileVolume(pass: Pass, claimName: string): Promise<void> {
  const { observed, context } = pass;
  const { run, volume } = observed;
  const succeeded = findCondition(run.status?.conditions, "Succeeded")?.status === "True";
  const defaultClass = defaultStorageClass(context.settings.runDefaults, volume);
  const desired = desiredVolume(run, claimName, { succeeded, defaultClass, present: volume });
  try {
    await apply(pass, PERSISTENT_VOLUME_CLAIM, desired);
  } catch (error) {
    const refusal = writeBlocker(error, run);
    if (!refusal || !volume || sizeOf(desired) === sizeOf(volume)) throw error;
    await apply(pass, PERSISTENT_VOLUME_CLAIM, withSize(desired, sizeOf(volume)!));
    throw refusal.reason === "QuotaExceeded" ? error : notResized(run, volume, error as Error);
  }
}

function notResized(run: Run, claim: PersistentVolumeClaim, { message }: Error): BlockedError {
  const { size } = run.spec.learner.storage;
  const by = `StorageClass ${claim.spec?.storageClassName ?? "(none)"}`;
  return new BlockedError(
    "VolumeNotResized",
    `spec.learner.storage.size is ${size}, and claim ${claim.metadata.name} of ${by} stays at ${sizeOf(claim)} (${message}): set allowVolumeExpansion: true in ${by} if its driver can grow volumes; the run goes on with the present size`,
  );
}

/** Computed once for each generation of the spec: of all that a reconcile does it takes longest. */
export function derivedOf({ observed: { run }, memory, settings }: Pass): Derived {
  const { image, actorImage, sandboxImage } = settings;
  const of = [run.metadata.generation, memory.flavors?.of, image, actorImage, sandboxImage].join(" ");
  if (memory.derived?.of !== of) {
    const config = desiredConfigMap(run);
    const hashes = { configHash: digestOf(config.data), actorHash: actorHash(run, settings) };
    memory.derived = { of, config, ...hashes, inputs: inputsOf(memory.run, memory.flavors?.choices) };
  }
  return memory.derived;
}

/** What somebody did to a child is told, because it is undone. */
async function apply(pass: Pass, resource: Resource, desired: KubeObject): Promise<void> {
  const outcome = await pass.writes.apply(resource, desired);
  const name = `${resource.kind} ${desired.metadata.name}`;
  if (outcome.kind === "repaired")
    tell(pass, "Normal", "Repaired", `${name} was changed and is as it was: ${outcome.difference}`, "Repair");
  else if (outcome.kind !== "same") pass.context.log.info({ run: pass.key, ...outcome }, name);
}

async function reconcileCertificates(pass: Pass): Promise<void> {
  const { observed, memory, nowMs } = pass;
  const { run, secrets } = observed;
  if (hasEnded(observed)) return;
  const versions = Object.values(secrets)
    .map(({ metadata }) => metadata.resourceVersion)
    .join(" ");
  const known = memory.certificates;
  if (known?.versions === versions && nowMs < known.renewAtMs && Object.keys(secrets).length === 2) return;
  const data: CertificateSecrets = {};
  for (const [part, secret] of Object.entries(secrets))
    data[part as keyof CertificateSecrets] = (secret.data ?? {}) as SecretData;
  const { write, reasons, renewAtMs, expireAtMs } = await ensureCertificates(data, {
    name: run.metadata.name,
    hosts: learnerHosts(run),
    now: nowMs,
  });
  for (const [part, content] of Object.entries(write)) {
    const secret = desiredSecret(run, part as keyof CertificateSecrets, content as SecretData);
    await pass.writes.apply(SECRET, secret);
  }
  if (reasons.length > 0 && secrets.authority) tell(pass, "Normal", "CertificatesRenewed", reasons.join("; "), "Renew");
  memory.certificates = reasons.length > 0 ? undefined : { versions, renewAtMs, expireAtMs };
}

function desiredSecret(run: Run, part: keyof CertificateSecrets, data: SecretData): Secret {
  const component = part === "authority" ? "run" : part;
  return {
    apiVersion: "v1",
    kind: "Secret",
    metadata: childMetadata(run, part === "authority" ? "ca" : `${part}-tls`, component),
    type: "Opaque",
    data,
  };
}

/**
 * `NAME-data`, or a name of its own where an earlier run of this name has left its volume: that one is never taken over.
 */
async function chooseClaim(pass: Pass): Promise<string> {
  const { run, volume } = pass.observed;
  if (volume) return volume.metadata.name;
  const [name, own] = claimNames(run);
  const found = await pass.context.client.get<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, {
    namespace: run.metadata.namespace,
    name,
  });
  if (!found || mayTake(run, found)) return name;
  const whose = found.metadata.labels?.[RUN] === run.metadata.name ? "an earlier run of this name" : "somebody else";
  tell(
    pass,
    "Normal",
    "VolumeNameTaken",
    `volume ${name} is of ${whose} and is left alone; this run uses ${own}`,
    "CreateVolume",
  );
  return own;
}

/** Makes the init Job. A Job cannot be changed: one that has not begun, or has failed, is deleted if another is desired, and made anew. */
async function reconcileInit(pass: Pass, claimName: string): Promise<void> {
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
