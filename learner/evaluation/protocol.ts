import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import type { Protocol } from "../metrics/summary.ts";

/**
 * How N programs are asked for, N being `evaluation.samples`.
 *
 * | protocol | from scratch | improvements | what counts |
 * | --- | --- | --- | --- |
 * | `Paper` | N | N | the better of the two, from twice as many programs (sections 3.3 and 4.1) |
 * | `Equal` | N / 2 | N / 2 | the better of the two, from as many programs as N from scratch |
 * | `Scratch` | N | none | |
 *
 * Only a valid solution is improved. Each is improved once, then each once more, until there are as many improvements as
 * asked for; where none is valid there is none.
 */
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
