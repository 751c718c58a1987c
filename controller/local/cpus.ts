/**
 * Which cores programs run on. Durations are a training signal, so on one machine programs and the learner's threads
 * share no core where there are enough.
 */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/**
 * @param cores those that this process may use
 * @param learnerThreads `spec.learner.threads`; 0 is all cores, which leaves nothing to keep apart
 * @returns a core list for each of `actors` actors (`1` or `2,3`), or undefined where they cannot be kept apart
 */
export function actorCores(cores: number[], learnerThreads: number, actors: number): string[] | undefined {
  const free = cores.slice(learnerThreads);
  if (learnerThreads === 0 || free.length === 0) return undefined;
  return Array.from({ length: actors }, (_, actor) => {
    const own = free.filter((_, index) => index % actors === actor);
    return (own.length > 0 ? own : [free[actor % free.length]!]).join(",");
  });
}

/** @returns the numbers of the cores that this process may use */
export function usableCores(): number[] {
  try {
    const list = /^Cpus_allowed_list:\s*(\S+)$/m.exec(readFileSync("/proc/self/status", "utf8"))?.[1];
    if (list) return parseCoreList(list);
  } catch {
    // No /proc: the cores are numbered from 0.
  }
  return Array.from({ length: availableParallelism() }, (_, core) => core);
}

/** `0-2,5` -> 0, 1, 2, 5 */
export function parseCoreList(list: string): number[] {
  return list.split(",").flatMap((range) => {
    const [first, last = first] = range.split("-").map(Number);
    return Array.from({ length: last! - first! + 1 }, (_, index) => first! + index);
  });
}
