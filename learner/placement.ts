/** Before a run takes memory: which device its networks run on, and whether it fits there. */
import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import { deviceName, parseDevice, resolveDevice } from "./graph/device.ts";
import type { Logger } from "./log.ts";
import type { Options } from "./options.ts";
import { gpuMemory, hostMemory } from "./ppo/available-memory.ts";
import { fitRun, planTable, requestOf } from "./ppo/fit.ts";
import { isResident } from "./ppo/microbatches.ts";
import type { MemoryPlan, PlanRequest } from "./ppo/plan.ts";

/**
 * Where the networks run and what they take there, said in the log and to whoever started the learner.
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
  const { device, reason } = await resolveDevice(wish, (it) => probe({ ...request, device: it }));
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

/** Whether a device can do what the run needs. ONNX Runtime is loaded for this alone, so not where there is no GPU. */
async function probe(request: PlanRequest): Promise<void> {
  const { probeDevice } = await import("./graph/session.ts");
  await probeDevice(request.device);
  if (!isResident(request)) return;
  const { probeRuntime } = await import("./device/runtime.ts");
  await probeRuntime(request.device);
}
