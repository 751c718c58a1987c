/** Which GPUs a slot's programs can use, and how that is told. What a program can do with one: sandbox/gpu.py. */

/** Those of slot `index` of `count`: its own where there are enough, else one that it shares. */
export function shareGpus(gpus: readonly number[], index: number, count: number): number[] {
  if (gpus.length === 0) return [];
  const each = Math.floor(gpus.length / count);
  return each < 1 ? [gpus[index % gpus.length]!] : gpus.slice(index * each, (index + 1) * each);
}

/** One line. @param bySlot names of GPUs, as slots found them; undefined if there is none */
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
