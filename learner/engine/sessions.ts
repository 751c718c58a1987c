/** The sessions of a model's graphs. Each is made when it is first needed, and kept. */

import type { Adaptation } from "./adaptation.ts";
import type { EngineOptions } from "./engine.ts";
import { EngineError } from "./errors.ts";
import type { Graph } from "./graph/graph.ts";
import { boundDims, peakMemory } from "./graph/memory.ts";
import type { Tensor } from "./graph/tensor.ts";
import { attentionBlocks } from "./microbatches.ts";
import { createSession, type OnDevice } from "./runtime/runtime.ts";
import type { Session } from "./runtime/session.ts";
import type { StepOptions } from "./steps.ts";

type StepGraph = (model: Adaptation, options?: StepOptions) => Graph;
type Feeds = Readonly<Record<string, Tensor>>;

/** What a graph says of it: TF32 is a matter of the session. */
export const graphCompute = (compute: EngineOptions["compute"] = "float32") =>
  compute === "tf32" ? "float32" : compute;

/** @throws EngineError `compute` for what the device cannot compute in */
export function checkCompute({ compute = "float32", device }: Pick<EngineOptions, "compute" | "device">): void {
  if (compute === "float32" || device?.kind === "cuda") return;
  const why = `ONNX Runtime multiplies ${compute} matrices on CUDA alone`;
  throw new EngineError("compute", `compute is ${compute}, but ${why}; set it to float32 on a CPU`);
}

export class Sessions {
  readonly #model: Adaptation;
  readonly #options: Omit<EngineOptions, "model">;
  /** what all graphs are built with */
  readonly #graphs: Pick<StepOptions, "compute" | "blocks">;
  readonly #create: OnDevice["createSession"];
  readonly #activationBytes: number;
  readonly #made = new Map<string, Session>();
  /** step graphs without checkpointing, which say what memory they need */
  readonly #plain = new Map<StepGraph, Graph>();

  /** @param onDevice where tensors stay there */
  constructor(model: Adaptation, options: Omit<EngineOptions, "model">, onDevice?: OnDevice) {
    this.#model = model;
    this.#options = options;
    this.#graphs = { compute: graphCompute(options.compute), blocks: attentionBlocks(options) };
    this.#create = onDevice?.createSession ?? createSession;
    this.#activationBytes = options.activationBytes ?? process.availableMemory() / 2;
  }

  /** Of a graph that only evaluates. */
  async get(name: string, build: StepGraph): Promise<Session> {
    return this.#get(name, () => build(this.#model, this.#graphs));
  }

  /** Of a step on this micro-batch, with checkpointing where that is asked for, or where memory asks for it. */
  async ofStep(build: StepGraph, feeds: Feeds): Promise<Session> {
    const { activationCheckpointing: mode = "Auto" } = this.#options;
    const checkpointing = mode === "Always" || (mode === "Auto" && this.#bytes(build, feeds) > this.#activationBytes);
    const name = checkpointing ? `${build.name}, checkpointing` : build.name;
    const plain = checkpointing ? undefined : this.#plain.get(build);
    return this.#get(name, () => plain ?? build(this.#model, { ...this.#graphs, checkpointing }));
  }

  async #get(name: string, build: () => Graph): Promise<Session> {
    const options = { threads: this.#options.threads, ...this.#model.sessionOptions };
    const session = this.#made.get(name) ?? (await this.#create(build(), options));
    this.#made.set(name, session);
    return session;
  }

  /** What the values of a step without checkpointing take at most. */
  #bytes(build: StepGraph, feeds: Feeds): number {
    const graph = this.#plain.get(build) ?? build(this.#model, this.#graphs);
    this.#plain.set(build, graph);
    return peakMemory(graph, boundDims(graph, feeds), { outputsHeld: true }).bytes;
  }

  async release(): Promise<void> {
    for (const session of this.#made.values()) await session.release();
    this.#made.clear();
  }
}
