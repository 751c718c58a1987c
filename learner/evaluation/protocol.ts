import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import type { Protocol } from "../metrics/summary.ts";

/** How many programs of each kind are asked for: README.md, "What is asked", explains the protocols. */
export interface Arms {
  protocol: Protocol;
  scratch: number;
  improve: number;
}

/** `evaluation.improve` that is not given: whether the run trains with improve prompts. */
export function armsOf({ evaluation, prompts }: Pick<TrainingRunSpec, "evaluation" | "prompts">): Arms {
  const { samples, protocol, improve = prompts.improveProbability > 0 } = evaluation;
  if (!improve) return { protocol: "Scratch", scratch: samples, improve: 0 };
  if (protocol === "Equal") return { protocol, scratch: Math.ceil(samples / 2), improve: Math.floor(samples / 2) };
  return { protocol, scratch: samples, improve: samples };
}
