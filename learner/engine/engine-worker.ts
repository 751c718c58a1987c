/**
 * One worker of the engine: it runs graphs on micro-batches, generates, and takes its part of an optimiser step. On a CPU
 * all workers read the same weights in shared memory; on a GPU a worker has the GPU.
 */

import type { AdamWScalars, Moments } from "./adamw.ts";
import { type Adaptation, adaptationOf, type Role, trainedShapes } from "./adaptation.ts";
import { DeviceMemory } from "./device-memory.ts";
import type { EngineOptions } from "./engine.ts";
import type { Graph } from "./graph/graph.ts";
import type { Tensor } from "./graph/tensor.ts";
import { isResident } from "./microbatches.ts";
import { type GenerateOptions, Generator, type Listener, type Response } from "./model/generate.ts";
import { HostMemory, type Range } from "./model-memory.ts";
import type { Session } from "./runtime/session.ts";
import { Sessions } from "./sessions.ts";
import {
  accuracyGraph,
  evaluateGraph,
  policyStepGraph,
  pretrainStepGraph,
  type StepOptions,
  valueGraph,
  valueStepGraph,
} from "./steps.ts";
import { GradientSum, type SharedStep, Trainable } from "./trainable.ts";

export type Feeds = Record<string, Tensor>;
export type Outputs = Record<string, Tensor>;

type RunOptions = Parameters<Session["run"]>[2];

/** `trains`: the graph has gradients, which are summed. */
type GraphOf = { role: Role; build: (model: Adaptation, options?: StepOptions) => Graph; trains: boolean };

const GRAPHS = {
  evaluate: { role: "policy", build: (model, o) => evaluateGraph(model, "policy", o), trains: false },
  reference: { role: "reference", build: (model, o) => evaluateGraph(model, "reference", o), trains: false },
  accuracy: { role: "policy", build: accuracyGraph, trains: false },
  values: { role: "critic", build: valueGraph, trains: false },
  policyStep: { role: "policy", build: policyStepGraph, trains: true },
  valueStep: { role: "critic", build: valueStepGraph, trains: true },
  pretrainStep: { role: "policy", build: pretrainStepGraph, trains: true },
} satisfies Record<string, GraphOf>;

export type GraphName = keyof typeof GRAPHS;

export interface Done {
  /** outputs of each micro-batch, without gradients */
  outputs: Outputs[];
  /** the sum of gradients over the micro-batches, where it is in shared memory */
  gradient?: Float32Array | undefined;
}

export class EngineWorker {
  readonly #model: Adaptation;
  readonly #memory: HostMemory | DeviceMemory;
  readonly #sum: GradientSum;
  readonly #sessions: Sessions;
  readonly #generator: Generator;
  /** graphs hold device memory in turn, too */
  readonly #swaps: boolean;
  readonly #trainables = new Map<Role, Trainable>();

  /** @throws EngineError, ModelError for options and folders that cannot be used; GraphError `device` */
  constructor(options: EngineOptions) {
    this.#model = adaptationOf(options.model, options.adapter);
    const onDevice = isResident(options) ? new DeviceMemory(options, this.#model) : undefined;
    this.#memory = onDevice ?? new HostMemory();
    this.#sum = new GradientSum(this.#memory);
    this.#sessions = new Sessions(this.#model, options, onDevice);
    this.#swaps = options.swaps ?? false;
    const { threads, slots, positions, widens } = options;
    this.#generator = new Generator(this.#model.config, { threads, onDevice, slots, positions, widens });
  }

  /** Sets a role's weights, in shared memory. */
  attach(role: Role, weights: Float32Array): void {
    this.#trainables.get(role)?.release();
    const shapes = trainedShapes(this.#model, role);
    this.#trainables.set(role, new Trainable(this.#memory, this.#sum, shapes, weights));
  }

  /** Call it after another thread has written a role's weights and moments in shared memory. */
  changed(role: Role): void {
    this.#of(role).markHostDirty();
  }

  async fetch(role: Role, range: Range, moments?: Moments): Promise<void> {
    await this.#of(role).fetch(range, moments);
  }

  /** Returns whether rows stand one after the other in the graphs (model/decoder.ts). */
  packs(): boolean {
    return this.#sessions.layout.packs;
  }

  async run(name: GraphName, microBatches: Feeds[]): Promise<Done> {
    const { role, build, trains } = GRAPHS[name];
    const model = this.#of(role);
    const sessionOf = (feeds: Feeds) =>
      trains ? this.#sessions.ofStep(build, feeds) : this.#sessions.get(name, build);
    const run = async (session: Session, feeds: Feeds, options?: RunOptions): Promise<Outputs> =>
      trains
        ? model.accumulate(session, feeds, options)
        : session.run({ ...(await model.feeds()), ...feeds }, session.outputNames, options);
    const [first] = microBatches;
    const session = first && (await sessionOf(first));
    const longest = session && this.#sessions.longest(session, first);
    if (trains) model.zeroGradient();
    if (longest) await run(session, longest);
    if (trains) model.zeroGradient(); // forgets `longest`
    const outputs: Outputs[] = [];
    for (const [i, feeds] of microBatches.entries()) {
      const givesBack = this.#swaps && i === microBatches.length - 1;
      outputs.push(await run(await sessionOf(feeds), feeds, { givesBack }));
    }
    return { outputs, ...(trains && { gradient: model.gradient }) };
  }

  async squares(role: Role, range: Range, gradients: readonly Float32Array[]): Promise<number> {
    return this.#of(role).squares(range, gradients);
  }

  async adamw(role: Role, range: Range, scalars: AdamWScalars, shared: SharedStep): Promise<void> {
    await this.#of(role).adamw(range, scalars, shared);
  }

  async addGradient(role: Role, piece: Range, total: Float32Array, isFirst: boolean): Promise<void> {
    await this.#of(role).addGradient(piece, total, isFirst);
  }

  async prepareStep(role: Role, range: Range, total: Float32Array, moments?: Moments): Promise<void> {
    await this.#of(role).prepareStep(range, total, moments);
  }

  async shareWeights(role: Role, range: Range): Promise<void> {
    await this.#of(role).shareWeights(range);
  }

  async takeWeights(role: Role, own: Range): Promise<void> {
    await this.#of(role).takeWeights(own);
  }

  async generate(
    role: Role,
    prompts: Int32Array[],
    options: GenerateOptions,
    listener?: Listener,
  ): Promise<Response[]> {
    const weights = this.#model.generatorWeights(await this.#of(role).generatorWeights(), role);
    return this.#generator.generate(weights, prompts, options, listener);
  }

  async close(): Promise<void> {
    await this.#generator.release();
    await this.#sessions.release();
    for (const trainable of this.#trainables.values()) trainable.release();
    this.#sum.release();
    if (this.#memory instanceof DeviceMemory) await this.#memory.release();
  }

  #of(role: Role): Trainable {
    return this.#trainables.get(role)!;
  }
}
