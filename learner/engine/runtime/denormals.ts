/**
 * Denormal numbers (float32 below 1.2e-38) cost Intel's processors hundreds of cycles each, and softmax makes one for every key that a
 * mask hides. A thread that only computes can have them count as zero. ONNX Runtime's own switch
 * (`session.set_denormal_as_zero`) reaches the thread that makes a process's first session alone, where it sets and clears the same flags.
 */
import { koffi } from "./koffi.ts";

/** fenv_t of glibc on x86-64: 28 bytes for the x87, then MXCSR. */
const MXCSR_OFFSET = 28;
const ENVIRONMENT_BYTES = 64; // twice the needed size
/** Bits of MXCSR: the first for results, the second for operands. */
const FLUSH_TO_ZERO = 0x8000;
const DENORMALS_ARE_ZERO = 0x40;

let flushed = false;

/** Whether denormals count as zero in this thread: then its sessions must not set the opposite. */
export const flushesDenormals = (): boolean => flushed;

/**
 * Makes denormal numbers count as zero from now on in this thread, in JavaScript as well, and in threads that it starts, such as ONNX
 * Runtime's.
 *
 * @returns false if this is impossible (not glibc on x86-64): then nothing changes
 */
export function flushDenormals(): boolean {
  if (process.platform !== "linux" || process.arch !== "x64") return false;
  const environment = Buffer.alloc(ENVIRONMENT_BYTES);
  try {
    const library = koffi().load("libm.so.6");
    const read = library.func("fegetenv", "int", ["void *"]);
    const set = library.func("fesetenv", "int", ["void *"]);
    if (read(environment) !== 0) return false;
    const flags = environment.readUInt32LE(MXCSR_OFFSET) | FLUSH_TO_ZERO | DENORMALS_ARE_ZERO;
    environment.writeUInt32LE(flags, MXCSR_OFFSET);
    flushed = set(environment) === 0;
    return flushed;
  } catch {
    return false; // another libc
  }
}
