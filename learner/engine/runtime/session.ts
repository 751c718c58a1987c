/** A graph that ONNX Runtime runs on one device, by its C API. Inputs and outputs may be tensors of this process or on the device. */
import os from "node:os";
import { threadId } from "node:worker_threads";
import { GraphError } from "../graph/errors.ts";
import type { Graph } from "../graph/graph.ts";
import { DOMAIN } from "../graph/operators.ts";
import { serialise, usesDomain } from "../graph/serialise.ts";
import { type DeviceTensor, DTYPES, type DType, type Tensor, type TypedArray } from "../graph/tensor.ts";
import type { OrtApi, Pointer } from "./api.ts";
import { Binding, type BoundSession } from "./binding.ts";
import type { DeviceBuffer } from "./buffer.ts";
import { Capture } from "./capture.ts";
import { flushesDenormals } from "./denormals.ts";
import type { Device } from "./device.ts";
import { type Staging, stageable } from "./staging.ts";

export interface SessionOptions {
  /** threads within one operator; 0: as many as there are cores. More than the cores is slower, not faster */
  threads?: number;
  /**
   * Products of float32 matrices round their operands to TF32 on a GPU, 10 bits of mantissa: several times faster. Default false,
   * where ONNX Runtime's own default is true
   */
  tf32?: boolean;
  /** names of graph optimisers to leave out; where a graph recomputes, optimisers that undo recomputation are left out anyway */
  disabledOptimizers?: readonly string[];
  /** the folder that external initializers are in */
  externalDirectory?: string;
  /** false: external weights stay memory-mapped and are shared by all sessions that use the file */
  prepacking?: boolean;
  graphOptimizationLevel?: "disabled" | "basic" | "extended" | "all";
  /** the runs of `bind` are CUDA graphs on a GPU (capture.ts). Such a session has a stream of its own */
  captures?: boolean;
  /** write a profile of every run to files that start with this */
  profilePrefix?: string;
}

/** GraphOptimizationLevel */
const LEVELS = { disabled: 0, basic: 1, extended: 2, all: 99 } as const;
const ERRORS = 3; // OrtLoggingLevel
const POINTER_BYTES = 8;

/** Options of the CUDA provider. Its arena grows by the requested size, not to twice its size: buffers are large and stay. */
export const cudaOptions = (
  device: number,
  { tf32 = false }: SessionOptions,
  capture?: Capture,
): Record<string, string> => ({
  device_id: String(device),
  arena_extend_strategy: "kSameAsRequested",
  use_tf32: tf32 ? "1" : "0",
  ...capture?.entries,
});

type Tensors = Readonly<Record<string, Tensor>>;
type Given = Readonly<Record<string, Tensor | DeviceTensor>>;
type Wanted = readonly string[] | Readonly<Record<string, Tensor | DeviceTensor | null>>;

/** ONNX Runtime on the device that a session is for (runtime.ts). */
export interface Host {
  readonly api: OrtApi;
  readonly device: Device;
  readonly environment: Pointer;
  /** OrtMemoryInfo of this process's memory */
  readonly hostMemory: Pointer;
  /** An OrtValue over the numbers of a tensor of this process, which must outlive it; the caller releases it. */
  wrap(tensor: Tensor): Pointer;
  /** float32 [length] on the device, of which nothing is known */
  reserve(length: number): DeviceBuffer;
  /** OrtCustomOpDomain of our operators, which a graph that asked for their kernels may have. */
  readonly operators: Pointer;
  /** The error that explains ONNX Runtime's error on this device, if its cause is known. */
  fault(cause: unknown): unknown;
}

export class Session {
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly #host: Host;
  readonly #staging: Staging | undefined;
  readonly #stageable: ReadonlySet<string>;
  readonly #capture: Capture | undefined;
  readonly #bindings = new Set<Binding>();
  readonly #create: () => Pointer;
  /** OrtRunOptions of a run after which memory is given back */
  #givingBack: Pointer | undefined;
  /** an OrtSession and the OrtIoBinding of `run` */
  #open: { session: Pointer; binding: Pointer } | undefined;

  /**
   * @param staging by which inputs go to the device together; left out: each by itself
   * @throws GraphError `device` for a fault of the GPU, or `session`
   */
  constructor(
    host: Host,
    graph: Graph,
    options: SessionOptions = {},
    shared: Readonly<Record<string, DeviceTensor>> = {},
    staging?: Staging,
  ) {
    this.#host = host;
    this.#staging = staging;
    this.#stageable = staging ? stageable(graph) : new Set();
    this.inputNames = graph.inputs.map(({ name }) => name);
    this.outputNames = graph.outputs.map(({ name }) => name);
    const { api, device } = host;
    this.#capture = options.captures && device.kind === "cuda" ? new Capture(api, device.id, graph.name) : undefined;
    this.#create = () => {
      const bytes = serialise(graph);
      const settings = api.created((out) => api.CreateSessionOptions(out));
      try {
        configure(settings, host, graph, options, this.#capture);
        if (usesDomain(graph, DOMAIN)) api.AddCustomOpDomain(settings, host.operators);
        for (const [name, { address }] of Object.entries(shared)) api.AddInitializer(settings, name, address);
        return api.created((out) => api.CreateSessionFromArray(host.environment, bytes, bytes.length, settings, out));
      } finally {
        api.ReleaseSessionOptions(settings);
      }
    };
    try {
      this.#opened();
    } catch (cause) {
      this.#capture?.release();
      throw host.fault(cause);
    }
  }

  /** address of the OrtSession */
  get address(): Pointer {
    return this.#opened().session;
  }

  #opened() {
    if (this.#open) return this.#open;
    const { api } = this.#host;
    let session: Pointer;
    try {
      session = this.#create();
    } catch (cause) {
      if (!this.#capture?.on || this.#host.fault(cause) !== cause) throw cause;
      this.#capture.stop((cause as Error).message); // such as a node that has no kernel on CUDA
      session = this.#create();
    }
    this.#open = { session, binding: api.created((out) => api.CreateIoBinding(session, out)) };
    return this.#open;
  }

  #close(): void {
    for (const binding of this.#bindings) binding.unbind();
    this.#capture?.forget();
    if (this.#open) {
      this.#host.api.ReleaseIoBinding(this.#open.binding);
      this.#host.api.ReleaseSession(this.#open.session);
    }
    this.#open = undefined;
    if (this.#givingBack !== undefined) this.#host.api.ReleaseRunOptions(this.#givingBack);
    this.#givingBack = undefined;
  }

  /**
   * Runs the graph. Inputs in this process's memory are copied to the device; a DeviceTensor is read or written in place. If a
   * DeviceTensor is both an input and an output, no node that may run after the write may read it.
   *
   * @param givesBack on a GPU the session keeps no memory for its next run: others run before
   * @returns the outputs that are in this process's memory
   */
  async run(
    feeds: Given,
    outputs: Wanted = this.outputNames,
    { givesBack = false } = {},
  ): Promise<Record<string, Tensor>> {
    const { api } = this.#host;
    const targets: Record<string, Tensor | DeviceTensor | null> = Array.isArray(outputs)
      ? Object.fromEntries(outputs.map((name: string) => [name, null]))
      : (outputs as Record<string, Tensor | DeviceTensor | null>);
    const given = Object.fromEntries(
      this.inputNames.map((name) => {
        const feed = feeds[name];
        if (!feed) throw new GraphError("feed", `run: the input '${name}' is missing`);
        return [name, feed] as const;
      }),
    );
    if (this.#staging) Object.assign(given, await this.#staging.send(given, this.#stageable));
    const wrapped: Pointer[] = [];
    const { session, binding } = this.#opened();
    const pinned: (Tensor | DeviceTensor)[] = []; // native code has their addresses: they must not be collected
    const ortValue = (value: Tensor | DeviceTensor): Pointer => {
      pinned.push(value);
      if ("address" in value) return value.address;
      wrapped.push(this.#host.wrap(value));
      return wrapped.at(-1)!;
    };
    try {
      for (const [name, feed] of Object.entries(given)) api.BindInput(binding, name, ortValue(feed));
      for (const [name, target] of Object.entries(targets)) {
        if (target) api.BindOutput(binding, name, ortValue(target));
        else api.BindOutputToDevice(binding, name, this.#host.hostMemory);
      }
      api.SynchronizeBoundInputs(binding);
      const options = givesBack ? this.#giveBack() : null;
      api.RunWithBinding(session, options ?? this.#capture?.uncaptured ?? null, binding);
      api.SynchronizeBoundOutputs(binding);
      return this.#results(binding, targets);
    } catch (cause) {
      throw this.#host.fault(cause);
    } finally {
      api.ClearBoundInputs(binding);
      api.ClearBoundOutputs(binding);
      for (const value of wrapped) api.ReleaseValue(value);
      pinned.length = 0;
    }
  }

  #giveBack(): Pointer | undefined {
    const { api, device } = this.#host;
    if (device.kind === "cpu" || this.#capture) return undefined;
    if (this.#givingBack === undefined) {
      this.#givingBack = api.created((out) => api.CreateRunOptions(out));
      api.AddRunConfigEntry(this.#givingBack, "memory.enable_memory_arena_shrinkage", `gpu:${device.id}`);
    }
    return this.#givingBack;
  }

  /**
   * Inputs and outputs for many runs, bound once: a run is then one call of ONNX Runtime's. Tensors of this process keep their typed
   * arrays; the caller changes the arrays of `changing` between runs.
   */
  bind(feeds: Given, outputs: Readonly<Record<string, Tensor | DeviceTensor>>, changing: Tensors): Binding {
    const binding = new Binding(this.#bound(), { feeds, changing, outputs });
    this.#bindings.add(binding);
    return binding;
  }

  #bound(): BoundSession {
    const opened = () => this.address;
    return {
      api: this.#host.api,
      inputNames: this.inputNames,
      outputNames: this.outputNames,
      capture: this.#capture,
      stageable: this.#stageable,
      get address() {
        return opened();
      },
      wrap: (tensor) => this.#host.wrap(tensor),
      reserve: (length) => this.#host.reserve(length),
      fault: (cause) => this.#host.fault(cause),
      captured: (run) => this.#captured(run),
      forget: (binding) => this.#bindings.delete(binding),
    };
  }

  /** A run that cannot be captured runs without a CUDA graph, like all later ones. If it fails then, too, later runs are still captured. */
  #captured(run: () => void): void {
    const capture = this.#capture;
    if (capture?.full) this.#close();
    try {
      run();
    } catch (cause) {
      if (!capture?.on) throw cause;
      this.#close(); // a capture that failed leaves the OrtSession in the middle of a run
      capture.without(() => {
        try {
          run();
        } catch (again) {
          this.#close();
          throw again;
        }
      });
      capture.stop((cause as Error).message);
    }
  }

  #results(binding: Pointer, targets: Readonly<Record<string, Tensor | DeviceTensor | null>>): Record<string, Tensor> {
    const { api } = this.#host;
    const allocator = api.created((out) => api.GetAllocatorWithDefaultOptions(out));
    const [values, count] = [new BigUint64Array(1), new BigUint64Array(1)];
    api.GetBoundOutputValues(binding, allocator, values, count);
    const list = values[0]!;
    const addresses = new BigUint64Array(api.copyOf(list, POINTER_BYTES * Number(count[0])));
    if (list) api.AllocatorFree(allocator, list);
    const results: Record<string, Tensor> = {};
    for (const [i, [name, target]] of Object.entries(targets).entries()) {
      if (target === null) results[name] = hostTensor(api, addresses[i]!);
      else if (!("address" in target)) results[name] = target;
      api.ReleaseValue(addresses[i]!);
    }
    return results;
  }

  async release(): Promise<void> {
    this.#close();
    this.#capture?.release();
  }
}

/**
 * Prefix of the profiles that sessions write when they are released: which node ran on which device, and for how long. The variable
 * is for measurements; it makes runs slower.
 */
const PROFILE = process.env.LONGRUN_PROFILE;
let profiles = 0;

function configure(
  settings: Pointer,
  { api, device }: Host,
  graph: Graph,
  options: SessionOptions,
  capture: Capture | undefined,
): void {
  api.SetIntraOpNumThreads(settings, intraOpThreads(options));
  api.SetInterOpNumThreads(settings, 1);
  // Without reuse of memory between runs of the same shapes 40 % less memory is resident.
  api.DisableMemPattern(settings);
  api.SetSessionLogSeverityLevel(settings, ERRORS);
  const profile = options.profilePrefix ?? (PROFILE && `${PROFILE}-${threadId}-${++profiles}-${graph.name}`);
  if (profile) api.EnableProfiling(settings, profile);
  api.SetSessionGraphOptimizationLevel(settings, LEVELS[options.graphOptimizationLevel ?? "all"]);
  for (const [section, entries] of Object.entries(configuration(graph, options)))
    for (const [key, value] of Object.entries(entries)) api.AddSessionConfigEntry(settings, `${section}.${key}`, value);
  if (device.kind === "cpu") api.AddSessionConfigEntry(settings, "session.use_env_allocators", "1");
  if (device.kind === "cuda") appendCuda(api, settings, cudaOptions(device.id, options, capture));
}

/**
 * The first merges the second computation of a value with the first; the second resolves the edges of `after` (checkpoint.ts).
 * The third removes the copies that make outputs. Then the gradients of all weights are computed last, and their inputs from every layer
 * live until then.
 */
const RECOMPUTING = ["CommonSubexpressionElimination", "ConstantFolding", "EliminateIdentity"];

/** ONNX Runtime's configuration entries, by section: `session.disable_prepacking` is `disable_prepacking` of `session`. */
function configuration(graph: Graph, options: SessionOptions): Record<string, Record<string, string>> {
  // Idle threads do not wait in a loop: a PPO update on two cores that other processes wanted, too, took 4-5 s instead of 8-18 s.
  const session: Record<string, string> = { "intra_op.allow_spinning": "0" };
  if (flushesDenormals()) session.set_denormal_as_zero = "1";
  if (options.externalDirectory) session.model_external_initializers_file_folder_path = options.externalDirectory;
  if (options.prepacking === false) session.disable_prepacking = "1";
  const graphNeeds = !graph.model.recomputes ? [] : RECOMPUTING;
  const disabledOptimizers = [...new Set([...(options.disabledOptimizers ?? []), ...graphNeeds])];
  if (disabledOptimizers.length === 0) return { session };
  return { session, optimization: { disable_specified_optimizers: disabledOptimizers.join(";") } };
}

/** ONNX Runtime's own 0 pins threads to cores. */
const intraOpThreads = ({ threads }: SessionOptions): number => threads || os.availableParallelism();

function appendCuda(api: OrtApi, settings: Pointer, entries: Readonly<Record<string, string>>): void {
  const cuda = api.created((out) => api.CreateCUDAProviderOptions(out));
  try {
    api.UpdateCUDAProviderOptions(cuda, Object.keys(entries), Object.values(entries), Object.keys(entries).length);
    api.SessionOptionsAppendExecutionProvider_CUDA_V2(settings, cuda);
  } finally {
    api.ReleaseCUDAProviderOptions(cuda);
  }
}

const ARRAYS: Partial<Record<DType, new (buffer: ArrayBuffer) => TypedArray>> = {
  float32: Float32Array,
  float64: Float64Array,
  int32: Int32Array,
  int64: BigInt64Array,
  bool: Uint8Array,
  uint8: Uint8Array,
};

/** A copy of an OrtValue in this process's memory. */
function hostTensor(api: OrtApi, value: Pointer): Tensor {
  const info = api.created((out) => api.GetTensorTypeAndShape(value, out));
  const rank = Number(api.created((out) => api.GetDimensionsCount(info, out)));
  const dims = new BigInt64Array(rank);
  if (rank > 0) api.GetDimensions(info, dims, rank);
  const code = Number(api.created((out) => api.GetTensorElementType(info, out)));
  api.ReleaseTensorTypeAndShapeInfo(info);
  const shape = Array.from(dims, Number);
  const [dtype, { bytes }] = Object.entries(DTYPES).find(([, it]) => it.code === code) as [DType, { bytes: number }];
  const make = ARRAYS[dtype];
  if (!make) throw new GraphError("dtype", `an output is ${dtype}, which cannot leave the graph; cast it there`);
  const data = api.created((out) => api.GetTensorMutableData(value, out));
  return { dtype, shape, data: new make(api.copyOf(data, bytes * shape.reduce((count, dim) => count * dim, 1))) };
}
