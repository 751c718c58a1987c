/** Extended resources that are GPUs, or parts of one: nvidia.com/gpu, nvidia.com/gpu.shared, nvidia.com/mig-1g.10gb, amd.com/gpu. */
import { readQuantity } from "./quantity.ts";
import type { Resources, TrainingRunSpec } from "./trainingrun.generated.ts";

const GPU = /^nvidia\.com\/|\/gpu$/;

/**
 * Returns the number of GPUs, or parts of a GPU, that a container requests. Devices are requested by limits, as whole numbers in any form of
 * a quantity: Kubernetes takes 8000m for 8.
 */
export function gpuCount({ limits = {} }: Resources): number {
  return Object.entries(limits)
    .filter(([name]) => GPU.test(name))
    .reduce((sum, [, count]) => sum + (readQuantity(String(count)) ?? 0), 0);
}

/** Whether a container requests a GPU, or devices by claims, which do not tell their number. */
export function hasDevices(resources: Resources): boolean {
  return gpuCount(resources) > 0 || (resources.claims ?? []).length > 0;
}

/** Whether a learner that computes on a GPU has a GPU, or a part of one. The CRD has the same rule. */
export function hasItsGpu({ learner }: TrainingRunSpec): boolean {
  const { limits = {}, claims = [] } = learner.resources;
  const isGpu = ([name, count]: [string, unknown]) => name.startsWith("nvidia.com/") && `${count}` !== "0";
  return learner.device !== "CUDA" || claims.length > 0 || Object.entries(limits).some(isGpu);
}
