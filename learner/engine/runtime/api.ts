/**
 * The part of ONNX Runtime's C API that we call. Koffi calls it in the library of the package onnxruntime-node. We do not use that
 * package's own binding: it copies every output and cannot keep tensors on a device between runs (1.30 binds WebGPU buffers
 * alone). Every call that can fail throws ONNX Runtime's message.
 *
 * Source: onnxruntime_c_api.h. `OrtApi` is a struct of function pointers that is only ever appended to: the numbers are the indices of its
 * fields in version 24 of the API, and the library hands out the table for that version, as every newer one does.
 */
import "./telemetry.ts";
import path from "node:path";
import type { KoffiFunc } from "koffi";
import { GraphError } from "../graph/errors.ts";
import { onnxRuntimeFolder } from "./device.ts";
import { koffi } from "./koffi.ts";

/** The version of the header from which the numbers of the fields are. */
export const API_VERSION = 24;
const POINTER_BYTES = 8;

/** An address; 0: none. */
export type Pointer = bigint;

/** Address to which a function writes a pointer or a size. */
export type Out = BigUint64Array;

type Argument = Pointer | number | string | null | readonly string[] | ArrayBufferView;

/** [field of OrtApi, types of the parameters]; results are OrtStatus*, null for success. */
const CHECKED = {
  CreateEnv: [3, "int", "str", "void *"], // severity, name, -> OrtEnv
  CreateSessionFromArray: [8, "void *", "void *", "size_t", "void *", "void *"], // env, bytes, size, options, -> OrtSession
  CreateSessionOptions: [10, "void *"], // -> OrtSessionOptions
  EnableProfiling: [14, "void *", "str"], // options, prefix of the file's name
  DisableMemPattern: [17, "void *"],
  SetSessionLogSeverityLevel: [22, "void *", "int"],
  SetSessionGraphOptimizationLevel: [23, "void *", "int"],
  SetIntraOpNumThreads: [24, "void *", "int"],
  SetInterOpNumThreads: [25, "void *", "int"],
  CreateCustomOpDomain: [26, "str", "void *"], // name, -> OrtCustomOpDomain
  CustomOpDomain_Add: [27, "void *", "void *"], // domain, OrtCustomOp
  AddCustomOpDomain: [28, "void *", "void *"], // options, domain
  CreateRunOptions: [39, "void *"], // -> OrtRunOptions
  CreateTensorAsOrtValue: [48, "void *", "void *", "size_t", "int", "void *"], // allocator, shape, rank, type, -> OrtValue
  // memory info, data, bytes, shape, rank, type, -> OrtValue over that data
  CreateTensorWithDataAsOrtValue: [49, "void *", "void *", "size_t", "void *", "size_t", "int", "void *"],
  GetTensorMutableData: [51, "void *", "void *"],
  GetTensorElementType: [60, "void *", "void *"],
  GetDimensionsCount: [61, "void *", "void *"],
  GetDimensions: [62, "void *", "void *", "size_t"],
  GetTensorTypeAndShape: [65, "void *", "void *"], // value, -> OrtTensorTypeAndShapeInfo
  CreateMemoryInfo: [68, "str", "int", "int", "int", "void *"], // name, allocator, device, type, -> OrtMemoryInfo
  CreateCpuMemoryInfo: [69, "int", "int", "void *"],
  AllocatorFree: [76, "void *", "void *"],
  GetAllocatorWithDefaultOptions: [78, "void *"],
  KernelInfoGetAttribute_float: [85, "void *", "str", "void *"], // OrtKernelInfo, name, -> float32
  KernelInfoGetAttribute_int64: [86, "void *", "str", "void *"],
  KernelContext_GetInput: [90, "void *", "size_t", "void *"], // OrtKernelContext, number, -> OrtValue
  KernelContext_GetOutput: [91, "void *", "size_t", "void *", "size_t", "void *"], // context, number, shape, rank, -> OrtValue
  AddSessionConfigEntry: [130, "void *", "str", "str"],
  CreateAllocator: [131, "void *", "void *", "void *"], // session, memory info, -> OrtAllocator
  RunWithBinding: [133, "void *", "void *", "void *"], // session, options, binding
  CreateIoBinding: [134, "void *", "void *"],
  BindInput: [136, "void *", "str", "void *"],
  BindOutput: [137, "void *", "str", "void *"],
  BindOutputToDevice: [138, "void *", "str", "void *"],
  GetBoundOutputValues: [140, "void *", "void *", "void *", "void *"], // binding, allocator, -> values, -> count
  CreateAndRegisterAllocator: [144, "void *", "void *", "void *"], // env, memory info, arena's configuration
  AddInitializer: [150, "void *", "str", "void *"], // options, name, value over memory that is not its own
  AddRunConfigEntry: [165, "void *", "str", "str"],
  KernelContext_GetGPUComputeStream: [193, "void *", "void *"], // OrtKernelContext, -> cudaStream_t
  SynchronizeBoundInputs: [202, "void *"],
  SynchronizeBoundOutputs: [203, "void *"],
  SessionOptionsAppendExecutionProvider_CUDA_V2: [204, "void *", "void *"],
  CreateCUDAProviderOptions: [205, "void *"],
  UpdateCUDAProviderOptions: [206, "void *", "const char **", "const char **", "size_t"], // options, names, values, count
} as const satisfies Record<string, readonly [number, ...string[]]>;

/** Fields of OrtApi that take one pointer and cannot fail. */
const UNCHECKED = {
  ReleaseStatus: 93,
  ReleaseMemoryInfo: 94,
  ReleaseSession: 95,
  ReleaseValue: 96,
  ReleaseRunOptions: 97,
  ReleaseTensorTypeAndShapeInfo: 99,
  ReleaseSessionOptions: 100,
  ReleaseAllocator: 132,
  ReleaseIoBinding: 135,
  ClearBoundInputs: 141,
  ClearBoundOutputs: 142,
  ReleaseCUDAProviderOptions: 208,
} as const;
const CREATE_STATUS = 0;
const GET_ERROR_MESSAGE = 2;
const FAIL = 1; // ORT_FAIL

type Checked = { readonly [Name in keyof typeof CHECKED]: (...parameters: Argument[]) => void };
type Unchecked = { readonly [Name in keyof typeof UNCHECKED]: (pointer: Pointer) => void };

export interface OrtApi extends Checked, Unchecked {
  /** the library's version: "1.30.0" */
  readonly version: string;
  /** Returns the pointer that the call writes through its parameter `out`. */
  created(create: (out: Out) => void): Pointer;
  /** Returns the address of a typed array's numbers; the array must be alive for as long as the address is used. */
  addressOf(data: ArrayBufferView): Pointer;
  /** Returns an OrtStatus with this message, which a callback returns. */
  failure(message: string): Pointer;
  /** A copy of memory of this process. */
  copyOf(address: Pointer, bytes: number): ArrayBuffer;
}

const LIBRARIES: Partial<Record<NodeJS.Platform, string>> = {
  linux: "libonnxruntime.so.1",
  darwin: "libonnxruntime.1.dylib",
  win32: "onnxruntime.dll",
};

let opened: OrtApi | undefined;

const RTLD_LAZY = 1;

/**
 * Takes one more reference to a library, which is never released. Koffi unloads a library that nothing in its thread refers to, functions
 * from a table not counted, or whose thread ends; ONNX Runtime has threads of its own, which would run on without their code.
 */
function keepLoaded(native: ReturnType<typeof koffi>, file: string): void {
  if (process.platform === "win32") native.load("kernel32.dll").func("LoadLibraryA", "void *", ["str"])(file);
  else native.load(null).func("dlopen", "void *", ["str", "int"])(file, RTLD_LAZY);
}

/** The API, loaded once. @throws GraphError `device`, one line with the remedy, where koffi or the library cannot be loaded */
export function ortApi(): OrtApi {
  opened ??= load(path.join(onnxRuntimeFolder(), LIBRARIES[process.platform] ?? ""));
  return opened;
}

/** @throws GraphError `device` */
export function load(file: string, requireModule?: (name: string) => unknown): OrtApi {
  const refuse = (what: string, cause: unknown): never => {
    const [reason] = (cause as Error).message.split("\n");
    throw new GraphError(
      "device",
      `${what} cannot be loaded (${reason}); run \`npm ci\` again, with optional packages`,
      {
        cause,
      },
    );
  };
  let native: ReturnType<typeof koffi>;
  try {
    native = koffi(requireModule);
  } catch (cause) {
    return refuse("koffi, by which ONNX Runtime is called,", cause);
  }
  let base: Pointer;
  try {
    keepLoaded(native, file);
    base = native.load(file).func("OrtGetApiBase", "void *", [])();
  } catch (cause) {
    return refuse(file, cause);
  }
  /** address of the function to which field `index` of the struct at `table` points */
  const field = (table: Pointer, index: number, result: string, parameters: readonly string[]) =>
    native.decode(
      native.decode(table, index * POINTER_BYTES, "void *"),
      native.proto(result, [...parameters]),
    ) as KoffiFunc<(...parameters: unknown[]) => Pointer | string | null>;
  const version = field(base, 1, "str", [])() as string;
  const table = field(base, 0, "void *", ["uint32_t"])(API_VERSION) as Pointer | null;
  if (!table) throw new GraphError("device", `ONNX Runtime ${version} has no API of version ${API_VERSION}`);

  const message = field(table, GET_ERROR_MESSAGE, "str", ["void *"]);
  const createStatus = field(table, CREATE_STATUS, "void *", ["int", "str"]);
  const unchecked = Object.fromEntries(
    Object.entries(UNCHECKED).map(([name, index]) => [name, field(table, index, "void", ["void *"])]),
  ) as unknown as Unchecked;
  const checked = Object.fromEntries(
    Object.entries(CHECKED).map(([name, [index, ...parameters]]) => {
      const call = field(table, index, "void *", parameters);
      return [
        name,
        (...given: Argument[]) => {
          const status = call(...given) as Pointer | null;
          if (!status) return;
          const said = message(status) as string;
          unchecked.ReleaseStatus(status);
          throw new GraphError("session", `ONNX Runtime: ${said}`);
        },
      ];
    }),
  ) as unknown as Checked;
  return {
    version,
    ...unchecked,
    ...checked,
    created(create) {
      const out = new BigUint64Array(1);
      create(out);
      return out[0]!;
    },
    addressOf: (data) => native.address(data),
    failure: (text) => createStatus(FAIL, text) as Pointer,
    copyOf: (address, bytes) => (bytes > 0 ? native.view(address, bytes).slice(0) : new ArrayBuffer(0)),
  };
}
