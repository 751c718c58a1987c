/** Writes the objects of a run's generators: certificate, Service, Deployment. */

import { type Look, tell } from "../../context.ts";
import { childMetadata, GENERATORS, generatorHosts } from "../../desired/names.ts";
import {
  DEPLOYMENT,
  PERSISTENT_VOLUME_CLAIM,
  type PersistentVolumeClaim,
  SECRET,
  SERVICE,
  type Secret,
} from "../../kube/resources.ts";
import type { Changes } from "../../memory.ts";
import type { StepResult } from "../../steps.ts";
import { applyChild } from "../../writes/apply-child.ts";
import { BlockedError } from "../../writes/refusals.ts";
import { Stabiliser } from "../actors/autoscale.ts";
import { ensureGeneratorCertificate, type SecretData } from "../certificates/certificates.ts";
import { desiredGeneratorService, desiredGenerators } from "./desired.ts";
import { describeGeneration, type GenerationPlan } from "./generation.ts";

/**
 * Reconciles the generators' objects. Creates none before the run may have its first pod. A Deployment that is not wanted any more
 * is scaled to 0 and deleted with the run; its pods finish their rows within their grace period.
 *
 * @throws BlockedError | ApiError
 */
export async function reconcileGenerators(look: Look, plan: GenerationPlan | undefined): Promise<StepResult> {
  const { run, generators } = look.observed;
  const { deployment } = generators;
  if (!plan) return {};
  if (plan.replicas === 0) {
    if (deployment && (deployment.spec?.replicas ?? 0) > 0)
      await look.writes.patch(DEPLOYMENT, deployment, { spec: { replicas: 0 } });
    return {};
  }
  if (!deployment) await checkClaim(look);
  const text = describeGeneration(look.observed, plan);
  const isMore = plan.replicas > (run.status?.generation?.replicas ?? 0);
  const remember = await reconcileCertificate(look);
  await applyChild(look, SERVICE, desiredGeneratorService(run));
  await applyChild(look, DEPLOYMENT, desiredGenerators(run, { replicas: plan.replicas, settings: look.settings }));
  if (text) tell(look, "Normal", isMore ? "ScaledUp" : "ScaledDown", text, "Scale");
  return { remember, againSeconds: plan.againSeconds };
}

/** A controller that has just started knows no demand, so the existing number counts for one more window. */
export function stabiliserOf({ observed, memory, nowMs }: Look): StepResult & { stabiliser: Stabiliser } {
  const { scaleDownSeconds = 0 } = observed.run.spec.generation ?? {};
  const known = memory.generationStabiliser;
  if (known?.scaleDownSeconds === scaleDownSeconds) return { stabiliser: known.stabiliser };
  const stabiliser = new Stabiliser(scaleDownSeconds);
  stabiliser.next(observed.run.status?.generation?.replicas ?? 0, nowMs / 1000);
  return { stabiliser, remember: { generationStabiliser: { scaleDownSeconds, stabiliser } } };
}

/** Checks the claim with the model, which the learner and each generator mount. @throws BlockedError if only one pod can mount it */
async function checkClaim({ observed: { run }, context }: Look): Promise<void> {
  const { claimName } = run.spec.model.volume?.persistentVolumeClaim ?? {};
  if (claimName === undefined) return;
  const { namespace } = run.metadata;
  const claim = await context.client.get<PersistentVolumeClaim>(PERSISTENT_VOLUME_CLAIM, {
    namespace,
    name: claimName,
  });
  const modes = claim?.spec?.accessModes ?? [];
  if (modes.length === 0 || modes.some((mode) => mode !== "ReadWriteOncePod")) return;
  throw new BlockedError(
    "Refused",
    `claim ${claimName} of spec.model.volume is ReadWriteOncePod, so one pod alone can mount it, and the learner and each generator need it: give a claim that is ReadOnlyMany or ReadWriteMany, or an image`,
  );
}

/** Creates and renews the certificate that all generators share. */
async function reconcileCertificate(look: Look): Promise<Changes> {
  const { observed, memory, nowMs } = look;
  const { run, secrets, generators } = observed;
  const { authority } = secrets;
  // The next reconcile sees the secrets that reconcileCertificates has just written; until then pods wait for their Secret.
  if (!authority || !memory.certificates) return {};
  const { secret } = generators;
  const versions = [authority, secret].map((it) => it?.metadata.resourceVersion).join(" ");
  const known = memory.generatorCertificate;
  if (secret && known?.versions === versions && nowMs < known.renewAtMs) return {};
  const { write, reason, renewAtMs, expireAtMs } = await ensureGeneratorCertificate(
    (authority.data ?? {}) as SecretData,
    secret && ((secret.data ?? {}) as SecretData),
    { name: run.metadata.name, hosts: generatorHosts(run), now: nowMs },
  );
  if (write === undefined) return { generatorCertificate: { versions, renewAtMs, expireAtMs } };
  const metadata = childMetadata(run, `${GENERATORS}-tls`, "generator");
  const desired: Secret = { apiVersion: "v1", kind: "Secret", metadata, type: "Opaque", data: write };
  await look.writes.apply(SECRET, desired);
  if (secret && reason) tell(look, "Normal", "CertificatesRenewed", reason, "Renew");
  return { generatorCertificate: undefined };
}
