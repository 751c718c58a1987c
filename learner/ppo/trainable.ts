/** A model that is trained: weights, and gradient and moments from the first step on. */
import { type ParameterShape, Parameters } from "../graph/parameters.ts";
import type { Session } from "../graph/session.ts";
import type { Tensor } from "../graph/tensor.ts";
import { adamwStep, clipScale, globalNorm, type Moments, newMoments } from "./adamw.ts";
import type { Step } from "./engine.ts";
import { GRADIENT_PREFIX } from "./steps.ts";

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

  /** Forgets the gradient of the step before. */
  zeroGradient(): void {
    this.#parts = 0;
  }

  /** Runs a step graph on one micro-batch, adds its gradient, and returns the graph's other outputs. */
  async accumulate(session: Session, feeds: Record<string, Tensor>): Promise<Record<string, Tensor>> {
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
  step({ learningRate, gradientClip, adam }: Step): { gradientNorm: number; skipped: boolean } {
    if (this.#parts === 0 || !this.#total) return { gradientNorm: 0, skipped: true };
    const gradientNorm = globalNorm(this.#total.data);
    if (!Number.isFinite(gradientNorm)) return { gradientNorm, skipped: true };
    this.moments ??= newMoments(this.weights.data.length);
    const scale = clipScale(gradientNorm, gradientClip);
    adamwStep(this.weights.data, this.#total.data, this.moments, { ...adam, learningRate, scale });
    return { gradientNorm, skipped: false };
  }

  /** The accumulated gradient. */
  get gradient(): Parameters | undefined {
    return this.#parts > 0 ? this.#total : undefined;
  }
}
