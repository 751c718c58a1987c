/** Writes the objects of a run's generators: certificate, Service, Deployment. */

import { type Look, recordEvent } from "../../context.ts";
import { childMetadata, GENERATORS, generatorHosts } from "../../desired/names.ts";
import { DEPLOYMENT, PERSISTENT_VOLUME_CLAIM, type PersistentVolumeClaim, SERVICE } from "../../kube/resources.ts";
import type { StepResult } from "../../steps.ts";
import { applyChild } from "../../writes/apply-child.ts";
import { BlockedError } from "../../writes/refusals.ts";
import { Stabiliser } from "../actors/autoscale.ts";
import type { CertificateDates } from "../certificates/certificates.ts";
import { reconcileSigned } from "../certificates/signed.ts";
import { desiredGeneratorService, desiredGenerators } from "./desired.ts";
import { describeGeneration, type GenerationPlan } from "./generation.ts";

export interface GeneratorsMemory {
  /** Stabiliser of the number of generators, and the `scaleDownSeconds` it was created for. */
  stabiliser?: { scaleDownSeconds: number; stabiliser: Stabiliser };
  certificate?: CertificateDates | undefined;
  /** Time since which the learner does not use a generator, by address. */
  unusedSinceMs: ReadonlyMap<string, number>;
}

/**
 * Reconciles the generators' objects. Creates none before the run may have its first pod. A Deployment that is not wanted any more
 * is scaled to 0 and deleted with the run; its pods finish their rows within their grace period.
 *
 * @throws BlockedError | ApiError
 */
export async function reconcileGenerators(
  look: Look<GeneratorsMemory>,
  plan: GenerationPlan | undefined,
  certified: boolean,
): Promise<StepResult<GeneratorsMemory>> {
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
  const { authority } = look.observed.secrets;
  // The next reconcile sees the secrets that the part certificates has just written; until then pods wait for their Secret.
  const certificate =
    certified && authority
      ? await reconcileSigned(look, look.memory.certificate, {
          authority,
          secret: generators.secret,
          role: "generator",
          name: run.metadata.name,
          metadata: childMetadata(run, `${GENERATORS}-tls`, "generator"),
          hosts: generatorHosts(run),
        })
      : look.memory.certificate;
  await applyChild(look, SERVICE, desiredGeneratorService(run));
  await applyChild(look, DEPLOYMENT, desiredGenerators(run, { replicas: plan.replicas, settings: look.settings }));
  if (text) recordEvent(look, isMore ? "ScaledUp" : "ScaledDown", text);
  return { remember: { certificate }, againSeconds: plan.againSeconds };
}

/** A controller that has just started knows no demand, so the existing number counts for one more window. */
export function stabiliserOf({
  observed,
  memory,
  nowMs,
}: Look<GeneratorsMemory>): StepResult<GeneratorsMemory> & { stabiliser: Stabiliser } {
  const { scaleDownSeconds = 0 } = observed.run.spec.generation ?? {};
  const known = memory.stabiliser;
  if (known?.scaleDownSeconds === scaleDownSeconds) return { stabiliser: known.stabiliser };
  const stabiliser = new Stabiliser(scaleDownSeconds);
  stabiliser.next(observed.run.status?.generation?.replicas ?? 0, nowMs / 1000);
  return { stabiliser, remember: { stabiliser: { scaleDownSeconds, stabiliser } } };
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
