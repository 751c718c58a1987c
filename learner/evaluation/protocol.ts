import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import type { Protocol } from "../metrics/summary.ts";

/**
 * Returns how many programs of each kind are requested; README.md explains the protocols. Without `evaluation.improve`,
 * improvements are requested if the run trains with improve prompts.
 */
export function armsOf({ evaluation, prompts }: Pick<TrainingRunSpec, "evaluation" | "prompts">) {
  const { samples, improve = prompts.improveProbability > 0 } = evaluation;
  const protocol: Protocol = improve ? evaluation.protocol : "Scratch";
  if (protocol === "Equal") return { protocol, scratch: Math.ceil(samples / 2), improve: Math.floor(samples / 2) };
  return { protocol, scratch: samples, improve: improve ? samples : 0 };
}
