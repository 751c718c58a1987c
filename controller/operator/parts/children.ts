/** Computes and writes the children that every run has once. */

import { type Look, tell } from "../context.ts";
import { desiredNetworkPolicies, desiredServiceAccounts } from "../desired/access.ts";
import { desiredConfigMap } from "../desired/config-map.ts";
import { inputsOf } from "../desired/inputs.ts";
import { childMetadata, digestOf, learnerHosts, type Run, SPEC_HASH } from "../desired/names.ts";
import { isConflict } from "../kube/errors.ts";
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
} from "../kube/resources.ts";
import { hasEnded, type LifecyclePlan } from "../lifecycle.ts";
import type { Changes, Derived } from "../memory.ts";
import { imagesNote, keptLearner, markLearner } from "../pin.ts";
import type { Finding, RefusedChildren } from "../status/conditions.ts";
import { IndependentSteps, type StepResult } from "../steps.ts";
import { applyChild } from "../writes/apply-child.ts";
import { checkPodTemplate } from "../writes/refusals.ts";
import { actorHash } from "./actors/desired.ts";
import { type CertificateSecrets, ensureCertificates, type SecretData } from "./certificates/certificates.ts";
import { reconcileInit } from "./inputs/init-job.ts";
import { desiredDisruptionBudget, desiredLearner, desiredService, learnerHash } from "./learner/desired.ts";
import { chooseClaim, reconcileVolume } from "./volume/claim.ts";

/**
 * Applies each child by itself: a refused child does not keep the others from being applied. A learner that must stop is
 * scaled down first, and waits for nothing. A learner is started or changed only when the children that it needs exist.
 *
 * @param held why no child may be created yet
 * @returns as `error` the first error that a retry may resolve, after all children were tried
 */
export async function reconcileChildren(
  look: Look,
  lifecycle: LifecyclePlan,
  held: Finding | undefined,
): Promise<StepResult & RefusedChildren> {
  const { observed, context } = look;
  const { run, deployment } = observed;
  // A run that cannot start, or may not start yet, gets no children.
  if ((lifecycle.stage === "Refused" || lifecycle.stage === "Queued") && !deployment) return { blocked: held };
  const steps = new IndependentSteps(run);
  let remember: Changes = {};
  const settle = (refused: RefusedChildren) => ({ ...refused, remember, error: steps.error });
  const learner = (claimName: string) => async () => {
    const { configHash, inputs } = derivedOf(look);
    const { settings } = look;
    const desired = desiredLearner(run, { configHash, claimName, settings, replicas: lifecycle.learnerReplicas });
    const images = imagesNote(observed, lifecycle, settings);
    await applyLearner(look, markLearner(desired, keptLearnerOf(look, claimName), { images, inputs, claimName }));
  };

  const stops = lifecycle.learnerReplicas === 0 && (deployment?.spec?.replicas ?? 0) > 0;
  const known = observed.volume?.metadata.name ?? look.memory.volume;
  const stopped = stops ? await steps.all(learner(known)) : undefined;
  if (held) return settle({ blocked: stopped?.finding ?? held });

  let claimName = known;
  const named = await steps.all(async () => {
    claimName = await chooseClaim(look);
  });
  if (named.failed) return settle({ blocked: stopped?.finding ?? named.finding });
  const volume = () => reconcileVolume(look, claimName);
  const needed = await steps.all(
    ...desiredServiceAccounts(run).map((it) => () => applyChild(look, SERVICE_ACCOUNT, it)),
    ...desiredNetworkPolicies(run, context.settings).map((it) => () => applyChild(look, NETWORK_POLICY, it)),
    async () => {
      remember = await reconcileCertificates(look);
    },
    // The learner of an earlier version reads the ConfigMap that its controller made.
    ...(observed.config && keptLearnerOf(look, claimName)
      ? []
      : [() => applyChild(look, CONFIG_MAP, derivedOf(look).config)]),
    () => applyChild(look, SERVICE, desiredService(run)),
    // An existing claim is enough for the learner, whatever its size.
    ...(observed.volume ? [] : [volume]),
  );
  const other = await steps.all(...(observed.volume ? [volume] : []), () =>
    applyChild(look, POD_DISRUPTION_BUDGET, desiredDisruptionBudget(run)),
  );
  const refused = { blocked: stopped?.finding ?? needed.finding, other: other.finding };
  if (stops || needed.failed) return settle(refused);

  const last = await steps.all(
    ...(lifecycle.stage === "Initialising" ? [() => reconcileInit(look, claimName)] : []),
    // Kueue has not admitted the changed template: the learner stops with its present one.
    ...(lifecycle.stage === "Suspending" && lifecycle.admission?.state === "waiting" ? [] : [learner(claimName)]),
  );
  return settle({ ...refused, blocked: last.finding });
}

/** Returns the digest of the learner's pod as it would be created now. */
function learnerHashOf(look: Look, claimName: string): string {
  return learnerHash(look.observed.run, { configHash: derivedOf(look).configHash, claimName, settings: look.settings });
}

function keptLearnerOf(look: Look, claimName: string): Deployment | undefined {
  return keptLearner(look.observed, learnerHashOf(look, claimName), derivedOf(look).inputs, claimName);
}

/** Returns the digest of the desired pod template: the present template's if the run keeps it. */
export function currentLearnerHash(look: Look): string {
  const claimName = look.observed.volume?.metadata.name ?? "";
  return keptLearnerOf(look, claimName)?.metadata.annotations?.[SPEC_HASH] ?? learnerHashOf(look, claimName);
}

/** Applies the Deployment. If its template is refused, a learner that must stop is still scaled to 0, or it would keep its GPU. */
async function applyLearner(look: Look, desired: Deployment): Promise<void> {
  const { run, deployment } = look.observed;
  try {
    checkPodTemplate(run, "learner", `Deployment ${desired.metadata.name}`);
    await applyChild(look, DEPLOYMENT, desired);
  } catch (error) {
    const leaves = desired.spec!.replicas === 0 && deployment && deployment.spec!.replicas !== 0;
    if (leaves && !isConflict(error)) await look.writes.patch(DEPLOYMENT, deployment, { spec: { replicas: 0 } });
    throw error;
  }
}

/** Returns the objects that follow from the spec. They are remembered, because their computation is the longest part of a reconcile. */
export function derivedOf({ observed: { run }, memory, settings }: Look): Derived {
  const { image, actorImage, sandboxImage } = settings;
  const of = [run.metadata.generation, memory.flavors?.of, image, actorImage, sandboxImage].join(" ");
  if (memory.derived?.of === of) return memory.derived;
  const config = desiredConfigMap(run);
  const hashes = { configHash: digestOf(config.data), actorHash: actorHash(run, settings) };
  return { of, config, ...hashes, inputs: inputsOf(memory.run, memory.flavors?.choices) };
}

async function reconcileCertificates(look: Look): Promise<Changes> {
  const { observed, memory, nowMs } = look;
  const { run, secrets } = observed;
  if (hasEnded(observed)) return {};
  const versions = Object.values(secrets)
    .map(({ metadata }) => metadata.resourceVersion)
    .join(" ");
  const known = memory.certificates;
  const dials = run.spec.generation !== undefined;
  if (
    known?.versions === versions &&
    known.dials === dials &&
    nowMs < known.renewAtMs &&
    Object.keys(secrets).length === 2
  )
    return {};
  const data: CertificateSecrets = {};
  for (const [part, secret] of Object.entries(secrets))
    data[part as keyof CertificateSecrets] = (secret.data ?? {}) as SecretData;
  const { write, reasons, renewAtMs, expireAtMs } = await ensureCertificates(data, {
    name: run.metadata.name,
    hosts: learnerHosts(run),
    dials,
    now: nowMs,
  });
  for (const [part, content] of Object.entries(write)) {
    const secret = desiredSecret(run, part as keyof CertificateSecrets, content as SecretData);
    await look.writes.apply(SECRET, secret);
  }
  if (reasons.length > 0 && secrets.authority) tell(look, "Normal", "CertificatesRenewed", reasons.join("; "), "Renew");
  return { certificates: reasons.length > 0 ? undefined : { versions, dials, renewAtMs, expireAtMs } };
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
