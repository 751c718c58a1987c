import { join } from "node:path";
import type { TrainingRunSpec } from "../crds/trainingrun.ts";
import { type Device, elementCount, MappedWeights, readConfig, readEosIds } from "./engine/index.ts";
import { readPolicies } from "./evaluation/policies.ts";
import { Generators } from "./generators/generators.ts";
import type { Merge } from "./generators/weights.ts";
import { logNotice } from "./log.ts";
import type { Process } from "./process.ts";
import type { Run } from "./run.ts";
import { readSolve } from "./solve/settings.ts";

/** Folder, in the run folder, of weights until every generator has them. */
export const GENERATORS = "generators";
/** A run on one machine ends when rows wait and no generator could be used for so long; in a pod the learner waits. */
const NO_GENERATOR_SECONDS = 900;

/**
 * Returns the merge of the adapter into the weights for generators, if there is one, and the bytes of one version of full weights (0 if
 * only the adapter is sent).
 *
 * Merged weights are float32 if the learner computes on a CPU, because the log-probs must be equal, or if the model is float32. Otherwise
 * they are float16: as long as bfloat16, with an eighth of its rounding error, which could hide the adapter's effect.
 */
export function sentWeights(
  { model, generation }: Pick<TrainingRunSpec, "model" | "generation">,
  policy: string,
  device: Device,
): { merge?: Merge; bytes: number } {
  const isLora = model.adaptation.type === "LoRA";
  if (isLora && generation?.weightSync !== "Full") return { bytes: 0 };
  const { tensors } = new MappedWeights(policy);
  const dtype = isLora && device.kind !== "cpu" && tensors[0]!.dtype !== "F32" ? "F16" : "F32";
  const numbers = tensors.reduce((sum, { shape }) => sum + elementCount(shape), 0);
  return { ...(isLora && { merge: { model: policy, dtype } }), bytes: numbers * (dtype === "F16" ? 2 : 4) };
}

/** Connects to the generators that the learner was given; undefined: there are none. */
export function startGenerators(
  { options, directory, spec, status, log, suspension, signal }: Process,
  run: Pick<Run, "engine" | "phases" | "progress"> & { device: Device; policy: string },
): Generators | undefined {
  const trains = readPolicies(directory) === undefined && readSolve(directory) === undefined;
  const none = options.generators.length === 0 || options.replay !== undefined || !trains;
  if (none) return undefined;
  const { engine, phases, progress, device, policy } = run;
  const generators = new Generators({
    urls: options.generators,
    tlsDirectory: options.generatorsTls,
    engine,
    device: device.kind,
    log,
    eosIds: readEosIds(policy),
    vocabSize: readConfig(policy).vocabSize,
    directory: join(directory, GENERATORS),
    merge: sentWeights(spec, policy, device).merge,
    isCurrent: (version) => phases.isBetweenUpdates && progress.state.iteration === version,
    noGeneratorSeconds: options.stay ? Number.POSITIVE_INFINITY : NO_GENERATOR_SECONDS,
    notice: (text) => logNotice(log, text),
    onChange: () => status.changed(),
    signal: AbortSignal.any([signal, suspension.signal]),
  });
  status.addSource(() => ({ generation: generators.status }));
  return generators;
}
