/**
 * The memory of a process that generates and trains nothing: a model's files as they are, or float32 weights that can be replaced, and one KV
 * cache; no gradients, optimiser or critic.
 */
import { EngineError } from "./errors.ts";
import { type Budget, fits, shortage, widest } from "./fit.ts";
import { layoutOf } from "./graph/parameters.ts";
import { DTYPES, elementCount } from "./graph/tensor.ts";
import { joinedBytes } from "./model/generate-joined.ts";
import { adapterParameters, type LoraConfig } from "./model/lora.ts";
import { MappedWeights } from "./model/mapped.ts";
import { parameters } from "./model/weights.ts";
import { wideBytes } from "./model/widened.ts";
import {
  CUDA_BYTES,
  type MemoryPlan,
  NODE_BYTES,
  type PlanPart,
  type PlanRow,
  PROCESS_BYTES,
  PROVIDER_BYTES,
  planRow,
  WIDENED,
  WORKER_BYTES,
} from "./plan.ts";
import { castBytes, type GenerationShape, generationMemory } from "./plan-generation.ts";
import { roundedBytes } from "./rounded-weights.ts";
import type { Device } from "./runtime/device.ts";

export interface InferenceRequest {
  /** folders of the models that are open at the same time, each with its adapter. `whole`: all weights can be replaced (`loadPolicy`) */
  models: readonly { folder: string; lora?: LoraConfig | undefined; whole?: boolean }[];
  /** batches that are generated one after the other */
  shapes: readonly GenerationShape[];
  device: Device;
  /** several GPUs, of which `device` is the first */
  devices?: readonly Device[] | undefined;
  /** workers of a CPU; default 1 */
  workers?: number;
  /** bytes of the process outside the engine; default 0 */
  surroundingBytes?: number;
}

/** The caller's names of the settings that make a plan smaller. */
export interface InferenceSettings {
  slots: string;
  lengths: readonly string[];
}

/** Nodes of a generation graph for each layer, and sessions: prompts, and one token each. */
const NODES_OF_LAYER = 12;
const SESSIONS = 2;

/** @param widens whether a CPU's generation has float32 copies of half-precision matrices */
export function inferencePlan(request: InferenceRequest, widens = false): MemoryPlan {
  const { models, shapes, device, devices, workers = devices?.length ?? 1, surroundingBytes = 0 } = request;
  const onGpu = device.kind === "cuda";
  const opened = models.map(({ folder, ...rest }) => ({ weights: MappedWeights.planned(folder), ...rest }));
  const sum = <T>(items: readonly T[], of: (item: T) => number) => items.reduce((total, item) => total + of(item), 0);
  const files = sum(opened, ({ weights, whole }) => (whole ? 0 : sum(weights.tensors, ({ length }) => length)));
  const copies = widens ? sum(opened, ({ weights, whole }) => (whole ? 0 : wideBytes(weights.tensors))) : 0;
  const wholes = opened.filter(({ whole }) => whole).map(({ weights }) => parameters(weights.config));
  const replaced = sum(wholes, (shapes) => DTYPES.float32.bytes * layoutOf(shapes).size);
  // a GPU multiplies bfloat16 copies of the matrices
  const halves = onGpu ? sum(wholes, (shapes) => roundedBytes(shapes).matrices) : 0;
  const adapters = sum(opened, ({ weights: { config }, lora }) =>
    lora ? sum(adapterParameters(config, lora), ({ shape }) => DTYPES.float32.bytes * elementCount(shape)) : 0,
  );
  const joined = sum(opened, ({ weights: { config, tensors }, lora }) =>
    onGpu && lora ? joinedBytes(config, tensors, lora) : 0,
  );
  // slots are divided among GPUs, and among a CPU's workers, which share its memory
  const own = shapes.map((shape) => ({ ...shape, rows: Math.ceil(shape.rows / (onGpu ? workers : 1)) }));
  const together = onGpu ? 1 : workers;
  const held = opened.map(({ weights }) => {
    const each = own.map((shape) => generationMemory(weights.config, shape, device.kind));
    const most = (part: keyof (typeof each)[number]) => Math.max(...each.map((memory) => memory[part]));
    const cast = onGpu ? castBytes(weights.tensors) : 0;
    return { cache: most("cache"), logits: most("logits"), prompts: together * most("activations") + cast };
  });
  const nodes = SESSIONS * workers * sum(opened, ({ weights }) => NODES_OF_LAYER * weights.config.layers);
  const process = PROCESS_BYTES + surroundingBytes + (workers - 1) * WORKER_BYTES;
  const row = (what: PlanPart, detail: string, bytes: number) =>
    onGpu ? planRow(what, detail, 0, bytes) : planRow(what, detail, bytes);
  const tokens = Math.max(...shapes.map(({ promptTokens, responseTokens }) => promptTokens + responseTokens));
  const [many, each] =
    models.length > 1
      ? ["the models as they are in their files", `, for each of ${models.length} models`]
      : [wholes.length > 0 ? "the whole model in float32" : "the model as it is in its files", ""];
  const weights = `${many}${copies > 0 ? WIDENED : ""}${adapters > 0 ? ", an adapter" : ""}`;
  const batches = own.map(({ rows, promptTokens, responseTokens }) => `${rows} x ${promptTokens + responseTokens}`);
  const slots = `KV cache of ${batches.join(" or ")} tokens${each}`;
  const rows: PlanRow[] = [
    onGpu
      ? planRow("process", "Node.js, ONNX Runtime, CUDA", process + PROVIDER_BYTES + nodes * NODE_BYTES, CUDA_BYTES)
      : planRow("process", "Node.js, ONNX Runtime", process),
    onGpu
      ? planRow("weights", weights, adapters + replaced, files + adapters + joined + replaced + halves)
      : planRow("weights", weights, files + copies + adapters + replaced),
    row(
      "cache",
      slots,
      sum(held, ({ cache }) => cache),
    ),
    row(
      "logits",
      `vocabulary of ${opened[0]!.weights.config.vocabSize}`,
      sum(held, ({ logits }) => logits),
    ),
    row(
      "generation",
      "activations of prompts",
      sum(held, ({ prompts }) => prompts),
    ),
  ];
  const bytes = { hostBytes: sum(rows, ({ hostBytes }) => hostBytes), gpuBytes: sum(rows, ({ gpuBytes }) => gpuBytes) };
  const none = { microBatchTokens: 0, checkpointing: false, checkpointBytes: 0, offloads: false, swaps: false };
  const made = { widens: copies > 0, rowTokens: tokens, ranks: workers };
  return { device, ...(devices && { devices }), rows, ...bytes, ...none, ...made };
}

/**
 * Returns the plan of a process that generates. On a CPU it has one worker if it does not fit with more.
 *
 * @throws EngineError `memory`, one line with the largest parts, the settings of each, and the slots with which it fits
 */
export function fitInference(request: InferenceRequest, budget: Budget, named: InferenceSettings): MemoryPlan {
  const best = (asked: InferenceRequest) => {
    const plan = inferencePlan(asked);
    const several = asked.device.kind === "cpu" && (asked.workers ?? 1) > 1;
    return several && !fits(plan, budget) ? inferencePlan({ ...asked, workers: 1 }) : plan;
  };
  const plan = best(request);
  const { ranks: workers } = plan;
  if (fits(plan, budget))
    return request.device.kind === "cuda" ? plan : widest(plan, inferencePlan({ ...request, workers }, true), budget);
  const { slots, lengths } = named;
  const none = { gradients: [], optimiser: [], activations: [], process: [] };
  const governing = { ...none, weights: [], cache: [slots, ...lengths], logits: [slots], generation: lengths };
  const least = Math.max(...request.shapes.map(({ rows }) => rows));
  for (let most = least >> 1; most > 0; most >>= 1) {
    const shapes = request.shapes.map((shape) => ({ ...shape, rows: Math.min(shape.rows, most) }));
    if (fits(best({ ...request, shapes }), budget))
      throw new EngineError(
        "memory",
        `${shortage(plan, budget, governing, "generation")}; it fits with ${slots} ${most}`,
      );
  }
  throw new EngineError("memory", shortage(plan, budget, governing, "generation"));
}
