/** A model that is trained: weights, and gradient and moments from the first step on; here, in this process's memory. */
import { type ParameterShape, Parameters } from "../graph/parameters.ts";
import type { GraphSession } from "../graph/session.ts";
import type { DeviceTensor, Tensor } from "../graph/tensor.ts";
import type { GeneratorWeights } from "../model/generate.ts";
import {
  type AdamWNumbers,
  type AdamWScalars,
  adamwLoop,
  adamwScalars,
  clipScale,
  type Moments,
  newMoments,
  sumOfSquares,
} from "./adamw.ts";
import type { Adaptation, Role } from "./adaptation.ts";
import type { Step, StepResult } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { GRADIENT_PREFIX, SUM_PREFIX } from "./steps.ts";

export type StepDone = Pick<StepResult, "gradientNorm" | "skipped">;

/** Who goes over all numbers of a model in an optimiser step: this thread, or several (data-parallel.ts). */
export interface Loops {
  /** the sum of squares, in float64 */
  squares(numbers: Float32Array): number | Promise<number>;
  adamw(numbers: AdamWNumbers, scalars: AdamWScalars): void | Promise<void>;
}
const ONE_THREAD: Loops = { squares: sumOfSquares, adamw: adamwLoop };

/** Memory of gradients of the models of one thread, of which one at a time has a gradient: the one that takes a step. */
export class GradientMemory {
  #data = new Float32Array(new SharedArrayBuffer(0));
  #sum: { of: Trainable; gradient: Parameters } | undefined;

  /** The sum of a model's gradients, zeros: no other model has one from now on. */
  begin(of: Trainable): Parameters {
    const size = of.weights.data.length;
    if (this.#data.length < size) this.#data = new Float32Array(new SharedArrayBuffer(4 * size));
    const gradient = of.weights.over(this.#data.subarray(0, size).fill(0));
    this.#sum = { of, gradient };
    return gradient;
  }

  /** @throws EngineError `step` where another model has begun one since */
  of(model: Trainable): Parameters {
    if (this.#sum?.of === model) return this.#sum.gradient;
    throw new EngineError("step", "another model's gradient was computed between a gradient and its optimiser step");
  }
}

export class Trainable {
  readonly weights: Parameters;
  moments: Moments | undefined;
  readonly #memory: GradientMemory;
  #parts = 0;

  /** @param weights that exist already, in this layout */
  constructor(shapes: readonly ParameterShape[], weights?: Float32Array, memory = new GradientMemory()) {
    this.weights = new Parameters(shapes, weights);
    this.#memory = memory;
  }

  /** The weights as a graph is fed with them. */
  async feeds(): Promise<Record<string, Tensor | DeviceTensor>> {
    return this.weights.views();
  }

  /** The weights as generation takes them. */
  async generatorWeights(model: Adaptation, role: Role): Promise<GeneratorWeights> {
    return model.generatorWeights(this.weights, role);
  }

  /** Forgets the gradient of the step before. */
  zeroGradient(): void {
    this.#parts = 0;
  }

  /** Runs a step graph on one micro-batch, which adds its gradient to the sum, and returns the graph's other outputs. */
  async accumulate(session: GraphSession, feeds: Record<string, Tensor>): Promise<Record<string, Tensor>> {
    const sum = this.#parts++ === 0 ? this.#memory.begin(this) : this.#memory.of(this);
    const others = session.outputNames.filter((name) => !name.startsWith(GRADIENT_PREFIX));
    const results = await session.run(
      { ...this.weights.views(), ...sum.views(SUM_PREFIX), ...feeds },
      { ...sum.views(GRADIENT_PREFIX), ...Object.fromEntries(others.map((name) => [name, null])) },
    );
    return Object.fromEntries(others.map((name) => [name, results[name]]));
  }

  /** Clips the accumulated gradient and takes an AdamW step; a gradient that is not finite changes nothing. */
  async step({ learningRate, gradientClip, adam }: Step, loops = ONE_THREAD): Promise<StepDone> {
    if (this.#parts === 0) return { gradientNorm: 0, skipped: true };
    const { weights } = this;
    const gradient = this.#memory.of(this);
    const gradientNorm = Math.sqrt(await loops.squares(gradient.data));
    if (!Number.isFinite(gradientNorm)) return { gradientNorm, skipped: true };
    this.moments ??= newMoments(weights.data.length);
    const { first, second } = this.moments;
    const scale = clipScale(gradientNorm, gradientClip);
    const scalars = adamwScalars(++this.moments.steps, { ...adam, learningRate, scale });
    await loops.adamw({ weights: weights.data, gradient: gradient.data, first, second }, scalars);
    return { gradientNorm, skipped: false };
  }

  /** `weights` and `moments` are those of the last step from now on. */
  async fetch(): Promise<void> {}

  /** Goes on from these weights and moments. */
  restore(weights: ReadonlyMap<string, Float32Array>, moments: Moments | undefined): void {
    for (const [name, data] of weights) this.weights.set(name, data);
    this.moments = moments;
  }

  /** Whether the weights are the same; false where only a look at the device could tell. */
  equals({ weights }: Trainable): boolean {
    return Buffer.compare(bytes(this.weights.data), bytes(weights.data)) === 0;
  }

  /** Frees what is on a device. */
  release(): void {}

  /** The accumulated gradient. */
  get gradient(): Parameters | undefined {
    return this.#parts > 0 ? this.#memory.of(this) : undefined;
  }
}

function bytes(data: Float32Array): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
