/**
 * Chooses the cores for programs. Durations are a training signal, so on one machine programs and the learner's threads share no core if
 * there are enough cores.
 */
import { readFileSync } from "node:fs";
import { availableParallelism } from "node:os";

/**
 * @param cores cores that this process may use
 * @param learnerThreads `spec.learner.threads`; 0 means all cores, so no cores can be kept apart
 * @returns a core list for each of `actors` actors (`1` or `2,3`), or undefined if there are not enough cores
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
    // Without /proc, number the cores from 0.
  }
  return Array.from({ length: availableParallelism() }, (_, core) => core);
}

/** Parses `0-2,5` to 0, 1, 2, 5. */
export function parseCoreList(list: string): number[] {
  return list.split(",").flatMap((range) => {
    const [first, last = first] = range.split("-").map(Number);
    return Array.from({ length: last! - first! + 1 }, (_, index) => first! + index);
  });
}
