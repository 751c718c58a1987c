import type { TrainingRunSpec } from "./trainingrun.generated.ts";

/** Whether the learner has GPUs, or a part of one, where it computes on one. The CRD has the same as a rule. */
export function hasItsGpu({ learner }: TrainingRunSpec): boolean {
  const limits = Object.entries(learner.resources.limits ?? {});
  return (
    learner.device !== "CUDA" || limits.some(([name, count]) => name.startsWith("nvidia.com/") && `${count}` !== "0")
  );
}
