/** Types of one execution that actors, learner and command line share: its limits and its result. */

export const OUTCOMES = ["completed", "failed", "timedOut", "outOfMemory", "outputLimit", "lost"] as const;
/** How an execution ended. `lost`: the infrastructure failed, not the program. */
export type Outcome = (typeof OUTCOMES)[number];

/** Limits of one execution. */
export interface Limits {
  timeoutSeconds: number;
  memoryBytes: number;
  /** A program that prints more is killed. */
  outputBytes: number;
  /** The first and the last `keptOutputBytes` bytes of the output are kept. */
  keptOutputBytes: number;
  /** Scratch, /tmp and /dev/shm together. */
  scratchBytes: number;
  scratchFiles: number;
  /** Threads count as processes. */
  processes: number;
  submissionBytes: number;
}

/** The fields of a TrainingRun's task that limit an execution. The size of a submission is optional. */
type TaskLimits = Omit<Limits, "timeoutSeconds" | "memoryBytes" | "submissionBytes"> & {
  executionTimeoutSeconds: number;
  executionMemoryBytes: number;
};

export function limitsOfTask(task: TaskLimits): Omit<Limits, "submissionBytes"> {
  const { executionTimeoutSeconds, executionMemoryBytes, outputBytes, keptOutputBytes } = task;
  const { scratchBytes, scratchFiles, processes } = task;
  return {
    timeoutSeconds: executionTimeoutSeconds,
    memoryBytes: executionMemoryBytes,
    outputBytes,
    keptOutputBytes,
    scratchBytes,
    scratchFiles,
    processes,
  };
}

export interface MarkerSeen {
  name: string;
  /** The text after the name, or empty. At most 256 characters. */
  value: string;
  /** Seconds since the program started. */
  atSeconds: number;
}

/** An execution's result without output and submission, which the actor and the learner each add in their own form. */
export interface Result {
  outcome: Outcome;
  exitStatus: number;
  /** The signal that ended the program, 0 if none. */
  signal: number;
  durationSeconds: number;
  cpuSeconds: number;
  peakMemoryBytes: number;
  /** Each marker at most once, in the order of appearance. */
  markers: MarkerSeen[];
  /** Marker lines with a wrong nonce, repeats, and names that do not exist or were not inserted. */
  forgedMarkers: number;
  /** Lines that look like a marker but have no nonce. */
  imitatedMarkers: number;
  /** Size of the whole output. */
  outputBytes: number;
  /** One line for people; may be empty. */
  detail: string;
}
