/** One execution, in the words that actors, learner and command line share: what it may use, and what it came to. */

export const OUTCOMES = ["completed", "failed", "timedOut", "outOfMemory", "outputLimit", "lost"] as const;
/** How an execution ended. `lost`: the infrastructure failed, not the program. */
export type Outcome = (typeof OUTCOMES)[number];

/** What one execution may use. */
export interface Limits {
  timeoutSeconds: number;
  memoryBytes: number;
  /** A program that prints more is stopped. */
  outputBytes: number;
  /** Of the output, this many first and as many last bytes are kept. */
  keptOutputBytes: number;
  /** Of scratch, /tmp and /dev/shm together. */
  scratchBytes: number;
  scratchFiles: number;
  /** Threads count as well. */
  processes: number;
  submissionBytes: number;
}

/** The fields of a TrainingRun's task that limit an execution; a task need not say how large a submission may be. */
export type TaskLimits = Omit<Limits, "timeoutSeconds" | "memoryBytes" | "submissionBytes"> & {
  executionTimeoutSeconds: number;
  executionMemoryBytes: number;
};

export function limitsOfTask(task: TaskLimits): Omit<Limits, "submissionBytes"> {
  const { executionTimeoutSeconds, executionMemoryBytes, outputBytes, keptOutputBytes } = task;
  const { scratchBytes, scratchFiles, processes } = task;
  return {
    ...{ timeoutSeconds: executionTimeoutSeconds, memoryBytes: executionMemoryBytes, outputBytes, keptOutputBytes },
    ...{ scratchBytes, scratchFiles, processes },
  };
}

export interface MarkerSeen {
  name: string;
  /** What was printed after the name, or empty. At most 256 characters. */
  value: string;
  /** Since the program started. */
  atSeconds: number;
}

/** What an actor found out about an execution. The actor and the learner each add output and submission in their own form. */
export interface Result {
  outcome: Outcome;
  exitStatus: number;
  /** That ended the program, 0 if none. */
  signal: number;
  durationSeconds: number;
  cpuSeconds: number;
  peakMemoryBytes: number;
  /** Each at most once, in the order seen. */
  markers: MarkerSeen[];
  /** Marker lines with a wrong nonce, repeats, names that do not exist or were not inserted. */
  forgedMarkers: number;
  /** Lines that look like a marker and carry no nonce. */
  imitatedMarkers: number;
  /** Printed in all. */
  outputBytes: number;
  /** One line for a person; empty if there is nothing to say. */
  detail: string;
}
