/** The sessions of a model's graphs. Each is made on first use and kept. */

import type { Adaptation } from "./adaptation.ts";
import type { EngineOptions } from "./engine.ts";
import { EngineError } from "./errors.ts";
import type { Graph } from "./graph/graph.ts";
import { boundDims, peakMemory, sizes } from "./graph/memory.ts";
import { type Tensor, zeros } from "./graph/tensor.ts";
import { longestDims } from "./microbatches.ts";
import { type RowLayout, rowLayout } from "./model/decoder.ts";
import { createSession, type OnDevice } from "./runtime/runtime.ts";
import type { Session } from "./runtime/session.ts";
import type { StepOptions } from "./steps.ts";

type StepGraph = (model: Adaptation, options?: StepOptions) => Graph;
type Feeds = Readonly<Record<string, Tensor>>;

/** Returns the format for graphs: TF32 is an option of the session instead. */
export const graphCompute = (compute: EngineOptions["compute"] = "float32") =>
  compute === "tf32" ? "float32" : compute;

/** @throws EngineError `compute` for a format that the device cannot compute in */
export function checkCompute({ compute = "float32", device }: Pick<EngineOptions, "compute" | "device">): void {
  if (compute === "float32" || device?.kind === "cuda") return;
  const why = `ONNX Runtime multiplies ${compute} matrices on CUDA alone`;
  throw new EngineError("compute", `compute is ${compute}, but ${why}; set it to float32 on a CPU`);
}

export class Sessions {
  readonly #model: Adaptation;
  readonly #options: Omit<EngineOptions, "model">;
  /** Options of all graphs, but their blocks. */
  readonly #graphs: Pick<StepOptions, "compute" | "kernels">;
  #layout: RowLayout | undefined;
  readonly #create: OnDevice["createSession"];
  readonly #activationBytes: number;
  readonly #made = new Map<string, Session>();
  /** Inputs of sessions that have not run yet. */
  readonly #unused = new Map<Session, Graph["inputs"]>();
  /** Step graphs without checkpointing, to determine the memory that they need. */
  readonly #plain = new Map<StepGraph, Graph>();

  /** @param onDevice the place of tensors that stay on the device */
  constructor(model: Adaptation, options: Omit<EngineOptions, "model">, onDevice?: OnDevice) {
    this.#model = model;
    this.#options = options;
    const compute = graphCompute(options.compute);
    const kernels = compute === "bfloat16" ? onDevice?.runtime.kernels : undefined;
    this.#graphs = { compute, kernels };
    this.#create = onDevice?.createSession ?? createSession;
    this.#activationBytes = options.activationBytes ?? process.availableMemory() / 2;
  }

  /** Where rows stand in the graphs. Loads kernels. */
  get layout(): RowLayout {
    this.#layout ??= rowLayout(this.#graphs, this.#model.config, this.#options.rowTokens);
    return this.#layout;
  }

  /** Returns the session of a graph that only evaluates. */
  async get(name: string, build: StepGraph): Promise<Session> {
    return this.#get(name, () => this.#build(build));
  }

  /** Returns the session of a step on this micro-batch, with checkpointing if it is configured or if memory requires it. */
  async ofStep(build: StepGraph, feeds: Feeds): Promise<Session> {
    const { activationCheckpointing: mode = "Auto" } = this.#options;
    const checkpointing = mode === "Always" || (mode === "Auto" && this.#bytes(build, feeds) > this.#activationBytes);
    const name = checkpointing ? `${build.name}, checkpointing` : build.name;
    const plain = checkpointing ? undefined : this.#plain.get(build);
    return this.#get(name, () => plain ?? this.#build(build, checkpointing));
  }

  #build(build: StepGraph, checkpointing = false): Graph {
    return build(this.#model, { ...this.#graphs, blocks: this.layout.blocks, checkpointing });
  }

  async #get(name: string, build: () => Graph): Promise<Session> {
    const options = { threads: this.#options.threads, ...this.#model.sessionOptions };
    const made = this.#made.get(name);
    if (made) return made;
    const graph = build();
    const session = await this.#create(graph, options);
    this.#made.set(name, session);
    this.#unused.set(session, graph.inputs);
    return session;
  }

  /**
   * Returns the feeds of the largest planned micro-batch, all zeros, for a session on a GPU that has not run yet; `feeds` are the feeds of
   * any micro-batch. Run it first, and ignore the results: the session's arena then has memory for every later micro-batch. An arena that
   * grew with the lengths would hold the memory of each, because memory of a shorter sequence is too small for a longer one.
   */
  longest(session: Session, feeds: Feeds): Feeds | undefined {
    const inputs = this.#unused.get(session);
    this.#unused.delete(session);
    const { device, swaps } = this.#options;
    const dims = longestDims(this.#options, this.#model.config, this.layout);
    if (!inputs || !dims || swaps || device?.kind !== "cuda") return undefined;
    const given = inputs.filter(({ name }) => name in feeds);
    return Object.fromEntries(
      given.map((input) => [
        input.name,
        input.shape.length === 0 ? feeds[input.name]! : zeros(input.dtype, sizes(input, dims)),
      ]),
    );
  }

  /** Returns the most memory that the values of a step without checkpointing take. */
  #bytes(build: StepGraph, feeds: Feeds): number {
    const graph = this.#plain.get(build) ?? this.#build(build);
    this.#plain.set(build, graph);
    return peakMemory(graph, boundDims(graph, feeds), { outputsHeld: true }).bytes;
  }

  async release(): Promise<void> {
    for (const session of this.#made.values()) await session.release();
    this.#made.clear();
    this.#unused.clear();
  }
}
