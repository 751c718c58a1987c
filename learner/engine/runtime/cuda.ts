/**
 * Functions of CUDA that ONNX Runtime's C API does not offer: streams, copies on a stream, pinned host memory, and properties of a GPU.
 * They are in the CUDA runtime library that ONNX Runtime's provider has loaded.
 */
import type { KoffiFunc } from "koffi";
import { GraphError } from "../graph/errors.ts";
import type { Pointer } from "./api.ts";
import { koffi } from "./koffi.ts";

/** The provider loads the library by the same name, so the dynamic linker gives both the same one. */
const LIBRARY = "libcudart.so.13";

/** Types of the parameters; results are cudaError_t, 0 for success. */
const FUNCTIONS = {
  cudaSetDevice: ["int"],
  cudaDeviceGetAttribute: ["void *", "int", "int"], // -> int, cudaDeviceAttr, device
  cudaHostAlloc: ["void *", "size_t", "uint"],
  cudaFreeHost: ["void *"],
  cudaThreadExchangeStreamCaptureMode: ["void *"], // cudaStreamCaptureMode, <- -> int
  cudaStreamCreateWithFlags: ["void *", "uint"],
  cudaStreamDestroy: ["void *"],
  cudaStreamSynchronize: ["void *"],
  cudaMemcpyAsync: ["void *", "void *", "size_t", "int", "void *"], // to, from, bytes, kind, stream
  // -> library, PTX, options and their values
  cudaLibraryLoadData: ["void *", "void *", "void *", "void *", "uint", "void *", "void *", "uint"],
  cudaLibraryGetKernel: ["void *", "void *", "str"], // -> kernel, library, name
  cudaKernelSetAttributeForDevice: ["void *", "int", "int", "int"], // kernel, attribute, value, device
  cudaFuncGetAttributes: ["void *", "void *"], // -> cudaFuncAttributes, kernel
  cudaLaunchKernelExC: ["void *", "void *", "void *"], // cudaLaunchConfig_t, kernel, addresses of the arguments
} as const satisfies Record<string, readonly string[]>;

const NON_BLOCKING = 1; // cudaStreamNonBlocking
const OF_THIS_THREAD = 1; // cudaStreamCaptureModeThreadLocal
const BY_ADDRESS = 4; // cudaMemcpyDefault
/** cudaDevAttrComputeCapabilityMajor and Minor */
const CAPABILITY = [75, 76] as const;
const MOST_SHARED = 97; // cudaDevAttrMaxSharedMemoryPerBlockOptin
const SHARED = 8; // cudaFuncAttributeMaxDynamicSharedMemorySize
/** Room for a cudaFuncAttributes, bytes. */
const ATTRIBUTES_BYTES = 512;

type Functions = {
  readonly [Name in keyof typeof FUNCTIONS]: KoffiFunc<(...parameters: unknown[]) => number>;
} & {
  readonly cudaGetErrorString: KoffiFunc<(error: number) => string>;
  view(address: Pointer, bytes: number): ArrayBuffer;
  address(data: ArrayBufferView): Pointer;
};

let opened: Functions | undefined;

/** @throws GraphError `device` where ONNX Runtime has loaded no such library, and none is found */
function functions(): Functions {
  if (opened) return opened;
  const native = koffi();
  try {
    const library = native.load(LIBRARY);
    const entries = Object.entries(FUNCTIONS).map(([name, types]) => [name, library.func(name, "int", [...types])]);
    opened = {
      ...(Object.fromEntries(entries) as Pick<Functions, keyof typeof FUNCTIONS>),
      cudaGetErrorString: library.func("cudaGetErrorString", "str", ["int"]),
      view: (address, bytes) => native.view(address, bytes),
      address: (data) => native.address(data),
    };
    return opened;
  } catch (cause) {
    const [reason] = (cause as Error).message.split("\n");
    throw new GraphError("device", `${LIBRARY} cannot be loaded (${reason}); install CUDA 13`, { cause });
  }
}

/**
 * Lets this thread work while another one records a CUDA graph. ONNX Runtime records in CUDA's global mode, in which an allocation by any
 * other thread of the process, on whichever GPU, fails and spoils the recording. If the library is missing, the first session reports it.
 */
export function ignoreOtherCaptures(): void {
  let cuda: Functions;
  try {
    cuda = functions();
  } catch {
    return;
  }
  cuda.cudaThreadExchangeStreamCaptureMode(Int32Array.of(OF_THIS_THREAD));
}

/** Pinned memory of this process, which a GPU reads and writes itself. */
export interface Pinned {
  readonly address: Pointer;
  readonly bytes: Uint8Array;
}

/** A stream of one GPU. Work on it is done in its order; other streams do not wait for it. */
export class CudaStream {
  readonly address: Pointer;

  /** @throws GraphError `device` */
  constructor(device: number) {
    call("cudaSetDevice", device);
    this.address = written((out) => call("cudaStreamCreateWithFlags", out, NON_BLOCKING));
  }

  /** Copies `bytes` between host and device. Returns before the copy is done if the host memory is pinned. */
  copy(to: Pointer, from: Pointer, bytes: number): void {
    copyOn(this.address, to, from, bytes);
  }

  /** Waits until all work of the stream is done. */
  synchronise(): void {
    call("cudaStreamSynchronize", this.address);
  }

  release(): void {
    call("cudaStreamDestroy", this.address);
  }
}

/** Copies `bytes` in the order of a stream. */
export function copyOn(stream: Pointer, to: Pointer, from: Pointer, bytes: number): void {
  call("cudaMemcpyAsync", to, from, bytes, BY_ADDRESS, stream);
}

export function pin(bytes: number): Pinned {
  const address = written((out) => call("cudaHostAlloc", out, bytes, 0));
  return { address, bytes: new Uint8Array(functions().view(address, bytes)) };
}

export function unpin({ address }: Pinned): void {
  call("cudaFreeHost", address);
}

/** A GPU's compute capability: 7.5, 8, 9. @throws GraphError `device` */
export function computeCapability(device: number): number {
  const [major, minor] = CAPABILITY.map((attribute) => attributeOf(device, attribute));
  return major! + minor! / 10;
}

/** Shared memory that a block of threads may have on a GPU, bytes. @throws GraphError `device` */
export const mostSharedBytes = (device: number): number => attributeOf(device, MOST_SHARED);

function attributeOf(device: number, attribute: number): number {
  const value = new Int32Array(1);
  call("cudaDeviceGetAttribute", value, attribute, device);
  return value[0]!;
}

/**
 * Returns a kernel of PTX, which the driver has compiled for the GPU: nothing is left to do in a launch, which a stream may capture.
 *
 * @param shared bytes of shared memory of a launch. @throws GraphError
 */
export function loadKernel(
  text: Uint8Array,
  name: string,
  { device, shared }: { device: number; shared: number },
): Pointer {
  call("cudaSetDevice", device);
  const image = new Uint8Array(text.length + 1); // ends with 0
  image.set(text);
  const library = written((out) => call("cudaLibraryLoadData", out, image, null, null, 0, null, null, 0));
  const kernel = written((out) => call("cudaLibraryGetKernel", out, library, name));
  if (shared > 0) call("cudaKernelSetAttributeForDevice", kernel, SHARED, shared, device);
  call("cudaFuncGetAttributes", new Uint8Array(ATTRIBUTES_BYTES), kernel); // the driver loads it now, not with its first launch
  return kernel;
}

/**
 * Returns a function that launches a kernel as `configuration`, a cudaLaunchConfig_t, and `slots`, its arguments, say at that time.
 */
export function launchKernel(
  kernel: Pointer,
  configuration: Uint8Array,
  slots: BigUint64Array,
  slotBytes: number,
): () => void {
  const base = functions().address(slots);
  const addresses = BigUint64Array.from(slots, (_, i) => base + BigInt(slotBytes * i));
  return () => call("cudaLaunchKernelExC", configuration, kernel, addresses);
}

function written(create: (out: BigUint64Array) => void): Pointer {
  const out = new BigUint64Array(1);
  create(out);
  return out[0]!;
}

function call(name: keyof typeof FUNCTIONS, ...parameters: unknown[]): void {
  const error = functions()[name](...parameters);
  if (error === 0) return;
  throw new GraphError("session", `CUDA failure ${error}: ${functions().cudaGetErrorString(error)} (${name})`);
}
