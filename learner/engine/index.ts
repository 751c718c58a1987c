/**
 * The engine's one interface: everything outside this folder imports this file alone (test/imports.test.ts). Tests and
 * benchmarks of single mechanisms may import other files.
 *
 * Importing it loads neither ONNX Runtime nor a model: `startEngine`, `localEngine`, `probeDevice` and `Generator` do.
 */

// Devices and memory: where networks run, how much memory they take, whether it fits.
export { gpuMemory, hostMemory, leastGpuMemory } from "./available-memory.ts";
// Calls of an object in another thread.
export { serveCalls, WorkerThread } from "./calls.ts";
// The engine: generate, evaluate, updatePolicy, updateCritic, save, load.
export {
  type AdapterOptions,
  type ComputeFormat,
  type CriticStepResult,
  type Engine,
  type EngineOptions,
  type Fit,
  FROZEN,
  type LogProbs,
  type PolicySample,
  type PolicyStepResult,
  type RunningEngine,
  type Sequence,
  startEngine,
  type ValueSample,
} from "./engine.ts";
export { EngineError } from "./errors.ts";
export { type Budget, checkLengths, fitRun, planTable, size } from "./fit.ts";
export { type GpuEntry, gpuLines, gpuTable } from "./gpu-table.ts";
export { localEngine, logProbsOf } from "./local.ts";
export { workerCount } from "./microbatches.ts";
// Models: folders, weights, adapters, tokenizers.
export { readAdapter } from "./model/adapter-folder.ts";
export type { ModelConfig } from "./model/config.ts";
export { type ConvertOptions, convertFolder, mergeFolder } from "./model/convert.ts";
export { ModelError } from "./model/errors.ts";
export { hasWeights, SHARD_BYTES } from "./model/files.ts";
export {
  createModelFolder,
  eosIdsOf,
  FETCH_RECORD,
  readConfig,
  readEosIds,
  readTokenizer,
} from "./model/folder.ts";
export { DEFAULT_SLOTS, Generator, type Listener, type Response, type ResponsePart } from "./model/generate.ts";
export { convertGguf } from "./model/gguf-convert.ts";
export { type SafetensorsDType, TRANSFORMERS_DTYPES } from "./model/halves.ts";
export { PROJECTIONS } from "./model/lora.ts";
export { MappedWeights, modelIdentity } from "./model/mapped.ts";
// Random numbers that depend on a seed and a purpose alone.
export { permutation, seedFor, uniforms } from "./model/random.ts";
export { readHeader } from "./model/safetensors.ts";
export { type Message, Tokenizer, type TokenizerFiles } from "./model/tokenizer.ts";
export { responseEnd, tokenName, turnEndWarning } from "./model/turn-end.ts";
export { elementCount, initialWeights } from "./model/weights.ts";
export { type MemoryPlan, type PlanRequest, SURROUNDINGS_BYTES } from "./plan.ts";
export { type GenerationShape, generationShape, instrumenterShape } from "./plan-generation.ts";
export { fitInference, type InferenceRequest } from "./plan-inference.ts";
export { fitSupervised, type SupervisedRequest } from "./plan-supervised.ts";
export {
  type Device,
  deviceName,
  deviceNames,
  hasGpu,
  parseDevice,
  parseDevices,
  resolveDevice,
  resolveDevices,
} from "./runtime/device.ts";
export { onNotice } from "./runtime/notices.ts";
export { probeDevice, useDevice } from "./runtime/runtime.ts";
export { graphCompute } from "./sessions.ts";
