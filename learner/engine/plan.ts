/**
 * Plans the memory of a run before it starts: bytes of weights, gradients, optimiser, activations, logits,
 * keys and values for its largest batches. Activations are not estimated by a formula: the graphs that will run are built,
 * and the lifetimes of their values followed (graph/memory.ts), so that the plan follows the engine.
 */

import { type Adaptation, type Role, trainedShapes } from "./adaptation.ts";
import { adamwGraph, PASSING, squaresGraph } from "./device-adamw.ts";
import type { Graph, Value } from "./graph/graph.ts";
import { peakMemory } from "./graph/memory.ts";
import { DOMAIN } from "./graph/operators.ts";
import type { ParameterShape } from "./graph/parameters.ts";
import { arenaBytes, fixedBytes } from "./graph/session-memory.ts";
import { DTYPES, elementCount } from "./graph/tensor.ts";
import { fullPass } from "./microbatches.ts";
import type { ModelConfig } from "./model/config.ts";
import { decoderDims, type RowLayout, rowLayout } from "./model/decoder.ts";
import { joinedBytes } from "./model/generate-joined.ts";
import { wideBytes } from "./model/widened.ts";
import { checkpointBytes } from "./model-state.ts";
import {
  castBytes,
  type GenerationLimits,
  generationMemory,
  generationShape,
  instrumenterShape,
} from "./plan-generation.ts";
import {
  type GraphsRequest,
  graphOptions,
  type Pass,
  PlanGraphs,
  type PlannedGraph,
  type PlannedModel,
} from "./plan-graphs.ts";
import { roundedBytes } from "./rounded-weights.ts";
import { BLOCK_NUMBERS } from "./runtime/buffer.ts";
import type { Device } from "./runtime/device.ts";

export interface PlanRequest extends GenerationLimits, GraphsRequest {
  /** most sequences of a forward and backward pass */
  microBatchSize: number;
  /** lengths of programs and of the frozen policy's answers, if it inserts the markers */
  instrumenter?: Parameters<typeof instrumenterShape>[1] | undefined;
  device: Device;
  /** several GPUs, of which `device` is the first */
  devices?: readonly Device[] | undefined;
}

/** The rows of a plan. */
export type PlanPart =
  | ("process" | "weights" | "gradients" | "optimiser")
  | ("activations" | "logits" | "cache" | "generation");

export interface PlanRow {
  what: PlanPart;
  detail: string;
  /** bytes in the learner's process */
  hostBytes: number;
  /** bytes on the GPU, or on each of several; 0 without one */
  gpuBytes: number;
}

export interface MemoryPlan {
  device: Device;
  devices?: readonly Device[] | undefined;
  rows: PlanRow[];
  hostBytes: number;
  gpuBytes: number;
  /** most tokens of a forward and backward pass, with padding where there is any, unless a single sequence is longer */
  microBatchTokens: number;
  /** tokens of the longest possible sequence: no row of a prompt and its responses is longer */
  rowTokens: number;
  /** workers, which each run micro-batches of their own; `longrun model info --json` has it by this name */
  ranks: number;
  checkpointing: boolean;
  /** bytes of one checkpoint on the disk; 0 without training */
  checkpointBytes: number;
  /** the same as in EngineOptions */
  offloads: boolean;
  swaps: boolean;
  widens: boolean;
}

/**
 * Whether float32 weights and moments are offloaded to the host, whether the networks take turns on the device, and whether generation has
 * float32 copies of half-precision matrices.
 */
export type Placement = Partial<Pick<MemoryPlan, "offloads" | "swaps" | "widens">>;

/** Node.js, the engine's thread and one worker, ONNX Runtime, tokenizer, and garbage that is not collected yet. Measured. */
export const PROCESS_BYTES = 300e6;
/** A learner's memory outside the engine: store, streams, grading and their garbage. Measured with the quickstart. */
export const SURROUNDINGS_BYTES = 120e6;
/** A further worker: its heap, and ONNX Runtime's sessions without their arenas. */
export const WORKER_BYTES = 40e6;
/** What a plan says of float32 copies of half-precision matrices. */
export const WIDENED = ", in float32 for generation too";
/** CUDA's context, kernels and workspaces: assumed, not measured. */
export const CUDA_BYTES = 1e9;
/** Host memory beside GPUs: ONNX Runtime's provider, and bytes for each node of a graph. Measured by rehearsal. */
export const PROVIDER_BYTES = 340e6;
export const NODE_BYTES = 20e3;
/** Bytes of an arena per byte of the computed peak: on a CPU freed pieces do not always fit the next allocation. */
const ARENA = 1.15;
/** The same on a GPU. Without our own attention graphs have more values of more sizes, whose pieces fit less well. Measured by rehearsal. */
const GPU_ARENA = { kernels: 1.06, operators: 1.2 };
const usesAttention = ({ nodes }: Graph) => nodes.some(({ domain, type }) => domain === DOMAIN && type === "Attention");

type Batch = Parameters<typeof decoderDims>[0];

/** Plans of one request for passes of different sizes. */
export class Planner {
  readonly #request: PlanRequest;
  readonly model: Adaptation;
  /** where rows stand in the graphs */
  readonly layout: RowLayout;
  readonly graphs: readonly PlannedGraph[];
  /** tokens of the longest sequence */
  readonly longest: number;
  /** the model's weights in its files */
  readonly #stored: PlannedModel["stored"];
  /** bytes of the trained weights */
  readonly #policyBytes: number;
  readonly #criticBytes: number;
  /** working memory of AdamW on a GPU */
  readonly #stepBytes: number;

  /**
   * @param graphs models and graphs of earlier plans, which are used again
   * @throws ModelError for a folder that cannot be used
   */
  constructor(request: PlanRequest, graphs = new PlanGraphs()) {
    this.#request = request;
    this.longest = request.maxPromptTokens + request.maxResponseTokens;
    const { model, stored } = graphs.model(request);
    this.layout = rowLayout(graphOptions(request), model.config, this.longest);
    this.model = model;
    this.#stored = stored;
    this.graphs = graphs.of(request);
    this.#policyBytes = float32Bytes(trainedShapes(model, "policy"));
    this.#criticBytes = request.critic ? float32Bytes(trainedShapes(model, "critic")) : 0;
    this.#stepBytes = stepBytes(graphOptions(request));
  }

  /** Returns the memory of a pass of `sequences` of these lengths: its peak on a CPU, the graph's own arena on a GPU. */
  pass(kind: Device["kind"], index: number, batch: Batch): Pass {
    const { graph, step, passes } = this.graphs[index];
    const key = [kind, ...Object.values(batch)].join();
    const found = passes.get(key) ?? this.#pass(kind, graph, step, batch);
    passes.set(key, found);
    return found;
  }

  #pass(kind: Device["kind"], graph: Graph, step: boolean, batch: Batch): Pass {
    const { config } = this.model;
    // solutions share most of their tokens
    const distinct = Math.min(config.vocabSize, Math.max(batch.promptTokens, batch.responseTokens));
    const dims = decoderDims(batch, distinct, this.layout);
    // outputs are written into the gradient's own memory
    const peak = peakMemory(graph, dims, { outputsHeld: true });
    const logits = peak.live.reduce((total, { value, bytes }) => total + (isLogits(value, config) ? bytes : 0), 0);
    if (kind === "cpu") return { activations: ARENA * (peak.bytes - logits), logits: ARENA * logits };
    // The gradient of a tied embedding is a sum of two, and where layers are recomputed a copy of it goes to the caller. A shorter pass
    // divides their pieces, so that each may need one region more.
    const further = step && config.tied ? (graph.model.recomputes ? 2 : 1) * fixedBytes(graph) : 0;
    const bytes = arenaBytes(graph, dims) + further;
    return { activations: GPU_ARENA[usesAttention(graph) ? "kernels" : "operators"] * bytes - logits, logits };
  }

  /**
   * @param workers number of workers, each with a pass and its gradients; on GPUs one for each
   * @param placement placement on GPUs, if this request `canOffload`; copies for a CPU, if it `canWiden`
   */
  plan(
    microBatchTokens: number,
    workers = this.#request.devices?.length ?? 1,
    { offloads = false, swaps = false, widens = false }: Placement = {},
  ): MemoryPlan {
    const { device, devices, checkpointing = false } = this.#request;
    const held = offloads ? this.#offloaded(workers, swaps) : this.#held(workers, widens);
    const rows = [...held, ...this.#work(microBatchTokens, workers, swaps)];
    const sum = (of: "hostBytes" | "gpuBytes") => rows.reduce((total, row) => total + row[of], 0);
    const totals = { hostBytes: sum("hostBytes"), gpuBytes: sum("gpuBytes") };
    const lengths = { microBatchTokens, rowTokens: this.longest };
    const passes = { ...lengths, ranks: workers, checkpointing, offloads, swaps, widens };
    const checkpointBytes = this.#checkpointBytes;
    return { device, ...(devices && { devices }), rows, ...totals, ...passes, checkpointBytes };
  }

  get #checkpointBytes(): number {
    const critic = this.#request.critic ? trainedShapes(this.model, "critic") : undefined;
    const kept = { moments: true, masters: this.canOffload };
    return checkpointBytes(trainedShapes(this.model, "policy"), critic, kept);
  }

  /** Whether the networks run on a GPU; weights, gradients and moments then live there too. */
  get #onGpu(): boolean {
    return this.#request.device.kind === "cuda";
  }

  /** Whether a GPU can hold rounded weights, while float32 weights and moments stay in this process. */
  get canOffload(): boolean {
    return this.#onGpu && !this.#request.adapter && this.#request.compute === "bfloat16";
  }

  /** Whether generation on a CPU would otherwise cast half-precision matrices for every token. */
  get canWiden(): boolean {
    return !this.#onGpu && this.#generates && this.#request.adapter !== undefined && wideBytes(this.#stored) > 0;
  }

  /** Whether there are a reference and a KV cache. */
  get #generates(): boolean {
    return this.#request.supervised !== "Alone";
  }

  /** Returns the rows of the process, weights, gradients and moments, which stay all the time. */
  #held(workers: number, widens: boolean): PlanRow[] {
    const { adapter, critic, compute, instrumenter } = this.#request;
    const [policy, largest] = [this.#policyBytes, Math.max(this.#policyBytes, this.#criticBytes)];
    const trained = policy + this.#criticBytes;
    const weights = trained + (this.#generates ? policy : 0); // the reference is a second policy
    const frozen = adapter ? this.#stored.reduce((total, { length }) => total + length, 0) : 0;
    const process = PROCESS_BYTES + SURROUNDINGS_BYTES + (workers - 1) * WORKER_BYTES;
    const owners = this.#generates ? (critic ? "policy, reference, critic" : "policy, reference") : "the policy";
    const copies = widens ? wideBytes(this.#stored) : 0;
    const ownersOf = adapter ? `the frozen model, once${widens ? WIDENED : ""}, adapters of ${owners}` : owners;
    const [gradients, moments] = ["of a batch, one model's at a time", "two moments of what is trained"];
    if (!this.#onGpu)
      return [
        planRow("process", "Node.js, ONNX Runtime", process),
        planRow("weights", ownersOf, frozen + copies + weights),
        planRow("gradients", gradients + times(workers), workers * largest),
        planRow("optimiser", moments, 2 * trained),
      ];
    /** bfloat16 copies that graphs read, or gradients of one micro-batch, beside this many bytes in float32 */
    const halves = (bytes: number) => (compute === "bfloat16" ? bytes / 2 : 0);
    // generation's half-precision copies: joined adapters; without training copies the policy's, and the reference's if it instruments
    const joined = adapter && joinedBytes(this.model.config, this.#stored, adapter);
    const ofWhole = joined ?? (compute === "bfloat16" ? 0 : (policy / 2) * (instrumenter ? 2 : 1));
    const halved = this.#generates ? ofWhole : 0;
    const ofWeights = adapter || !this.#generates ? ownersOf : `${owners}, bfloat16 copies for generation`;
    // the graph that computes a micro-batch's gradient also adds it to the sum, and counts it
    const shared = workers > 1 ? `${moments}, a part on each GPU` : moments;
    return [
      this.#gpuProcess(workers),
      planRow("weights", ofWeights, weights, frozen + weights + halves(weights) + halved),
      this.#gpuGradients(workers, halves(largest)),
      planRow("optimiser", `${shared}; copies for checkpoints`, 2 * trained, (2 * trained) / workers + this.#stepBytes),
    ];
  }

  /** Returns the same rows with float32 weights and moments in this process, and rounded weights on a GPU (rounded-weights.ts). */
  #offloaded(workers: number, swaps: boolean): PlanRow[] {
    const { critic } = this.#request;
    const reference = this.#generates ? (["reference"] as const) : [];
    const roles: Role[] = ["policy", ...reference, ...(critic ? (["critic"] as const) : [])];
    const each = roles.map((role) => roundedBytes(trainedShapes(this.model, role)));
    const passing = DTYPES.float32.bytes * BLOCK_NUMBERS; // a block on its way to the GPU
    const rounded = each.map(({ matrices, rest }) => matrices + rest + passing);
    const there = swaps ? Math.max(...rounded) : rounded.reduce((total, bytes) => total + bytes, 0);
    const ofWeights = `${roles.join(", ")}; on a GPU in bfloat16${swaps ? ", one at a time" : ""}`;
    const trained = this.#policyBytes + this.#criticBytes;
    const moments = "two moments of what is trained; blocks of them pass through a GPU";
    return [
      this.#gpuProcess(workers),
      planRow("weights", ofWeights, trained + reference.length * this.#policyBytes, there),
      this.#gpuGradients(workers, Math.max(...each.map(({ matrices }) => matrices))),
      planRow("optimiser", moments, 2 * trained, this.#stepBytes + PASSING * passing),
    ];
  }

  #gpuProcess(workers: number): PlanRow {
    const nodes = this.graphs.reduce((total, { graph }) => total + graph.nodes.length, 0);
    const sessions = PROVIDER_BYTES + workers * nodes * NODE_BYTES;
    const bytes = PROCESS_BYTES + SURROUNDINGS_BYTES + (workers - 1) * WORKER_BYTES + sessions;
    return planRow("process", "Node.js, ONNX Runtime, its sessions, CUDA", bytes, CUDA_BYTES);
  }

  /** @param half bytes of a micro-batch's gradient in bfloat16 */
  #gpuGradients(workers: number, half: number): PlanRow {
    const largest = Math.max(this.#policyBytes, this.#criticBytes);
    const sum = workers > 1 ? largest + workers * DTYPES.float32.bytes * BLOCK_NUMBERS : 0; // exchange.ts
    const detail = `of a batch, one model's at a time${workers > 1 ? "; here the GPUs' sum" : ""}`;
    return planRow("gradients", detail, sum, largest + half);
  }

  /** Returns rows for the working memory of sessions, on a GPU if there is one. */
  #work(microBatchTokens: number, workers: number, swaps: boolean): PlanRow[] {
    const { microBatchSize, maxPromptTokens, maxResponseTokens, instrumenter, checkpointing, device } = this.#request;
    const { config } = this.model;
    const onGpu = this.#onGpu;
    const each = onGpu ? "" : times(workers);
    /** number of passes in one memory: each GPU has its own */
    const together = onGpu ? 1 : workers;
    // slots are divided among GPUs
    const rows = Math.ceil(this.#request.generationBatchSize / (onGpu ? workers : 1));
    const limits = { ...this.#request, generationBatchSize: rows };
    const most = { tokens: microBatchTokens, longest: this.longest };
    const trained = fullPass(this.layout, { ...most, sequences: microBatchSize });
    const passes = this.graphs.map(({ step }, index): Pass => {
      const full = step ? trained : fullPass(this.layout, most);
      const lengths = onGpu ? full : { ...full, promptTokens: maxPromptTokens, responseTokens: maxResponseTokens };
      const pass = this.pass(device.kind, index, lengths);
      return { activations: together * pass.activations, logits: together * pass.logits };
    });
    const bytes = (pass: Pass) => pass.activations + pass.logits;
    // on a GPU each session has an arena, which it gives back where models are there in turn; on a CPU the sessions of a thread share one
    const inTurn = !onGpu || swaps;
    const { activations, logits } = passes.reduce((a, b): Pass => {
      if (!inTurn) return { activations: a.activations + b.activations, logits: a.logits + b.logits };
      return bytes(a) < bytes(b) ? b : a;
    });
    const row = (what: PlanPart, detail: string, bytes: number) =>
      onGpu ? planRow(what, detail, 0, bytes) : planRow(what, detail, bytes);
    const tokens = this.layout.packs ? trained.responseTokens : `${trained.sequences} x ${this.longest}`;
    const graphs = `${passes.length} graphs, ${tokens} tokens${each}`;
    const ofGraphs = `${inTurn ? "the largest of " : ""}${graphs}${checkpointing ? ", recomputed" : ""}`;
    const vocabulary = `vocabulary of ${config.vocabSize}`;
    if (!this.#generates) return [row("activations", ofGraphs, activations), row("logits", vocabulary, logits)];
    const programs = instrumenter && instrumenterShape(limits, instrumenter);
    const batches = [generationShape(limits), ...(programs ? [programs] : [])];
    const held = batches.map((shape) => generationMemory(config, shape, device.kind)); // one after the other
    const largest = (part: keyof (typeof held)[number]) => Math.max(...held.map((each) => each[part]));
    const cast = onGpu && this.#request.adapter ? castBytes(this.#stored) : 0;
    const prompts = together * largest("activations") + cast;
    const beyond = Math.max(0, Math.max(prompts, largest("logits")) - activations - logits);
    const ofPrograms =
      programs && `, or ${programs.rows} x ${programs.promptTokens + programs.responseTokens} of programs`;
    const cache = `KV cache of ${rows} x ${this.longest} tokens${ofPrograms ?? ""}`;
    return [
      row("activations", ofGraphs, activations),
      row("logits", vocabulary, logits + (onGpu ? largest("logits") : 0)),
      row("cache", cache, largest("cache")),
      onGpu
        ? row("generation", "values of prompts", prompts)
        : row("generation", `activations of prompts, beyond the row activations${each}`, beyond),
    ];
  }
}

export const planRow = (what: PlanPart, detail: string, hostBytes: number, gpuBytes = 0): PlanRow => ({
  what,
  detail,
  hostBytes,
  gpuBytes,
});

/** Returns the bytes that a graph over device-resident tensors needs in addition to them. */
const working = (graph: Graph) => ARENA * peakMemory(graph, { block: BLOCK_NUMBERS }, { outputsHeld: true }).bytes;

/** Working memory of a step on a GPU. The graph that computes a micro-batch's gradient also adds it to the sum, and counts it. */
const stepBytes = (options: ReturnType<typeof graphOptions>) =>
  working(adamwGraph(options)) + working(squaresGraph(options));

const times = (workers: number) => (workers > 1 ? `, on each of ${workers} threads` : "");

const float32Bytes = (shapes: readonly ParameterShape[]): number =>
  shapes.reduce((total, { shape }) => total + 4 * elementCount(shape), 0);

/** Whether a value holds logits: the width of its last axis, the vocabulary or a chunk of it, is the width of no layer. */
function isLogits({ shape }: Value, config: ModelConfig): boolean {
  const { hiddenSize, intermediateSize, heads, keyValueHeads, headSize } = config;
  const widths = [1, hiddenSize, intermediateSize, heads * headSize, keyValueHeads * headSize, headSize];
  const last = shape.at(-1);
  return shape.length === 2 && typeof last === "number" && !widths.includes(last);
}
