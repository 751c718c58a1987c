/**
 * Exit statuses of the learner's container, which tell the controller why the learner ended; controller/README.md lists them. 71 to 74 are
 * from sysexits.h. A learner without `--stay` (`longrun run`) uses only 0, 1, 2 and 73.
 */
export const EXIT_STATUS = {
  /** A bug or an unexpected error. */
  fault: 1,
  /** The spec, the task or the model cannot be used, so a retry does not help. */
  input: 2,
  /** Memory of the GPU or the host is exhausted. */
  resource: 71,
  /** The run's volume is full; the controller waits until it has room. */
  volumeFull: 73,
  /** Faults of disks, mounts, networks or devices. */
  infrastructure: 74,
} as const;

export type FailureKind = keyof typeof EXIT_STATUS;
