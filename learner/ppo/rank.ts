/**
 * One rank of the engine: sessions of the model's graphs and the generator, in the thread that calls it, on weights that
 * all ranks see. Sessions and gradients are made when they are first needed.
 */
import type { Graph } from "../graph/graph.ts";
import type { OnDevice } from "../graph/session.ts";
import type { Tensor } from "../graph/tensor.ts";
import { type GenerateOptions, Generator, type Response } from "../model/generate.ts";
import { type AdamWNumbers, type AdamWScalars, adamwLoop, addAll, sumOfSquares } from "./adamw.ts";
import { type Adaptation, adaptationOf, type Role, trainedShapes } from "./adaptation.ts";
import type { EngineOptions } from "./engine.ts";
import { Sessions } from "./sessions.ts";
import {
  evaluateGraph,
  policyStepGraph,
  pretrainStepGraph,
  type StepOptions,
  valueGraph,
  valueStepGraph,
} from "./steps.ts";
import { GradientMemory, Trainable } from "./trainable.ts";

export type Feeds = Record<string, Tensor>;
export type Outputs = Record<string, Tensor>;

interface GraphOf {
  role: Role;
  build: (model: Adaptation, options?: StepOptions) => Graph;
  /** it has gradients, which are summed */
  trains: boolean;
}

const GRAPHS = {
  evaluate: { role: "policy", build: (model, o) => evaluateGraph(model, "policy", o), trains: false },
  reference: { role: "reference", build: (model, o) => evaluateGraph(model, "reference", o), trains: false },
  values: { role: "critic", build: valueGraph, trains: false },
  policyStep: { role: "policy", build: policyStepGraph, trains: true },
  valueStep: { role: "critic", build: valueStepGraph, trains: true },
  pretrainStep: { role: "policy", build: pretrainStepGraph, trains: true },
} satisfies Record<string, GraphOf>;

export type GraphName = keyof typeof GRAPHS;

export interface Done {
  /** of each micro-batch, without gradients */
  outputs: Outputs[];
  /** the sum over the micro-batches, in shared memory; left out by graphs that do not train */
  gradient?: Float32Array;
}

export class Rank {
  readonly #model: Adaptation;
  readonly #sessions: Sessions;
  readonly #generator: Generator;
  readonly #trainables = new Map<Role, Trainable>();
  readonly #gradients = new GradientMemory();

  /** @throws EngineError, ModelError for options and folders that cannot be used */
  constructor(
    options: EngineOptions,
    model: Adaptation = adaptationOf(options.model, options.adapter),
    onDevice?: OnDevice,
  ) {
    this.#model = model;
    this.#sessions = new Sessions(model, options, onDevice);
    this.#generator = new Generator(model.config, { threads: options.threads, onDevice });
  }

  /** The weights of a role from now on: what another rank trains, in shared memory. */
  share(role: Role, weights: Float32Array): void {
    this.attach(role, new Trainable(trainedShapes(this.#model, role), weights, this.#gradients));
  }

  /** The same within a thread. */
  attach(role: Role, trainable: Trainable): void {
    this.#trainables.set(role, trainable);
  }

  /** Runs a graph on one micro-batch after the other. */
  async run(name: GraphName, microBatches: Feeds[]): Promise<Done> {
    const { role, build, trains } = GRAPHS[name];
    const model = this.#of(role);
    const outputs: Outputs[] = [];
    if (!trains) {
      const session = await this.#sessions.get(name, build);
      for (const feeds of microBatches) outputs.push(await session.run({ ...(await model.feeds()), ...feeds }));
      return { outputs };
    }
    model.zeroGradient();
    for (const feeds of microBatches)
      outputs.push(await model.accumulate(await this.#sessions.ofStep(build, feeds), feeds));
    return { outputs, gradient: model.gradient?.data };
  }

  async generate(role: Role, prompts: Int32Array[], options: GenerateOptions): Promise<Response[]> {
    const weights = await this.#of(role).generatorWeights(this.#model, role);
    return this.#generator.generate(weights, prompts, options);
  }

  // Loops over a part of a model's numbers, all in shared memory.

  add(total: Float32Array, others: readonly Float32Array[]): number {
    return addAll(total, others);
  }

  squares(numbers: Float32Array): number {
    return sumOfSquares(numbers);
  }

  adamw(numbers: AdamWNumbers, scalars: AdamWScalars): void {
    adamwLoop(numbers, scalars);
  }

  async close(): Promise<void> {
    await this.#generator.release();
    await this.#sessions.release();
  }

  #of(role: Role): Trainable {
    return this.#trainables.get(role)!;
  }
}
