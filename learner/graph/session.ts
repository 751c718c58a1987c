/**
 * ONNX Runtime in this thread. `create` and `run` block the thread that calls them, so sessions live in worker threads.
 * Inputs alias the caller's buffers; an output is copied unless the caller gives the buffer that it is to be written into.
 */
import "./telemetry.ts";
import os from "node:os";
import * as ort from "onnxruntime-node";
import { flushesDenormals } from "./denormals.ts";
import { checkCudaFiles, cudaFault, type Device, deviceName } from "./device.ts";
import { GraphError } from "./errors.ts";
import { Graph } from "./graph.ts";
import { serialise } from "./serialise.ts";
import { type DeviceTensor, type DType, type Tensor, type TypedArray, tensor } from "./tensor.ts";

export interface SessionOptions {
  /** threads within one operator; 0: as many as there are cores. More than the cores is slower, not faster */
  threads?: number;
  /**
   * Idle threads wait in a loop. Off: where other processes want the cores too, a PPO update on 2 of 2 cores took 4-5 s
   * instead of 8-18 s; alone on the machine the difference is small.
   */
  spinning?: boolean;
  /** reuse of memory between runs of the same shapes; off: 40 % less resident memory */
  memoryPattern?: boolean;
  /**
   * Products of float32 matrices round their operands to TF32 on a GPU, 10 bits of mantissa: several times faster. Default false,
   * where ONNX Runtime's own default is true. The Node.js binding cannot say so, ../device/session.ts can
   */
  tf32?: boolean;
  /** names of graph optimisers to leave out; those that undo recomputation are left out where a graph recomputes */
  disabledOptimizers?: readonly string[];
  /** the folder that external initializers are in */
  externalDirectory?: string;
  /** false: external weights stay memory-mapped and are shared by all sessions that use the file */
  prepacking?: boolean;
  /** where it runs; default: what `useDevice` said, else the CPU */
  device?: Device;
  graphOptimizationLevel?: "disabled" | "basic" | "extended" | "all";
  /** write a profile of every run to files that start with this */
  profilePrefix?: string;
}

/**
 * The first merges what is computed twice with what is still there; the second resolves the edges of `after` (checkpoint.ts).
 * The third takes away the copies that make outputs, after which the gradients of all weights are computed last, and what
 * they need of every layer lives until then.
 */
const RECOMPUTING = ["CommonSubexpressionElimination", "ConstantFolding", "EliminateIdentity"];

export type Feeds = Record<string, Tensor>;

/** What runs a graph: a Session, or one whose tensors can stay on the device (../device/session.ts). */
export interface GraphSession {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  run(
    feeds: Readonly<Record<string, Tensor | DeviceTensor>>,
    outputs?: readonly string[] | Readonly<Record<string, Tensor | DeviceTensor | null>>,
  ): Promise<Record<string, Tensor>>;
  release(): Promise<void>;
}

/** Float32 numbers that runs read and write, as many as are needed, here or where the graphs run. */
export interface Numbers {
  /** The first of them as a tensor, with room for all of its own; what is there beyond those that were set is anything. */
  tensor(shape: readonly number[]): Tensor | DeviceTensor;
  /** The first `length` of them, not to be changed. */
  read(length: number): Promise<Float32Array>;
  /** Where `length` numbers can be put together before they are set. */
  scratch(length: number): Float32Array;
  set(numbers: Float32Array): Promise<void>;
  release(): void;
}

/** What a device has that this process's memory has not: sessions, and numbers that stay there between runs. */
export interface OnDevice {
  createSession: CreateSession;
  /** @param capacity as many as there will be, for which there is room at once */
  numbers(capacity?: number): Numbers;
}

export type CreateSession = (graph: Graph, options: SessionOptions) => Promise<GraphSession>;

let used: Device = { kind: "cpu" };

/** All sessions that this thread makes from now on are on it. */
export function useDevice(wanted: Device): void {
  used = wanted;
}

/** What `useDevice` said; else the CPU. */
export const usedDevice = (): Device => used;

export class Session {
  readonly #session: ort.InferenceSession;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];

  private constructor(session: ort.InferenceSession) {
    this.#session = session;
    this.inputNames = session.inputNames;
    this.outputNames = session.outputNames;
  }

  /** A session of `graph`, or of the bytes of an ONNX model. */
  static async create(graph: Graph | Uint8Array, options: SessionOptions = {}): Promise<Session> {
    const bytes = graph instanceof Uint8Array ? graph : serialise(graph);
    const device = options.device ?? usedDevice();
    if (device.kind === "cuda") checkCudaFiles(device);
    const extra = configuration(graph, options);
    try {
      return new Session(
        await ort.InferenceSession.create(bytes, {
          executionProviders: executionProviders(device),
          executionMode: "sequential",
          intraOpNumThreads: intraOpThreads(options),
          interOpNumThreads: 1,
          enableMemPattern: options.memoryPattern ?? false,
          enableCpuMemArena: true,
          graphOptimizationLevel: options.graphOptimizationLevel ?? "all",
          logSeverityLevel: 3,
          ...(options.profilePrefix && { enableProfiling: true, profileFilePrefix: options.profilePrefix }),
          extra,
        }),
      );
    } catch (cause) {
      const fault = device.kind === "cuda" ? cudaFault(device, (cause as Error).message) : undefined;
      if (fault !== undefined) throw new GraphError("device", fault, { cause });
      throw new GraphError("session", `ONNX Runtime refused the model: ${(cause as Error).message}`, { cause });
    }
  }

  /**
   * Runs the model. `outputs`: the names wanted (all when left out); a tensor in place of `null` is written into in place.
   */
  async run(
    feeds: Feeds,
    outputs: readonly string[] | Record<string, Tensor | null> = this.outputNames,
  ): Promise<Record<string, Tensor>> {
    const given: Record<string, ort.Tensor> = {};
    for (const name of this.inputNames) {
      const feed = feeds[name];
      if (!feed) throw new GraphError("feed", `run: the input '${name}' is missing`);
      given[name] = toOrt(feed);
    }
    const fetches: Record<string, ort.Tensor | null> = {};
    if (Array.isArray(outputs)) for (const name of outputs) fetches[name] = null;
    else
      for (const [name, target] of Object.entries(outputs as Record<string, Tensor | null>))
        fetches[name] = target && toOrt(target);
    let results: ort.InferenceSession.OnnxValueMapType;
    try {
      results = await this.#session.run(given, fetches);
    } catch (cause) {
      throw new GraphError("session", `ONNX Runtime: ${(cause as Error).message}`, { cause });
    }
    return Object.fromEntries(
      Object.entries(results).map(([name, value]) => {
        const result = value as ort.Tensor;
        return [name, { dtype: result.type as DType, shape: result.dims, data: result.data as TypedArray }];
      }),
    );
  }

  /** Writes the profile that `profilePrefix` asked for. */
  endProfiling(): void {
    this.#session.endProfiling();
  }

  /** Frees the native session. */
  async release(): Promise<void> {
    await this.#session.release();
  }
}

/** ONNX Runtime's configuration entries, by section: `session.disable_prepacking` is `disable_prepacking` of `session`. */
export function configuration(
  graph: Graph | Uint8Array,
  options: SessionOptions,
): Record<string, Record<string, string>> {
  const session: Record<string, string> = { "intra_op.allow_spinning": options.spinning ? "1" : "0" };
  if (flushesDenormals()) session.set_denormal_as_zero = "1";
  if (options.externalDirectory) session.model_external_initializers_file_folder_path = options.externalDirectory;
  if (options.prepacking === false) session.disable_prepacking = "1";
  const graphNeeds = graph instanceof Uint8Array || !graph.model.recomputes ? [] : RECOMPUTING;
  const disabledOptimizers = [...new Set([...(options.disabledOptimizers ?? []), ...graphNeeds])];
  if (disabledOptimizers.length === 0) return { session };
  return { session, optimization: { disable_specified_optimizers: disabledOptimizers.join(";") } };
}

/** ONNX Runtime's own 0 pins threads to cores. */
export const intraOpThreads = ({ threads }: SessionOptions): number => threads || os.availableParallelism();

/** @throws GraphError `device` where no session can be made or run on it, one line with the remedy */
export async function probeDevice(device: Device): Promise<void> {
  const graph = new Graph("probe");
  const x = graph.input("x", "float32", [1]);
  graph.output("y", graph.op("Add", [x, x], {}, [x])[0]!);
  try {
    const session = await Session.create(graph, { device, threads: 1 });
    await session.run({ x: tensor(Float32Array.of(1)) });
    await session.release();
  } catch (cause) {
    if (cause instanceof GraphError && cause.code === "device") throw cause;
    const [line] = (cause as Error).message.split("\n");
    throw new GraphError("device", `${deviceName(device)} cannot be used: ${line}`, { cause });
  }
}

/** What CUDA has no kernel for runs on the CPU; the binding takes the device's number and no other option of CUDA's. */
export function executionProviders(device: Device): ort.InferenceSession.ExecutionProviderConfig[] {
  return device.kind === "cuda" ? [{ name: "cuda", deviceId: device.id }, "cpu"] : ["cpu"];
}

function toOrt(tensor: Tensor): ort.Tensor {
  return new ort.Tensor(tensor.dtype as "float32", tensor.data as Float32Array, tensor.shape);
}
