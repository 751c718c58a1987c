/** The children that every run has once: what each should be, and the write that makes it so. */

import { applyChild } from "./apply-child.ts";
import { Attempts } from "./attempts.ts";
import { type CertificateSecrets, ensureCertificates, type SecretData } from "./certificates.ts";
import { chooseClaim, reconcileVolume } from "./claim.ts";
import type { Finding, RefusedChildren } from "./conditions.ts";
import { type Pass, tell } from "./context.ts";
import { desiredNetworkPolicies, desiredServiceAccounts } from "./desired/access.ts";
import { actorHash } from "./desired/actors.ts";
import { desiredConfigMap } from "./desired/config-map.ts";
import { inputsOf } from "./desired/inputs.ts";
import { desiredDisruptionBudget, desiredLearner, desiredService, learnerHash } from "./desired/learner.ts";
import { childMetadata, digestOf, learnerHosts, type Run, SPEC_HASH } from "./desired/names.ts";
import { reconcileInit } from "./init-job.ts";
import { isConflict } from "./kube/errors.ts";
import {
  CONFIG_MAP,
  DEPLOYMENT,
  type Deployment,
  NETWORK_POLICY,
  POD_DISRUPTION_BUDGET,
  SECRET,
  SERVICE,
  SERVICE_ACCOUNT,
  type Secret,
} from "./kube/resources.ts";
import { hasEnded, type LifecyclePlan } from "./lifecycle.ts";
import type { Derived } from "./memory.ts";
import { imagesNote, keptLearner, markLearner } from "./pin.ts";
import { checkPodTemplate } from "./refusals.ts";

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
    ...desiredServiceAccounts(run).map((it) => () => applyChild(pass, SERVICE_ACCOUNT, it)),
    ...desiredNetworkPolicies(run, context.settings).map((it) => () => applyChild(pass, NETWORK_POLICY, it)),
    () => reconcileCertificates(pass),
    // The learner of an earlier version reads the ConfigMap that its controller made.
    ...(observed.config && keptLearnerOf(pass, claimName)
      ? []
      : [() => applyChild(pass, CONFIG_MAP, derivedOf(pass).config)]),
    () => applyChild(pass, SERVICE, desiredService(run)),
    // An existing claim is enough for the learner, whatever its size.
    ...(observed.volume ? [] : [volume]),
  );
  const other = await attempts.all(...(observed.volume ? [volume] : []), () =>
    applyChild(pass, POD_DISRUPTION_BUDGET, desiredDisruptionBudget(run)),
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

/** Applies the Deployment. If its template is refused, a learner that must stop is still scaled to 0, or it would keep its GPU. */
async function applyLearner(pass: Pass, desired: Deployment): Promise<void> {
  const { run, deployment } = pass.observed;
  try {
    checkPodTemplate(run, "learner", `Deployment ${desired.metadata.name}`);
    await applyChild(pass, DEPLOYMENT, desired);
  } catch (error) {
    const leaves = desired.spec!.replicas === 0 && deployment && deployment.spec!.replicas !== 0;
    if (leaves && !isConflict(error)) await pass.writes.patch(DEPLOYMENT, deployment, { spec: { replicas: 0 } });
    throw error;
  }
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
