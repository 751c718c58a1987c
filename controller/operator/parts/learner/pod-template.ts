/** The pod template that the learner has: the desired one, or an earlier one that an upgrade keeps (pin.ts). */
import type { Look } from "../../context.ts";
import { SPEC_HASH } from "../../desired/names.ts";
import type { Deployment } from "../../kube/resources.ts";
import { keptLearner } from "../../pin.ts";
import type { Derived } from "../lifecycle/derived.ts";
import { learnerHash } from "./desired.ts";

/** Returns the digest of the learner's pod as it would be created now. */
function learnerHashOf({ observed, settings }: Look, { configHash }: Derived, claimName: string): string {
  return learnerHash(observed.run, { configHash, claimName, settings });
}

export function keptLearnerOf(look: Look, derived: Derived, claimName: string): Deployment | undefined {
  return keptLearner(look.observed, learnerHashOf(look, derived, claimName), derived.inputs, claimName);
}

/** Returns the digest of the desired pod template: the present template's if the run keeps it. */
export function currentLearnerHash(look: Look, derived: Derived): string {
  const claimName = look.observed.volume?.metadata.name ?? "";
  const kept = keptLearnerOf(look, derived, claimName);
  return kept?.metadata.annotations?.[SPEC_HASH] ?? learnerHashOf(look, derived, claimName);
}
