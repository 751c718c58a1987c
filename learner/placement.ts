/** Before a run takes memory: which device its networks run on, and whether it fits there. */
import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import { gpuMemory, hostMemory } from "./engine/available-memory.ts";
import { fitRun, planTable } from "./engine/fit.ts";
import type { MemoryPlan } from "./engine/plan.ts";
import { type Device, deviceName, parseDevice, resolveDevice } from "./engine/runtime/device.ts";
import { requestOf } from "./engine-options.ts";
import type { Logger } from "./log.ts";
import type { Options } from "./options.ts";

/**
 * Where the networks run and what they take there, said in the log and to whoever started the learner.
 *
 * @param policy model folder
 * @throws GraphError `device`, EngineError `memory`: one line
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
  log.info(
    { device: deviceName(device), reason },
    `the networks run on ${deviceName(device)}${reason ? `: ${reason}` : ""}`,
  );
  const given = memoryBytes && { bytes: memoryBytes, source: "given" };
  const onGpu = device.kind === "cuda";
  const budget = {
    host: (!onGpu && given) || hostMemory(),
    gpu: onGpu ? given || gpuMemory(device) : undefined,
  };
  const { threads, activationCheckpointing } = spec.learner;
  const plan = fitRun({ ...request, device }, threads, budget, activationCheckpointing);
  const table = planTable(plan, budget);
  log.info({ plan }, table[0]);
  process.send?.({ type: "plan", table });
  return plan;
}

/** ONNX Runtime is loaded for this alone, so not where there is no GPU. */
async function probe(device: Device): Promise<void> {
  const { probeDevice } = await import("./engine/runtime/runtime.ts");
  await probeDevice(device);
}
