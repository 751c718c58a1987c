/**
 * ONNX Runtime on one device, with tensors that stay there from one run to the next. Every call blocks its thread, as
 * ONNX Runtime does: use it in a worker. A CPU takes the same calls; its device memory is this process's memory.
 */

import { GraphError } from "../graph/errors.ts";
import { Graph } from "../graph/graph.ts";
import { type DeviceTensor, DTYPES, type DType, type Tensor, tensor } from "../graph/tensor.ts";
import { type OrtApi, ortApi, type Pointer } from "./api.ts";
import { DeviceBuffer } from "./buffer.ts";
import { CudaStream, computeCapability, ignoreOtherCaptures, type Pinned, pin, unpin } from "./cuda.ts";
import { customOperators } from "./custom-operators.ts";
import { checkCudaFiles, cudaFault, type Device, deviceName } from "./device.ts";
import { Kernels } from "./kernels.ts";
import { Session, type SessionOptions } from "./session.ts";
import { Staging } from "./staging.ts";

const WARNING = 2; // OrtLoggingLevel
/** OrtEnv of this process. It is never released: sessions of other threads and ONNX Runtime's own threads use it. */
let environment: Pointer | undefined;
const ARENA = 1; // OrtAllocatorType
const DEFAULT_MEMORY = 0; // OrtMemType
const BFLOAT16_CAPABILITY = 8;
/** The dim of a block's numbers: buffer.ts. */
const BLOCK = "block";

export class Runtime {
  readonly api: OrtApi;
  readonly device: Device;
  readonly environment: Pointer;
  /** OrtMemoryInfo of this process's memory */
  readonly hostMemory: Pointer;
  /** OrtMemoryInfo of the device's */
  readonly deviceMemory: Pointer;
  readonly #staging: Staging | undefined;
  #piece: { numbers: Float32Array; pinned?: Pinned } = { numbers: new Float32Array(0) };
  #stream: CudaStream | undefined;
  #kernels: Kernels | undefined;
  #operators: Pointer | undefined;
  #made: { copy: Session; fill: Session; allocator: Pointer } | undefined;

  /**
   * @param stages whether the inputs of a run go to the device in one copy; on a CPU for tests
   * @throws GraphError `device`, one line with the remedy, where CUDA's files or koffi are missing
   */
  constructor(device: Device, load = ortApi, stages = device.kind === "cuda") {
    if (device.kind === "cuda") checkCudaFiles(device);
    const api = load();
    if (device.kind === "cuda") ignoreOtherCaptures();
    this.api = api;
    this.device = device;
    this.#staging = stages ? new Staging(this) : undefined;
    environment ??= api.created((out) => api.CreateEnv(WARNING, "longrun", out));
    this.environment = environment;
    this.hostMemory = api.created((out) => api.CreateCpuMemoryInfo(ARENA, DEFAULT_MEMORY, out));
    this.deviceMemory =
      device.kind === "cuda"
        ? api.created((out) => api.CreateMemoryInfo("Cuda", ARENA, device.id, DEFAULT_MEMORY, out))
        : this.hostMemory;
    // sessions that are made from now on, in any thread, share an arena: otherwise each would keep the memory of its largest run
    if (device.kind === "cpu") api.CreateAndRegisterAllocator(this.environment, this.hostMemory, null);
  }

  /** The half precision that the device's matrix products have: before compute capability 8.0 a GPU has no bfloat16. */
  get half(): "bfloat16" | "float16" {
    if (this.device.kind === "cpu") return "bfloat16";
    void this.#forBuffers; // the provider is loaded
    return computeCapability(this.device.id) < BFLOAT16_CAPABILITY ? "float16" : "bfloat16";
  }

  /** Our own kernels, which graphs on this device may use; undefined on a CPU. */
  get kernels(): Kernels | undefined {
    if (this.device.kind === "cpu") return undefined;
    void this.#forBuffers; // the provider is loaded
    this.#kernels ??= new Kernels(this.device);
    return this.#kernels;
  }

  /** OrtCustomOpDomain of the operators that use the kernels. */
  get operators(): Pointer {
    this.#operators ??= customOperators(this.api, this.kernels!);
    return this.#operators;
  }

  /** The objects that buffers need. They use the allocator of the session `copy`; releasing it frees their memory. */
  get #forBuffers() {
    if (this.#made) return this.#made;
    const { api } = this;
    const copy = new Session(this, copyGraph(), { threads: 1 });
    const fill = new Session(this, zerosGraph(), { threads: 1 });
    const allocator = api.created((out) => api.CreateAllocator(copy.address, this.deviceMemory, out));
    this.#made = { copy, fill, allocator };
    return this.#made;
  }

  /** @param shared initializers that are on the device already, by name: views, which must outlive the session */
  async createSession(
    graph: Graph,
    options: SessionOptions,
    shared: Readonly<Record<string, DeviceTensor>> = {},
  ): Promise<Session> {
    return new Session(this, graph, options, shared, this.#staging);
  }

  /** float32 [length], uninitialised. @throws GraphError `device` where there is no memory left */
  reserve(length: number): DeviceBuffer {
    return new DeviceBuffer(this.api, this.deviceMemory, this.#newTensor([length]), length);
  }

  /** float32 [length], zeros. @throws GraphError `device` where there is no memory left */
  async allocate(length: number): Promise<DeviceBuffer> {
    const buffer = this.reserve(length);
    return written(buffer, this.zero(buffer));
  }

  #newTensor(shape: readonly number[]): Pointer {
    const { api } = this;
    const dims = BigInt64Array.from(shape, BigInt);
    try {
      return api.created((out) =>
        api.CreateTensorAsOrtValue(this.#forBuffers.allocator, dims, dims.length, DTYPES.float32.code, out),
      );
    } catch (cause) {
      throw this.fault(cause);
    }
  }

  /** A copy of numbers of any type, which replaces an earlier copy of the same length. @throws GraphError `device` where there is no memory left */
  async place(bytes: Uint8Array, earlier?: DeviceBuffer): Promise<DeviceBuffer> {
    const words = new Float32Array(Math.ceil(bytes.length / DTYPES.float32.bytes));
    new Uint8Array(words.buffer).set(bytes);
    if (earlier) {
      await this.write(earlier, words);
      return earlier;
    }
    const buffer = this.reserve(words.length);
    return written(buffer, this.write(buffer, words));
  }

  async zero(buffer: DeviceBuffer): Promise<void> {
    for (const { values } of buffer.blocks())
      await this.#forBuffers.fill.run({ size: tensor(BigInt64Array.of(BigInt(values.shape[0]!))) }, { zeros: values });
  }

  /** @param numbers float32, no more than `buffer` has from number `from` on */
  async write(buffer: DeviceBuffer, numbers: Float32Array, from = 0): Promise<void> {
    const part = (start: number, end: number) => numbers.subarray(start - from, end - from);
    await this.writeBlocks(buffer, from + numbers.length, part, from);
  }

  /** Writes the numbers up to `to`, exclusive, block by block, so that this process holds one block at a time. */
  async writeBlocks(
    buffer: DeviceBuffer,
    to: number,
    block: (start: number, end: number) => Float32Array,
    from = 0,
  ): Promise<void> {
    for (const { values, start, end } of buffer.blocks(to, from)) {
      const numbers = block(start, end);
      if (this.#onGpu) this.#copy(buffer.addressOf(start), this.api.addressOf(numbers), numbers.byteLength);
      else await this.#forBuffers.copy.run({ from: tensor(numbers) }, { to: values });
    }
  }

  /** Into `numbers`, float32, no more than `buffer` has from number `from` on. */
  async read(buffer: DeviceBuffer, numbers: Float32Array, from = 0): Promise<void> {
    for (const { values, start, end } of buffer.blocks(from + numbers.length, from)) {
      const part = numbers.subarray(start - from, end - from);
      if (this.#onGpu) this.#copy(this.api.addressOf(part), buffer.addressOf(start), part.byteLength);
      else await this.#forBuffers.copy.run({ from: values }, { to: tensor(part) });
    }
  }

  get #onGpu(): boolean {
    return this.device.kind === "cuda";
  }

  /** One copy between here and a GPU. A session would copy once more within the GPU, and keep memory for that. */
  #copy(to: Pointer, from: Pointer, bytes: number): void {
    if (bytes === 0) return;
    try {
      this.#stream ??= new CudaStream((this.device as Device & { kind: "cuda" }).id);
      this.#stream.copy(to, from, bytes);
      this.#stream.synchronise();
    } catch (cause) {
      throw this.fault(cause);
    }
  }

  /** Room in this process's memory for `length` numbers, until the next call; a GPU copies to it by itself. @throws GraphError `device` */
  piece(length: number): Float32Array {
    if (this.#piece.numbers.length < length) {
      if (this.#piece.pinned) unpin(this.#piece.pinned);
      this.#piece = { numbers: new Float32Array(0) }; // frees the old memory first, in case the allocation of the next one fails
      try {
        const pinned = this.#onGpu ? pin(DTYPES.float32.bytes * length) : undefined;
        const numbers = pinned ? new Float32Array(pinned.bytes.buffer, 0, length) : new Float32Array(length);
        this.#piece = { numbers, ...(pinned && { pinned }) };
      } catch (cause) {
        throw this.fault(cause);
      }
    }
    return this.#piece.numbers.subarray(0, length);
  }

  /** An OrtValue over the numbers of a tensor of this process, which must outlive it; the caller releases it. */
  wrap({ dtype, shape, data }: Tensor): Pointer {
    const { api } = this;
    const dims = BigInt64Array.from(shape, BigInt);
    const numbers = data.byteLength > 0 ? data : NOTHING; // no address may be 0
    return api.created((out) =>
      api.CreateTensorWithDataAsOrtValue(
        this.hostMemory,
        api.addressOf(numbers),
        data.byteLength,
        dims.length > 0 ? dims : null,
        dims.length,
        DTYPES[dtype].code,
        out,
      ),
    );
  }

  /** Returns the error that explains ONNX Runtime's error on this device, if its cause is known. */
  fault(cause: unknown): unknown {
    const told = this.device.kind === "cuda" ? cudaFault(this.device, (cause as Error).message) : undefined;
    return told === undefined ? cause : new GraphError("device", told, { cause });
  }

  /** Call it after all sessions and buffers were released. */
  async release(): Promise<void> {
    const { api } = this;
    this.#staging?.release();
    if (this.#piece.pinned) unpin(this.#piece.pinned);
    this.#stream?.release();
    if (this.#made) {
      api.ReleaseAllocator(this.#made.allocator);
      await this.#made.fill.release();
      await this.#made.copy.release();
    }
    if (this.deviceMemory !== this.hostMemory) api.ReleaseMemoryInfo(this.deviceMemory);
    api.ReleaseMemoryInfo(this.hostMemory);
  }
}

/** Returns the buffer when its numbers are written; frees it if they cannot be. */
async function written(buffer: DeviceBuffer, writing: Promise<void>): Promise<DeviceBuffer> {
  try {
    await writing;
  } catch (cause) {
    buffer.release();
    throw cause;
  }
  return buffer;
}

const NOTHING = new Uint8Array(64);

/** The device's own copy: ONNX Runtime moves its input there, or its output here. */
function copyGraph(): Graph {
  const graph = new Graph("copy");
  graph.output("to", graph.input("from", "float32", [BLOCK]));
  return graph;
}

function zerosGraph(): Graph {
  const graph = new Graph("zeros");
  const size = graph.input("size", "int64", [1]);
  const [zeros] = graph.op("Expand", [graph.constant([0]), size], {}, [{ dtype: "float32", shape: [BLOCK] }]);
  graph.output("zeros", zeros!);
  return graph;
}

let used: Device = { kind: "cpu" };

/** `createSession` of this thread makes sessions on it from now on. */
export function useDevice(wanted: Device): void {
  used = wanted;
}

/** The device that `useDevice` named, else the CPU. */
export const usedDevice = (): Device => used;

/** The runtimes of this thread by device. Each lives as long as the thread. */
const runtimes = new Map<string, Runtime>();

/** ONNX Runtime of this thread on the device that `useDevice` named, else on the CPU. @throws GraphError `device` */
export function usedRuntime(): Runtime {
  const runtime = runtimes.get(deviceName(used)) ?? new Runtime(used);
  runtimes.set(deviceName(used), runtime);
  return runtime;
}

/** Makes a session on that device. @throws GraphError `device` or `session` */
export async function createSession(graph: Graph, options: SessionOptions = {}): Promise<Session> {
  return usedRuntime().createSession(graph, options);
}

/** A part of a file. */
export interface FilePart {
  readonly file: string;
  /** bytes */
  readonly offset: number;
  /** bytes */
  readonly length: number;
}

/** A device on which tensors stay between runs: its memory, and sessions that use these tensors. */
export interface OnDevice {
  readonly runtime: Runtime;
  /** parts of files that lie there, some one after the other (files.ts) */
  readonly files?: {
    view(part: FilePart, from: number, dtype: DType, shape: readonly number[]): Promise<DeviceTensor>;
  };
  createSession(graph: Graph, options: SessionOptions): Promise<Session>;
}

/** Tests whether a device works: a kernel runs there, and numbers come back unchanged. @throws GraphError `device`, one line with the remedy */
export async function probeDevice(device: Device): Promise<void> {
  const [there, back] = [Float32Array.of(1, 2, 3), new Float32Array(3)];
  const cannot = (why: string, cause?: unknown) =>
    new GraphError("device", `${deviceName(device)} cannot be used: ${why}`, { cause });
  const runtime = new Runtime(device);
  try {
    const buffer = await runtime.allocate(there.length);
    await runtime.write(buffer, there);
    await runtime.read(buffer, back);
    buffer.release();
  } catch (cause) {
    if (cause instanceof GraphError && cause.code === "device") throw cause;
    throw cannot((cause as Error).message.split("\n")[0]!, cause);
  } finally {
    await runtime.release();
  }
  if (back.join() !== there.join()) throw cannot(`${there} went there, and ${back} came back`);
}
