/** Writes the learner's Deployment. */
import type { Look } from "../../context.ts";
import { isConflict } from "../../kube/errors.ts";
import { DEPLOYMENT } from "../../kube/resources.ts";
import { imagesNote, markLearner } from "../../pin.ts";
import { applyChild } from "../../writes/apply-child.ts";
import { checkPodTemplate } from "../../writes/refusals.ts";
import type { Derived } from "../lifecycle/derived.ts";
import type { LifecyclePlan } from "../lifecycle/lifecycle.ts";
import { desiredLearner } from "./desired.ts";
import { keptLearnerOf } from "./pod-template.ts";

/** Whether the learner that runs must end: it is scaled down before anything else, and waits for nothing. */
export function stops({ observed: { deployment } }: Look, { learnerReplicas }: LifecyclePlan): boolean {
  return learnerReplicas === 0 && (deployment?.spec?.replicas ?? 0) > 0;
}

/**
 * Applies the Deployment. If its template is refused, a learner that must stop is still scaled to 0, or it would keep its GPU.
 *
 * @throws BlockedError | ApiError
 */
export async function applyLearner(
  look: Look,
  { lifecycle, derived, claimName }: { lifecycle: LifecyclePlan; derived: Derived; claimName: string },
): Promise<void> {
  const { observed, settings } = look;
  const { run, deployment } = observed;
  const { configHash, inputs } = derived;
  const replicas = lifecycle.learnerReplicas;
  const made = desiredLearner(run, { configHash, claimName, settings, replicas });
  const images = imagesNote(observed, lifecycle, settings);
  const desired = markLearner(made, keptLearnerOf(look, derived, claimName), { images, inputs, claimName });
  try {
    checkPodTemplate(run, "learner", `Deployment ${desired.metadata.name}`);
    await applyChild(look, DEPLOYMENT, desired);
  } catch (error) {
    const leaves = replicas === 0 && deployment && deployment.spec!.replicas !== 0;
    if (leaves && !isConflict(error)) await look.writes.patch(DEPLOYMENT, deployment, { spec: { replicas: 0 } });
    throw error;
  }
}
