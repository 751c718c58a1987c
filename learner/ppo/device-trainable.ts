/**
 * A model that is trained where its graphs run: weights, the gradient's sum and both moments stay on the device, and an
 * optimiser step is made there. What comes to this process: the gradient's norm with every step, and weights and moments
 * when they are asked for (checkpoints). Numbers are those of trainable.ts, but for the order in which the norm is summed.
 */
import type { DeviceBuffer } from "../device/buffer.ts";
import { DeviceFiles } from "../device/files.ts";
import { DeviceNumbers } from "../device/numbers.ts";
import { DeviceRuntime } from "../device/runtime.ts";
import { layoutOf, type ParameterShape } from "../graph/parameters.ts";
import type { GraphSession, OnDevice } from "../graph/session.ts";
import type { DeviceTensor, Tensor } from "../graph/tensor.ts";
import type { ModelConfig } from "../model/config.ts";
import { fusedParameters, transformersName } from "../model/fuse.ts";
import { fuseGraph, joinedParameters } from "../model/fuse-graph.ts";
import type { DeviceFeeds, GeneratorWeights } from "../model/generate.ts";
import { readPart } from "../model/safetensors-header.ts";
import { clipScale, type Moments, newMoments } from "./adamw.ts";
import type { Adaptation, Role } from "./adaptation.ts";
import { DeviceAdamW, type DeviceMoments } from "./device-adamw.ts";
import type { EngineOptions, Step } from "./engine.ts";
import { EngineError } from "./errors.ts";
import { GRADIENT_PREFIX, SUM_PREFIX } from "./steps.ts";
import { type StepDone, Trainable } from "./trainable.ts";

/**
 * What the models on a device share: ONNX Runtime there, the frozen model where adapters are trained, the optimiser, and what
 * one of them needs at a time: the sum of gradients, and generation's joined matrices.
 */
export class DeviceTraining implements OnDevice {
  readonly runtime: DeviceRuntime;
  readonly createSession: OnDevice["createSession"];
  readonly numbers: OnDevice["numbers"];
  /** the frozen model, once for the sessions of policy, critic, reference and generation */
  readonly files: DeviceFiles;
  readonly #threads: number;
  #adamw: DeviceAdamW | undefined;
  #sum: { buffer: DeviceBuffer; of: DeviceTrainable } | undefined;
  #fuse: { session: GraphSession; buffer: DeviceBuffer } | undefined;
  /** whose matrices are joined, and which of its versions */
  #joined: { model: DeviceTrainable; version: number } | undefined;

  /** @throws GraphError `device`, one line with the remedy, where the device cannot be used */
  constructor(
    { device = { kind: "cpu" }, threads, compute }: Pick<EngineOptions, "device" | "threads" | "compute">,
    frozen?: Adaptation["frozen"],
  ) {
    this.runtime = new DeviceRuntime(device);
    this.files = new DeviceFiles(this.runtime, frozen?.mapped.tensors ?? [], readPart);
    // beside products in bfloat16 those that are not (logits, generation) need no more than TF32
    const tf32 = compute === "tf32" || compute === "bfloat16";
    this.createSession = async (graph, options) =>
      this.runtime.createSession(
        graph,
        { tf32, ...options },
        await this.files.initializers(graph, options.externalDirectory),
      );
    this.numbers = (capacity) => new DeviceNumbers(this.runtime, capacity);
    this.#threads = threads;
  }

  async adamw(): Promise<DeviceAdamW> {
    this.#adamw ??= await DeviceAdamW.create(this.runtime, this.#threads);
    return this.#adamw;
  }

  /** The sum of a model's gradients, set to 0: no other model has one from now on. */
  async beginSum(of: DeviceTrainable): Promise<DeviceBuffer> {
    const size = of.weights.data.length;
    if (this.#sum && this.#sum.buffer.length < size) {
      this.#sum.buffer.release();
      this.#sum = undefined;
    }
    if (this.#sum) await this.runtime.zero(this.#sum.buffer);
    const buffer = this.#sum?.buffer ?? (await this.runtime.allocate(size));
    this.#sum = { buffer, of };
    return buffer;
  }

  /** @throws EngineError `step` where another model has begun one since */
  sumOf(model: DeviceTrainable): DeviceBuffer {
    if (this.#sum?.of === model) return this.#sum.buffer;
    throw new EngineError("step", "another model's gradient was computed between a gradient and its optimiser step");
  }

  /** A model's weights as generation takes them. Matrices are joined once for each version. */
  async fused(model: DeviceTrainable, config: ModelConfig): Promise<DeviceFeeds> {
    const weights = await model.feeds();
    const shapes = joinedParameters(config);
    this.#fuse ??= {
      session: await this.createSession(fuseGraph(config), { threads: this.#threads }),
      buffer: await this.runtime.allocate(layoutOf(shapes).size),
    };
    const { session, buffer } = this.#fuse;
    const joined = buffer.parameters(shapes, "weights.");
    if (this.#joined?.model !== model || this.#joined.version !== model.version) {
      await session.run(weights, joined);
      this.#joined = { model, version: model.version };
    }
    const direct = fusedParameters(config).flatMap(({ name }) => {
      const own = transformersName(name);
      return own === undefined ? [] : [[`weights.${name}`, weights[own]!] as const];
    });
    return { ...joined, ...Object.fromEntries(direct) };
  }

  /** After the models and sessions on it. */
  async release(): Promise<void> {
    this.#sum?.buffer.release();
    await this.#adamw?.release();
    await this.#fuse?.session.release();
    this.#fuse?.buffer.release();
    this.files.release();
    await this.runtime.release();
  }
}

export class DeviceTrainable extends Trainable {
  readonly #on: DeviceTraining;
  #there: DeviceBuffer | undefined;
  #moments: DeviceMoments | undefined;
  /** Which weights and moments are the newest: those in this process's memory, those there, or both. */
  #newest: "here" | "there" | "both" = "here";
  #parts = 0;
  /** another one with each change of the weights there */
  version = 0;

  /** @param weights that exist already, in this layout */
  constructor(on: DeviceTraining, shapes: readonly ParameterShape[], weights?: Float32Array) {
    super(shapes, weights);
    this.#on = on;
  }

  override async feeds(): Promise<Record<string, DeviceTensor>> {
    return (await this.#send()).parameters(this.weights.shapes);
  }

  override async generatorWeights(model: Adaptation, role: Role): Promise<GeneratorWeights> {
    if (model.frozen) {
      const { mapped, lora } = model.frozen;
      return role === "reference" ? mapped : { base: mapped, lora, fed: await this.feeds() };
    }
    return { fused: await this.#on.fused(this, model.config) };
  }

  override zeroGradient(): void {
    this.#parts = 0;
  }

  /** @param session of a graph that accumulates */
  override async accumulate(session: GraphSession, feeds: Record<string, Tensor>): Promise<Record<string, Tensor>> {
    const weights = await this.feeds();
    const sum = this.#parts === 0 ? await this.#on.beginSum(this) : this.#on.sumOf(this);
    this.#parts++;
    const { shapes } = this.weights;
    const others = session.outputNames.filter((name) => !name.startsWith(GRADIENT_PREFIX));
    return session.run(
      { ...weights, ...sum.parameters(shapes, SUM_PREFIX), ...feeds },
      { ...sum.parameters(shapes, GRADIENT_PREFIX), ...Object.fromEntries(others.map((name) => [name, null])) },
    );
  }

  override async step({ learningRate, gradientClip, adam }: Step): Promise<StepDone> {
    if (this.#parts === 0) return { gradientNorm: 0, skipped: true };
    const weights = await this.#send();
    const optimiser = await this.#on.adamw();
    const sum = this.#on.sumOf(this);
    const gradientNorm = await optimiser.norm(sum, weights.length);
    if (!Number.isFinite(gradientNorm)) return { gradientNorm, skipped: true };
    this.#moments ??= await this.#zeroMoments();
    const scale = clipScale(gradientNorm, gradientClip);
    await optimiser.step(weights, sum, this.#moments, { ...adam, learningRate, scale });
    this.#newest = "there";
    this.version++;
    return { gradientNorm, skipped: false };
  }

  override async fetch(): Promise<void> {
    if (this.#newest !== "there") return;
    const { runtime } = this.#on;
    await runtime.read(this.#there!, this.weights.data);
    const { first, second, steps } = this.#moments!;
    this.moments ??= newMoments(this.weights.data.length);
    await runtime.read(first, this.moments.first);
    await runtime.read(second, this.moments.second);
    this.moments.steps = steps;
    this.#newest = "both";
  }

  override restore(weights: ReadonlyMap<string, Float32Array>, moments: Moments | undefined): void {
    super.restore(weights, moments);
    this.#newest = "here";
  }

  override equals(other: Trainable): boolean {
    return this.#newest !== "there" && super.equals(other);
  }

  override release(): void {
    for (const buffer of [this.#there, this.#moments?.first, this.#moments?.second]) buffer?.release();
    this.#there = this.#moments = undefined;
  }

  /** It is read there. */
  override get gradient(): undefined {
    return undefined;
  }

  /** The weights there; with the moments they are the newest afterwards. */
  async #send(): Promise<DeviceBuffer> {
    const { runtime } = this.#on;
    this.#there ??= await runtime.allocate(this.weights.data.length);
    if (this.#newest !== "here") return this.#there;
    await runtime.write(this.#there, this.weights.data);
    if (this.moments) {
      this.#moments ??= await this.#zeroMoments();
      await runtime.write(this.#moments.first, this.moments.first);
      await runtime.write(this.#moments.second, this.moments.second);
      this.#moments.steps = this.moments.steps;
    } else if (this.#moments) {
      for (const buffer of [this.#moments.first, this.#moments.second]) buffer.release();
      this.#moments = undefined;
    }
    this.#newest = "both";
    this.version++;
    return this.#there;
  }

  async #zeroMoments(): Promise<DeviceMoments> {
    const { runtime } = this.#on;
    const size = this.weights.data.length;
    return { first: await runtime.allocate(size), second: await runtime.allocate(size), steps: 0 };
  }
}
