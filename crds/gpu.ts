/** Extended resources that are GPUs, or parts of one: `nvidia.com/gpu`, `nvidia.com/gpu.shared`, `nvidia.com/mig-1g.10gb`, `amd.com/gpu`. */
import type { Resources, TrainingRunSpec } from "./trainingrun.generated.ts";

const GPU = /^nvidia\.com\/|\/gpu$/;

/** Returns how many GPUs, or parts of one, a container asks for. A device is asked for by its limit. */
export function gpuCount({ limits = {} }: Resources): number {
  return Object.entries(limits)
    .filter(([name]) => GPU.test(name))
    .reduce((sum, [, count]) => sum + Number(count), 0);
}

/** Whether the learner has GPUs, or a part of one, where it computes on one. The CRD has the same as a rule. */
export function hasItsGpu({ learner }: TrainingRunSpec): boolean {
  const limits = Object.entries(learner.resources.limits ?? {});
  return (
    learner.device !== "CUDA" || limits.some(([name, count]) => name.startsWith("nvidia.com/") && `${count}` !== "0")
  );
}
