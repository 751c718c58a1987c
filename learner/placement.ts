/** Chooses the device of a run's networks, and checks that the run fits there before it takes memory. */
import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import { gpuMemory, hostMemory } from "./engine/available-memory.ts";
import { fitRun, planTable } from "./engine/fit.ts";
import type { MemoryPlan } from "./engine/plan.ts";
import { type Device, deviceName, parseDevice, resolveDevice } from "./engine/runtime/device.ts";
import { requestOf } from "./engine-options.ts";
import type { Logger } from "./log.ts";
import type { Options } from "./options.ts";

/**
 * Returns the device and the memory plan, and tells them to the log and the parent process.
 *
 * @param policy model folder
 * @throws GraphError `device`, EngineError `memory`: one line with the remedy
 */
export async function place(
  policy: string,
  spec: TrainingRunSpec,
  { device: wished, memoryBytes }: Pick<Options, "device" | "memoryBytes">,
  log: Logger,
): Promise<MemoryPlan> {
  const wish = parseDevice(wished ?? spec.learner.device);
  const request = requestOf(spec, policy, { kind: "cpu" });
  const { device, reason } = await resolveDevice(wish, probe);
  const name = deviceName(device);
  log.info({ device: name, reason }, `the networks run on ${name}${reason ? `: ${reason}` : ""}`);
  const given = memoryBytes && { bytes: memoryBytes, source: "given" };
  const onGpu = device.kind === "cuda";
  const budget = { host: (!onGpu && given) || hostMemory(), gpu: onGpu ? given || gpuMemory(device) : undefined };
  const { threads, activationCheckpointing } = spec.learner;
  const plan = fitRun({ ...request, device }, threads, budget, activationCheckpointing);
  const table = planTable(plan, budget);
  log.info({ plan }, table[0]);
  process.send?.({ type: "plan", table });
  return plan;
}

/** Loads ONNX Runtime, which is not needed where there is no GPU. */
async function probe(device: Device): Promise<void> {
  const { probeDevice } = await import("./engine/runtime/runtime.ts");
  await probeDevice(device);
}
