/** Reads the C library's counters of this process, over all threads. */
import { join } from "node:path";
import { koffi } from "../../learner/engine/runtime/koffi.ts";
import { LIBRARY } from "./build.ts";

/** In the order of `enum counter` in rehearsal.h. */
export const COUNTERS = [
  ...(["launches", "products", "cudnn", "toDevice", "toDeviceBytes", "toHost", "toHostBytes"] as const),
  ...(["onDevice", "onDeviceBytes", "synchronisations", "allocations"] as const),
  ...(["graphLaunches", "graphKernels", "graphCopies", "graphCopyBytes"] as const),
] as const;

export type Counts = Record<(typeof COUNTERS)[number], number> & {
  /** Peak of allocated device memory, for the device that had most. */
  peakBytes: number;
  /** Peak of allocated device memory, for each device. */
  peaks: readonly number[];
};

const MOST_DEVICES = 8;
const KERNEL_LIST_BYTES = 1 << 20;

let opened: ReturnType<typeof open> | undefined;
const library = () => (opened ??= open());

function open() {
  const native = koffi().load(join(process.env.REHEARSAL_FOLDER!, LIBRARY));
  return {
    counts: native.func("rehearsal_counts", "int", ["void *", "int"]),
    kernels: native.func("rehearsal_kernels", "int", ["void *", "int"]),
    copies: native.func("rehearsal_copies", "void", ["int", "void *"]),
    fail: native.func("rehearsal_fail", "void", ["int", "int"]),
    graphs: native.func("rehearsal_graphs", "int64_t", []),
    resize: native.func("rehearsal_resize", "void", ["int", "double"]),
  };
}

function read(): Counts {
  const numbers = new BigUint64Array(COUNTERS.length + 2 * MOST_DEVICES);
  const written = library().counts(numbers, numbers.length) as number;
  const values = Array.from(numbers.subarray(0, written), Number);
  const peaks = values.slice(COUNTERS.length).filter((_, i) => i % 2 === 1);
  return {
    ...(Object.fromEntries(COUNTERS.map((name, i) => [name, values[i]!])) as Record<(typeof COUNTERS)[number], number>),
    peakBytes: Math.max(0, ...peaks),
    peaks,
  };
}

/** Counts operations on the devices while `act` runs. */
export async function counting<T>(act: () => Promise<T>): Promise<{ result: T; counts: Counts }> {
  const before = read(); // also resets the peak
  const result = await act();
  const after = read();
  for (const name of COUNTERS) after[name] -= before[name];
  return { result, counts: after };
}

/** Sets a device's memory from now on, in bytes; may be less than is in use. */
export const resizeDevice = (bytes: number, device = 0): void => library().resize(device, bytes);

/** Returns the bytes that were copied between this process's memory and a device since the last call. */
export function copiedBytes(device: number): { toDevice: number; toHost: number } {
  const bytes = new BigUint64Array(2);
  library().copies(device, bytes);
  return { toDevice: Number(bytes[0]), toHost: Number(bytes[1]) };
}

/** Makes a device fail from now on with this CUDA error, or work again (0). */
export const failDevice = (device: number, error: number): void => library().fail(device, error);

/** Returns the number of CUDA graphs that can be launched. */
export const liveGraphs = (): number => Number(library().graphs());

/** Returns the runs of each kernel since the last call, also in graphs, by its mangled name; most first. */
export function kernels(): [name: string, launches: number][] {
  const text = new Uint8Array(KERNEL_LIST_BYTES);
  const length = library().kernels(text, text.length) as number;
  const lines = new TextDecoder().decode(text.subarray(0, length)).split("\n").slice(0, -1);
  return lines
    .map((line): [string, number] => [line.slice(line.indexOf(" ") + 1), Number.parseInt(line, 10)])
    .sort(([, a], [, b]) => b - a);
}
