import { uniforms } from "../engine/index.ts";

/**
 * Draws one of `tasks` for a sample, in proportion to their weights. Uses random numbers of its own, so the drawn task changes no other
 * random choice for the sample.
 */
export function drawTask<T extends { weight: number }>(tasks: readonly T[], seed: number, sample: number): T {
  const total = tasks.reduce((sum, { weight }) => sum + weight, 0);
  let left = uniforms(seed, "task", sample)() * total;
  for (const task of tasks) {
    left -= task.weight;
    if (left < 0) return task;
  }
  return tasks.at(-1)!; // rounding
}
