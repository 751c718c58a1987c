/** Assigns GPUs to slots and describes the assignment. sandbox/gpu.py says what a program can do with a GPU. */

/** Returns the GPUs of slot `index` of `count`: its own if there are enough, else one shared GPU. */
export function shareGpus(gpus: readonly number[], index: number, count: number): number[] {
  if (gpus.length === 0) return [];
  const each = Math.floor(gpus.length / count);
  return each < 1 ? [gpus[index % gpus.length]!] : gpus.slice(index * each, (index + 1) * each);
}

/** Returns one line, or undefined if no slot has a GPU. @param bySlot names of the GPUs that each slot found */
export function describeGpus(bySlot: readonly (readonly string[])[]): string | undefined {
  const all = bySlot.flat();
  if (all.length === 0) return undefined;
  const slots = bySlot.map((names, slot) => `slot ${slot}: ${names.join(", ") || "none"}`);
  const shared = new Set(all).size < all.length;
  return (
    `GPUs of programs: ${slots.join("; ")}; ${shared ? "shared between slots" : "each slot's own"}; ` +
    "memory is held by the look every 25 ms and the control group, without RLIMIT_AS"
  );
}
