/**
 * Models on one device: weights, gradients and moments that stay there from one run to the next, the frozen model that exists
 * there once, and an optimiser that runs there. Weights and moments are copied to this process for checkpoints alone; each step copies the
 * gradient's norm. Results equal HostMemory's, except that the norm is summed in another order.
 *
 * Weights trained in bfloat16 can be offloaded: the device then has weights rounded to bfloat16 (rounded-weights.ts) and the gradient. The
 * float32 weights and the moments stay in this process's memory, where a checkpoint needs them anyway, and pass through the device in a step.
 */

import type { AdamWScalars } from "./adamw.ts";
import { type Adaptation, trainedShapes } from "./adaptation.ts";
import { type DeviceAdamW, deviceAdamW } from "./device-adamw.ts";
import { allocateHalves, type DeviceHalves, type HalfKernels, halfKernels } from "./device-halves.ts";
import type { EngineOptions } from "./engine.ts";
import { EngineError } from "./errors.ts";
import type { ParameterShape } from "./graph/parameters.ts";
import type { DeviceTensor } from "./graph/tensor.ts";
import { joinedParts } from "./model/generate-joined.ts";
import type { Numbers } from "./model/generate-weights.ts";
import { HALF_PREFIX } from "./model/halved.ts";
import { readPart } from "./model/safetensors.ts";
import { type Held, type HeldModel, HostHeld, type Memory, type Range } from "./model-memory.ts";
import { Masters, RoundedWeights } from "./rounded-weights.ts";
import type { DeviceBuffer } from "./runtime/buffer.ts";
import { deviceName } from "./runtime/device.ts";
import { DeviceFiles } from "./runtime/files.ts";
import { type OnDevice, Runtime } from "./runtime/runtime.ts";

export class DeviceMemory implements Memory, OnDevice {
  readonly runtime: Runtime;
  readonly createSession: OnDevice["createSession"];
  /** the frozen model, once for the sessions of policy, critic, reference and generation */
  readonly files: DeviceFiles;
  readonly #threads: number;
  /** whether graphs multiply in bfloat16 */
  readonly #narrow: boolean;
  /** whether adapters are trained */
  readonly #adapts: boolean;
  readonly offloads: boolean;
  /** room for the rounded weights of one model at a time; left out: each model has its own */
  readonly #room: RoundedWeights | undefined;
  #adamw: DeviceAdamW | undefined;
  #kernels: HalfKernels | undefined;
  /** the bfloat16 gradient of a micro-batch, of one model at a time */
  #part: DeviceHalves | undefined;

  /** @throws GraphError `device`, one line with the remedy, where the device cannot be used */
  constructor(
    {
      device = { kind: "cpu" },
      threads,
      compute,
      offloads = false,
      swaps = false,
    }: Pick<EngineOptions, "device" | "threads" | "compute" | "offloads" | "swaps">,
    model?: Adaptation,
  ) {
    const frozen = model?.frozen;
    this.runtime = new Runtime(device);
    const joined = frozen && joinedParts(frozen.mapped, frozen.lora);
    this.files = new DeviceFiles(this.runtime, frozen?.mapped.tensors ?? [], readPart, joined);
    // beside products in bfloat16 the other products (logits, generation) need no more than TF32
    const tf32 = compute === "tf32" || compute === "bfloat16";
    this.createSession = async (graph, options) =>
      this.runtime.createSession(
        graph,
        { tf32, ...options },
        await this.files.initializers(graph, options.externalDirectory),
      );
    this.#threads = threads;
    this.#narrow = compute === "bfloat16";
    if (this.#narrow && this.runtime.half !== "bfloat16") {
      const why = `${deviceName(device)} has compute capability below 8.0, which has no bfloat16`;
      throw new EngineError("compute", `compute is bfloat16, but ${why}; set it to float32`);
    }
    this.#adapts = frozen !== undefined;
    this.offloads = offloads;
    if (offloads && swaps)
      this.#room = this.#newRoom((["policy", "critic"] as const).map((role) => trainedShapes(model!, role)));
  }

  async hold(length: number, numbers?: Float32Array): Promise<Held> {
    return new DeviceHeld(this.runtime, await this.runtime.allocate(length), numbers);
  }

  async holdWeights(shapes: readonly ParameterShape[], numbers: Float32Array): Promise<Held> {
    if (!this.offloads) return this.hold(numbers.length, numbers);
    return new Masters(this.#room ?? this.#newRoom([shapes]), shapes, numbers, this.#room === undefined);
  }

  async holdMoment(length: number, numbers?: Float32Array): Promise<Held> {
    return this.offloads && numbers ? new HostHeld(numbers) : this.hold(length, numbers);
  }

  async halves(
    weights: Held,
    shapes: readonly ParameterShape[],
    wanted = this.#narrow,
  ): Promise<Record<string, DeviceTensor>> {
    return wanted && weights instanceof DeviceHeld ? weights.halves(() => this.#allocateHalves(shapes)) : {};
  }

  async part(shapes: readonly ParameterShape[]): Promise<DeviceHalves | undefined> {
    if (!this.#narrow) return undefined;
    if (!this.#part?.fits(shapes)) {
      this.#part?.release();
      this.#part = undefined; // frees the old buffer first, in case the allocation of the next one fails
      this.#part = await this.#allocateHalves(shapes);
    }
    return this.#part;
  }

  async squares(gradient: Held, range: Range): Promise<number> {
    return (await this.#optimiser()).squares(gradient.buffer!, range);
  }

  async adamw({ gradient, ...trained }: HeldModel, range: Range, scalars: AdamWScalars): Promise<void> {
    const optimiser = await this.#optimiser();
    const held = [trained.weights, trained.first, trained.second];
    const numbers = held.map((each) => (each instanceof DeviceHeld ? each.sent() : each.shared!));
    const [weights, first, second] = await Promise.all(numbers);
    await optimiser.step({ weights, gradient: gradient.buffer!, first, second }, range, scalars);
    for (const each of held) {
      if (each instanceof DeviceHeld) each.changedThere();
      else each.changedHere();
    }
  }

  piece(length: number): Float32Array {
    return this.runtime.piece(length);
  }

  async generatorWeights(weights: Held, shapes: readonly ParameterShape[]): Promise<Numbers> {
    const wide = (await weights.tensors(shapes)) as Record<string, DeviceTensor>;
    if (this.#adapts) return new Map(Object.entries(wide)); // generation reads the joined matrices
    const narrow = await this.halves(weights, shapes, this.runtime.device.kind === "cuda");
    return new Map(Object.entries({ ...wide, ...narrow }));
  }

  /** Call it after the models and sessions on the device were released. */
  async release(): Promise<void> {
    this.#part?.release();
    this.#room?.release();
    for (const kernel of Object.values(this.#kernels ?? {})) await kernel.release();
    await this.#adamw?.release();
    this.files.release();
    await this.runtime.release();
  }

  #newRoom(models: (readonly ParameterShape[])[]): RoundedWeights {
    return new RoundedWeights(this.runtime, (shapes) => this.#allocateHalves(shapes), models);
  }

  async #allocateHalves(shapes: readonly ParameterShape[]): Promise<DeviceHalves | undefined> {
    this.#kernels ??= await halfKernels(this.runtime, this.#threads);
    return allocateHalves(this.runtime, this.#kernels, shapes);
  }

  async #optimiser(): Promise<DeviceAdamW> {
    this.#adamw ??= await deviceAdamW(this.runtime, this.#threads, this.offloads, {
      ...(this.#narrow && { compute: "bfloat16", kernels: this.runtime.kernels }),
    });
    return this.#adamw;
  }
}

/** Numbers on a device, and the array in shared memory that they are copied from and to. */
class DeviceHeld implements Held {
  readonly buffer: DeviceBuffer;
  /** Grows with each change that a graph could see. */
  #version = 0;
  readonly #runtime: Runtime;
  readonly #here: Float32Array | undefined;
  /** bfloat16 copies of the matrices, and the version that they were made from */
  #halves: { numbers: DeviceHalves | undefined; version: number } | undefined;
  /** The newest copy: "here" in shared memory, "there" on the device, "both" if they are equal. */
  #newest: "here" | "there" | "both";

  constructor(runtime: Runtime, buffer: DeviceBuffer, numbers: Float32Array | undefined) {
    this.#runtime = runtime;
    this.buffer = buffer;
    this.#here = numbers;
    this.#newest = numbers ? "here" : "there";
  }

  get length(): number {
    return this.buffer.length;
  }

  /** The buffer on the device. Newer numbers of shared memory are copied into it first. */
  async sent(): Promise<DeviceBuffer> {
    if (this.#newest === "here") {
      await this.#runtime.write(this.buffer, this.#here!);
      this.#newest = "both";
      this.#version++;
    }
    return this.buffer;
  }

  async tensors(shapes: readonly ParameterShape[], prefix = ""): Promise<Record<string, DeviceTensor>> {
    return (await this.sent()).parameters(shapes, prefix);
  }

  /** bfloat16 copies of the newest numbers, by graphs' names. */
  async halves(allocate: () => Promise<DeviceHalves | undefined>): Promise<Record<string, DeviceTensor>> {
    const wide = await this.sent();
    this.#halves ??= { numbers: await allocate(), version: -1 };
    if (this.#halves.version !== this.#version) await this.#halves.numbers?.write(wide);
    this.#halves.version = this.#version;
    return this.#halves.numbers?.parameters(HALF_PREFIX) ?? {};
  }

  async zero(): Promise<void> {
    await this.#runtime.zero(this.buffer);
    this.changedThere();
  }

  changedHere(): void {
    this.#newest = "here";
  }

  changedThere(): void {
    this.#newest = "there";
    this.#version++;
  }

  async fetch(numbers: Float32Array, from = 0): Promise<void> {
    if (this.#newest !== "there") return;
    await this.#runtime.read(this.buffer, numbers, from);
    if (from === 0 && numbers.length === this.length && numbers.buffer === this.#here?.buffer) this.#newest = "both";
  }

  async put(numbers: Float32Array, from: number): Promise<void> {
    await this.#runtime.write(this.buffer, numbers, from);
    this.changedThere();
  }

  async takeOthers({ from, to }: Range): Promise<void> {
    await this.put(this.#here!.subarray(0, from), 0);
    await this.put(this.#here!.subarray(to), to);
    this.#newest = "both";
  }

  release(): void {
    this.#halves?.numbers?.release();
    this.buffer.release();
  }
}
