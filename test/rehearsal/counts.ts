/** What the C library has counted in this process, of all its threads. */
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
  /** the most device memory that was allocated at a time, of the device that had most */
  peakBytes: number;
  /** the most device memory that was allocated at a time, of each device */
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

/** What happens on the devices while `act` runs. */
export async function counting<T>(act: () => Promise<T>): Promise<{ result: T; counts: Counts }> {
  const before = read(); // and the peak begins again
  const result = await act();
  const after = read();
  for (const name of COUNTERS) after[name] -= before[name];
  return { result, counts: after };
}

/** Device memory from now on, bytes; also less than is in use. */
export const resizeDevice = (bytes: number, device = 0): void => library().resize(device, bytes);

/** Bytes that were copied between this process's memory and a device since the last call. */
export function copiedBytes(device: number): { toDevice: number; toHost: number } {
  const bytes = new BigUint64Array(2);
  library().copies(device, bytes);
  return { toDevice: Number(bytes[0]), toHost: Number(bytes[1]) };
}

/** A device fails from now on with this error of CUDA's, or works again (0). */
export const failDevice = (device: number, error: number): void => library().fail(device, error);

/** CUDA graphs that can be launched. */
export const liveGraphs = (): number => Number(library().graphs());

/** Runs of each kernel, in graphs too, since the last call, by its mangled name; most first. */
export function kernels(): [name: string, launches: number][] {
  const text = new Uint8Array(KERNEL_LIST_BYTES);
  const length = library().kernels(text, text.length) as number;
  const lines = new TextDecoder().decode(text.subarray(0, length)).split("\n").slice(0, -1);
  return lines
    .map((line): [string, number] => [line.slice(line.indexOf(" ") + 1), Number.parseInt(line, 10)])
    .sort(([, a], [, b]) => b - a);
}
