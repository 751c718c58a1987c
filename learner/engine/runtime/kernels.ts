/**
 * Our own kernels on one GPU. Their PTX (../kernels) is compiled by CUDA's driver when a graph first asks for a kernel, never while a
 * stream captures. Where one cannot be loaded, one notice says so, and graphs are composed of ONNX Runtime's operators.
 */
import { readFileSync } from "node:fs";
import { GraphError } from "../graph/errors.ts";
import type { KernelSource } from "../graph/graph.ts";
import type { Pointer } from "./api.ts";
import { computeCapability, launchKernel, loadKernel, mostSharedBytes } from "./cuda.ts";
import { type Device, deviceName } from "./device.ts";
import { notice } from "./notices.ts";

/** `off`: graphs are composed of ONNX Runtime's operators, for measurements and to find faults. */
export const KERNELS = "LONGRUN_KERNELS";

const FOLDER = new URL("../kernels/ptx/", import.meta.url);
/** From this compute capability on; the PTX of sm_90a serves 9.0 alone. */
const LEAST_CAPABILITY = 8;
const HOPPER = 9;
const WARP = 32;

/** What a launch of a kernel needs, as ../kernels/compile.py writes it. */
interface Facts {
  readonly entry: string;
  /** a letter for each parameter: p pointer, i int32, l int64, f float32 */
  readonly parameters: string;
  readonly constants: Readonly<Record<string, number>>;
  readonly targets: Readonly<Record<string, { readonly shared: number; readonly warps: number }>>;
}
const known = new Map<string, Readonly<Record<string, Facts>>>();
const factsOf = (name: string, folder = FOLDER): Facts => {
  const ofAll = known.get(folder.href) ?? JSON.parse(readFileSync(new URL("launches.json", folder), "utf8"));
  known.set(folder.href, ofAll);
  const facts = ofAll[name];
  if (!facts) throw new GraphError("session", `there is no kernel ${name}`);
  return facts;
};

/** The kernels by which a graph for a GPU is planned: all, because a GPU that computes in bfloat16 can load them; none where they are off. */
export const plannedKernels: KernelSource = { has: () => process.env[KERNELS] !== "off" };

type Grid = readonly [x: number, y?: number];

export class Kernels {
  readonly #device: Device & { kind: "cuda" };
  readonly #folder: URL;
  readonly #loaded = new Map<string, Kernel>();
  /** undefined: no kernel serves this GPU */
  #target: string | undefined;

  /** Call it when ONNX Runtime's CUDA provider is loaded. @param folder with the PTX (tests) */
  constructor(device: Device & { kind: "cuda" }, folder = FOLDER) {
    this.#device = device;
    this.#folder = folder;
    const capability = computeCapability(device.id);
    if (process.env[KERNELS] === "off") this.#refuse(`${KERNELS} is off`);
    else if (capability < LEAST_CAPABILITY) this.#refuse(`its compute capability is below ${LEAST_CAPABILITY}.0`);
    else this.#target = capability === HOPPER ? "sm_90a" : "sm_80";
  }

  /** Returns whether a kernel serves, and loads it. After the first failure none serves that is not loaded. */
  has(name: string): boolean {
    if (this.#target === undefined) return false;
    if (this.#loaded.has(name)) return true;
    try {
      this.#loaded.set(name, new Kernel(name, this.#target, this.#device.id, this.#folder));
      return true;
    } catch (cause) {
      this.#refuse(`${(cause as Error).message}; with ${KERNELS}=off the memory plan counts on these operators`);
      return false;
    }
  }

  /** Launches a kernel that `has` found. @param given numbers and addresses, by the kernel's parameters */
  launch(name: string, stream: Pointer, grid: Grid, given: readonly (Pointer | number)[]): void {
    const kernel = this.#loaded.get(name);
    if (!kernel) throw new GraphError("session", `the kernel ${name} is not loaded`);
    kernel.launch(stream, grid, given);
  }

  #refuse(reason: string): void {
    this.#target = undefined;
    notice(
      `${deviceName(this.#device)} runs ONNX Runtime's operators in place of fused kernels, and takes longer: ${reason}`,
    );
  }
}

/** Returns a kernel's constant, such as the number of rows of a block. */
export const constantOf = (kernel: string, name: string): number => factsOf(kernel).constants[name]!;

/** Triton's kernels end with two pointers to memory that ours do not use. */
const UNUSED_POINTERS = 2;
const SLOT_BYTES = 8;
/** Smaller arrays may be in V8's heap, where they move. */
const LEAST_SLOTS = 16;
const CONFIGURATION_BYTES = 128;

/** A loaded kernel, with room for the arguments of a launch. */
class Kernel {
  readonly #types: string;
  readonly #slots: BigUint64Array;
  readonly #ints: Int32Array;
  readonly #floats: Float32Array;
  readonly #handle: Pointer;
  /** cudaLaunchConfig_t: grid, block (three uint32 each), bytes of shared memory, stream, attributes */
  readonly #configuration = new ArrayBuffer(CONFIGURATION_BYTES);
  readonly #grid = new Uint32Array(this.#configuration, 0, 6);
  readonly #launch = new BigUint64Array(this.#configuration, 24, 2);
  readonly #run: () => void;

  /** @throws GraphError */
  constructor(name: string, target: string, device: number, folder: URL) {
    const { entry, parameters, targets } = factsOf(name, folder);
    const { shared, warps } = targets[target]!;
    const room = mostSharedBytes(device);
    if (shared > room)
      throw new GraphError("device", `${name} needs ${shared} bytes of shared memory, and the GPU has ${room}`);
    this.#handle = loadKernel(readFileSync(new URL(`${name}.${target}.ptx`, folder)), entry, { device, shared });
    this.#types = parameters;
    const count = Math.max(LEAST_SLOTS, parameters.length + UNUSED_POINTERS);
    this.#slots = new BigUint64Array(count);
    this.#ints = new Int32Array(this.#slots.buffer);
    this.#floats = new Float32Array(this.#slots.buffer);
    this.#grid.set([1, 1, 1, WARP * warps, 1, 1]);
    this.#launch[0] = BigInt(shared);
    this.#run = launchKernel(this.#handle, new Uint8Array(this.#configuration), this.#slots, SLOT_BYTES);
  }

  launch(stream: Pointer, [x, y = 1]: Grid, given: readonly (Pointer | number)[]): void {
    if (x === 0 || y === 0) return;
    for (let i = 0; i < this.#types.length; i++) {
      const [type, value] = [this.#types[i], given[i]!];
      if (type === "i") this.#ints[2 * i] = value as number;
      else if (type === "f") this.#floats[2 * i] = value as number;
      else this.#slots[i] = BigInt(value);
    }
    this.#grid[0] = x;
    this.#grid[1] = y;
    this.#launch[1] = stream;
    this.#run();
  }
}
