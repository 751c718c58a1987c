/** The children that every run has once: what each should be, and the write that makes it so. */

import { BlockedError } from "./blockers.ts";
import { type CertificateSecrets, ensureCertificates, type SecretData } from "./certificates.ts";
import { findCondition } from "./conditions.ts";
import { type Pass, tell } from "./context.ts";
import { desiredNetworkPolicies, desiredServiceAccounts } from "./desired/access.ts";
import { actorHash } from "./desired/actors.ts";
import { desiredConfigMap } from "./desired/config-map.ts";
import { desiredInit } from "./desired/init.ts";
import { inputsOf } from "./desired/inputs.ts";
import { desiredDisruptionBudget, desiredLearner, desiredService, learnerHash } from "./desired/learner.ts";
import { childMetadata, childName, digestOf, learnerHosts, RUN, type Run, SPEC_HASH } from "./desired/names.ts";
import { defaultStorageClass, desiredVolume } from "./desired/volume.ts";
import {
  CONFIG_MAP,
  DEPLOYMENT,
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
import { belongsTo } from "./observe.ts";
import { imagesNote, keptLearner, markLearner } from "./pin.ts";

/** What is there before the learner is. @throws BlockedError | ApiError */
export async function reconcileChildren(pass: Pass, lifecycle: LifecyclePlan): Promise<void> {
  const { observed, context } = pass;
  const { run } = observed;
  // A run that cannot start, or may not yet, gets nothing made.
  if ((lifecycle.stage === "Refused" || lifecycle.stage === "Queued") && !observed.deployment) return;
  for (const account of desiredServiceAccounts(run)) await apply(pass, SERVICE_ACCOUNT, account);
  for (const policy of desiredNetworkPolicies(run, context.settings)) await apply(pass, NETWORK_POLICY, policy);
  await reconcileCertificates(pass);
  const { config, configHash, inputs } = derivedOf(pass);
  const claimName = await chooseClaim(pass);
  const kept = keptLearner(observed, learnerHashOf(pass, claimName), inputs, claimName);
  // One that an earlier version made is read by a learner of that version.
  if (!kept || !observed.config) await apply(pass, CONFIG_MAP, config);
  const succeeded = findCondition(run.status?.conditions, "Succeeded")?.status === "True";
  const defaultClass = defaultStorageClass(context.settings.runDefaults, observed.volume);
  await apply(pass, PERSISTENT_VOLUME_CLAIM, desiredVolume(run, claimName, succeeded, defaultClass));
  await apply(pass, SERVICE, desiredService(run));
  await apply(pass, POD_DISRUPTION_BUDGET, desiredDisruptionBudget(run));
  if (lifecycle.stage === "Initialising" && !observed.init) await createInit(pass, claimName);
  // What was not admitted so must not start: the learner goes as it is.
  if (lifecycle.stage === "Suspending" && lifecycle.admission?.state === "waiting") return;
  const { settings } = pass;
  const desired = desiredLearner(run, { configHash, claimName, settings, replicas: lifecycle.learnerReplicas });
  const images = imagesNote(observed, lifecycle, settings);
  await apply(pass, DEPLOYMENT, markLearner(desired, kept, { images, inputs, claimName }));
}

/** Digest of the learner's pod as it would be made now. */
function learnerHashOf(pass: Pass, claimName: string): string {
  return learnerHash(pass.observed.run, { configHash: derivedOf(pass).configHash, claimName, settings: pass.settings });
}

/** Digest of the learner's pod as it is to be: the present one where that is kept. */
export function currentLearnerHash(pass: Pass): string {
  const claimName = pass.observed.volume?.metadata.name ?? "";
  const hash = learnerHashOf(pass, claimName);
  return keptLearner(pass.observed, hash, derivedOf(pass).inputs, claimName)?.metadata.annotations?.[SPEC_HASH] ?? hash;
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
  const name = childName(run, "data");
  const found = await pass.context.client.get<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, {
    namespace: run.metadata.namespace,
    name,
  });
  if (!found || belongsTo(run, found)) return name;
  const own = `${name}-${run.metadata.uid.slice(0, 8)}`;
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

/** The other run may be gone: its volume is what counts. */
async function createInit(pass: Pass, claimName: string): Promise<void> {
  const { run } = pass.observed;
  const { namespace } = run.metadata;
  const source = run.spec.initFrom!.run!;
  const { items } = await pass.context.client.list<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, {
    namespace,
    labelSelector: `${RUN}=${source}`,
  });
  const newest = items
    .filter((claim) => !claim.metadata.deletionTimestamp)
    .sort((a, b) => (b.metadata.creationTimestamp ?? "").localeCompare(a.metadata.creationTimestamp ?? ""))[0];
  if (!newest)
    throw new BlockedError(
      "InitFromMissing",
      `there is no volume of a run ${source} in namespace ${namespace}: check spec.initFrom.run`,
    );
  await pass.writes.create(JOB, desiredInit(run, claimName, newest.metadata.name, pass.settings));
}
