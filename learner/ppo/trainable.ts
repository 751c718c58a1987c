/** A model that is trained: weights, and gradient and moments from the first step on; here, in this process's memory. */
import { type ParameterShape, Parameters } from "../graph/parameters.ts";
import type { GraphSession } from "../graph/session.ts";
import type { DeviceTensor, Tensor } from "../graph/tensor.ts";
import type { GeneratorWeights } from "../model/generate.ts";
import { adamwStep, clipScale, globalNorm, type Moments, newMoments } from "./adamw.ts";
import type { Adaptation, Role } from "./adaptation.ts";
import type { Step, StepResult } from "./engine.ts";
import { GRADIENT_PREFIX } from "./steps.ts";

export type StepDone = Pick<StepResult, "gradientNorm" | "skipped">;

export class Trainable {
  readonly weights: Parameters;
  moments: Moments | undefined;
  #total: Parameters | undefined;
  #part: Parameters | undefined;
  #parts = 0;

  /** @param weights that exist already, in this layout */
  constructor(shapes: readonly ParameterShape[], weights?: Float32Array) {
    this.weights = new Parameters(shapes, weights);
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

  /** Runs a step graph on one micro-batch, adds its gradient, and returns the graph's other outputs. */
  async accumulate(session: GraphSession, feeds: Record<string, Tensor>): Promise<Record<string, Tensor>> {
    const first = this.#parts++ === 0;
    this.#total ??= this.weights.zeros();
    if (!first) this.#part ??= this.weights.zeros();
    const target = first ? this.#total : this.#part!;
    const others = session.outputNames.filter((name) => !name.startsWith(GRADIENT_PREFIX));
    const results = await session.run(
      { ...this.weights.views(), ...feeds },
      { ...target.views(GRADIENT_PREFIX), ...Object.fromEntries(others.map((name) => [name, null])) },
    );
    if (!first) this.#sum(target.data);
    return Object.fromEntries(others.map((name) => [name, results[name]]));
  }

  /** The gradient of another rank's micro-batches, of the same layout. */
  add(gradient: Float32Array): void {
    this.#total ??= this.weights.zeros();
    if (this.#parts++ === 0) this.#total.data.set(gradient);
    else this.#sum(gradient);
  }

  #sum(part: Float32Array): void {
    const sum = this.#total!.data;
    for (let i = 0; i < sum.length; i++) sum[i] += part[i];
  }

  /** Clips the accumulated gradient and takes an AdamW step; a gradient that is not finite changes nothing. */
  async step({ learningRate, gradientClip, adam }: Step): Promise<StepDone> {
    if (this.#parts === 0 || !this.#total) return { gradientNorm: 0, skipped: true };
    const gradientNorm = globalNorm(this.#total.data);
    if (!Number.isFinite(gradientNorm)) return { gradientNorm, skipped: true };
    this.moments ??= newMoments(this.weights.data.length);
    const scale = clipScale(gradientNorm, gradientClip);
    adamwStep(this.weights.data, this.#total.data, this.moments, { ...adam, learningRate, scale });
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
    return this.#parts > 0 ? this.#total : undefined;
  }
}

function bytes(data: Float32Array): Uint8Array {
  return new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
}
