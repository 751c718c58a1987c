/** A model that is trained, in one worker: weights, the sum of gradients and moments where the worker's graphs run. */

import type { AdamWScalars, Moments } from "./adamw.ts";
import { EngineError } from "./errors.ts";
import { layoutOf, type ParameterShape } from "./graph/parameters.ts";
import type { DeviceTensor, Tensor } from "./graph/tensor.ts";
import type { Numbers } from "./model/generate-weights.ts";
import type { DeviceTensors, Held, Memory, Range } from "./model-memory.ts";
import type { Session } from "./runtime/session.ts";
import { GRADIENT_PREFIX, HALF_GRADIENT_PREFIX, SUM_PREFIX } from "./steps.ts";

/** The sum of gradients in one worker. Only the model that takes a step has one. */
export class GradientSum {
  readonly #memory: Memory;
  #sum: { held: Held; owner: Trainable } | undefined;
  /** length of the largest model so far */
  #longest = 0;

  constructor(memory: Memory) {
    this.#memory = memory;
  }

  /**
   * Announces a model of `length` numbers that will step. The sum has the length of the longest model, because memory of a shorter sum
   * would stay in a GPU's arena beside the next.
   */
  expect(length: number): void {
    this.#longest = Math.max(this.#longest, length);
  }

  /** Begins the sum of a model's gradients with zeros. No other model has a sum from now on. */
  async begin(owner: Trainable): Promise<Held> {
    if (this.#sum && this.#sum.held.length < owner.length) this.release();
    if (this.#sum) await this.#sum.held.zero();
    const held = this.#sum?.held ?? (await this.#memory.hold(this.#longest));
    this.#sum = { held, owner };
    return held;
  }

  /** @throws EngineError `step` if another model has begun a sum since */
  of(model: Trainable): Held {
    if (this.#sum?.owner === model) return this.#sum.held;
    throw new EngineError("step", "another model's gradient was computed between a gradient and its optimiser step");
  }

  /** Returns this model's sum, or begins it with zeros. */
  async ofOrBegin(model: Trainable): Promise<Held> {
    return this.#sum?.owner === model ? this.#sum.held : this.begin(model);
  }

  release(): void {
    this.#sum?.held.release();
    this.#sum = undefined;
  }
}

export class Trainable {
  readonly shapes: readonly ParameterShape[];
  /** float32 numbers, padding between tensors included (`layoutOf`) */
  readonly length: number;
  readonly #memory: Memory;
  readonly #sum: GradientSum;
  readonly #shared: Float32Array;
  #weights: Held | undefined;
  #moments: { first: Held; second: Held } | undefined;
  #parts = 0;

  /** @param weights weights in shared memory, in the layout of these shapes */
  constructor(memory: Memory, sum: GradientSum, shapes: readonly ParameterShape[], weights: Float32Array) {
    this.#memory = memory;
    this.#sum = sum;
    this.shapes = shapes;
    this.length = layoutOf(shapes).size;
    sum.expect(this.length);
    this.#shared = weights;
  }

  /** Returns the weights as a graph's feeds. */
  async feeds(): Promise<Record<string, Tensor | DeviceTensor>> {
    const weights = await this.#held();
    return { ...(await weights.tensors(this.shapes)), ...(await this.#memory.halves(weights, this.shapes)) };
  }

  async generatorWeights(): Promise<Numbers> {
    return this.#memory.generatorWeights(await this.#held(), this.shapes);
  }

  zeroGradient(): void {
    this.#parts = 0;
  }

  /** Runs a step graph on one micro-batch, which adds its gradient to the sum, and returns the graph's other outputs. */
  async accumulate(
    session: Session,
    feeds: Record<string, Tensor>,
    options?: Parameters<Session["run"]>[2],
  ): Promise<Record<string, Tensor>> {
    const weights = await this.feeds();
    const sum = this.#parts++ === 0 ? await this.#sum.begin(this) : this.#sum.of(this);
    const part = await this.#memory.part(this.shapes);
    const gradients = {
      ...(await sum.tensors(this.shapes, GRADIENT_PREFIX)),
      ...part?.parameters(HALF_GRADIENT_PREFIX),
    };
    const results = await session.run(
      { ...weights, ...(await sum.tensors(this.shapes, SUM_PREFIX)), ...feeds },
      Object.fromEntries(session.outputNames.map((name) => [name, gradients[name] ?? null])),
      options,
    );
    await part?.addTo(sum.buffer!);
    return Object.fromEntries(Object.entries(results).filter(([name]) => !(name in gradients)));
  }

  /** The sum of the gradients, where it is in shared memory. */
  get gradient(): Float32Array | undefined {
    return this.#parts > 0 ? this.#sum.of(this).shared?.subarray(0, this.length) : undefined;
  }

  /** Returns the sum of squares of a part of the gradient: of all workers' sums in shared memory, or of this worker's. */
  async squares(range: Range, [own, ...others]: readonly Float32Array[]): Promise<number> {
    return this.#memory.squares(await this.#gradient(own), range, others);
  }

  /** Takes an AdamW step over a part of the numbers, the same part in every step. */
  async adamw(range: Range, scalars: AdamWScalars, shared: SharedStep): Promise<void> {
    const weights = await this.#held();
    const gradient = await this.#gradient(shared.gradient);
    const { first, second } = await this.#heldMoments(range, shared.moments);
    await this.#memory.adamw({ weights, gradient, first, second }, range, scalars);
  }

  /** Adds a piece of this device's gradient to the earlier devices' sum; the first device begins the sum. */
  async addGradient({ from, to }: Range, total: Float32Array, isFirst: boolean): Promise<void> {
    const piece = this.#memory.piece(to - from);
    await this.#sum.of(this).fetch(piece, from);
    const part = total.subarray(from, to);
    if (isFirst) part.set(piece);
    else for (let i = 0; i < part.length; i++) part[i]! += piece[i]!;
  }

  /** Prepares this device's step of a part of the numbers, with their gradient and moments, before any device changes a weight. */
  async prepareStep({ from, to }: Range, total: Float32Array, moments: Moments | undefined): Promise<void> {
    const sum = (await this.#sum.ofOrBegin(this)) as DeviceTensors;
    await this.#held();
    if (!this.#memory.offloads) await this.#heldMoments({ from, to }, moments);
    await sum.put(total.subarray(from, to), from);
  }

  /** Copies the part of the weights that this device has stepped into shared memory. */
  async shareWeights({ from, to }: Range): Promise<void> {
    await this.#weights!.fetch(this.#shared.subarray(from, to), from);
  }

  /** Copies the parts that the other devices have stepped from shared memory. */
  async takeWeights(own: Range): Promise<void> {
    await (this.#weights as DeviceTensors).allGather(own);
  }

  /** Call it after a write to weights and moments in shared memory, which then are the newest. */
  markHostDirty(): void {
    this.#weights?.markHostDirty();
    for (const held of [this.#moments?.first, this.#moments?.second]) held?.release();
    this.#moments = undefined;
  }

  /** Copies a part of the newest weights, and of the given moments, into shared memory. */
  async fetch({ from, to }: Range, moments: Moments | undefined): Promise<void> {
    await this.#weights?.fetch(this.#shared.subarray(from, to), from);
    if (!moments) return;
    await this.#moments?.first.fetch(moments.first.subarray(from, to));
    await this.#moments?.second.fetch(moments.second.subarray(from, to));
  }

  release(): void {
    for (const held of [this.#weights, this.#moments?.first, this.#moments?.second]) held?.release();
    this.#weights = this.#moments = undefined;
  }

  /** @param shared the whole sum, in shared memory */
  async #gradient(shared: Float32Array | undefined): Promise<Held> {
    return shared ? this.#memory.hold(this.length, shared) : this.#sum.of(this);
  }

  async #held(): Promise<Held> {
    this.#weights ??= await this.#memory.holdWeights(this.shapes, this.#shared);
    return this.#weights;
  }

  /** Returns the moments of the numbers that this worker updates. */
  async #heldMoments({ from, to }: Range, shared: Moments | undefined): Promise<{ first: Held; second: Held }> {
    if (this.#moments) return this.#moments;
    const hold = (moment: Float32Array | undefined) => this.#memory.holdMoment(to - from, moment?.subarray(from, to));
    const first = await hold(shared?.first);
    try {
      this.#moments = { first, second: await hold(shared?.second) };
    } catch (cause) {
      first.release(); // there was no memory for both
      throw cause;
    }
    return this.#moments;
  }
}

/** The arrays that workers share in a step, where models are in shared memory. */
export type SharedStep = { gradient: Float32Array | undefined; moments: Moments | undefined };
