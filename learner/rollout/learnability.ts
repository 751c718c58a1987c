import type { Prompts } from "../../crds/trainingrun.ts";
import type { TaskMetrics } from "../metrics/iteration.ts";
import { mean } from "../metrics/statistics.ts";

/** The part of a line of metrics that is read; lines of an earlier longrun have no deviation. */
export interface TaskLines {
  tasks: Readonly<Record<string, Pick<TaskMetrics, "rewardDeviation"> | undefined>>;
}

/**
 * Returns the tasks, each with its weight in the draw of prompts. Under `taskSampling: Learnability` a task's weight is multiplied by
 * floor + (1 - floor) d / d_max, where d is the mean standard deviation of its rewards in its last `learnabilityIterations` batches, and
 * d_max the largest of all tasks. A task that was not measured yet counts as d_max. If no task's rewards differ, all keep their weights.
 */
export function drawingWeights<T extends { task: { name: string }; weight: number }>(
  tasks: readonly T[],
  lines: readonly TaskLines[],
  { taskSampling, learnabilityIterations, learnabilityFloor: floor }: Prompts,
): T[] {
  if (taskSampling !== "Learnability" || tasks.length < 2) return [...tasks];
  const deviations = tasks.map(({ task }) => {
    const measured = lines.flatMap((line) => line.tasks[task.name]?.rewardDeviation ?? []);
    return mean(measured.slice(-learnabilityIterations));
  });
  const largest = Math.max(...deviations.map((deviation) => deviation ?? 0));
  if (largest === 0) return [...tasks];
  return tasks.map((task, i) => {
    const share = (deviations[i] ?? largest) / largest;
    return { ...task, weight: task.weight * (floor + (1 - floor) * share) };
  });
}
