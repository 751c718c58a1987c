/**
 * The exit statuses by which the learner's container tells the controller why it ended; controller/README.md lists them.
 * 71 to 74 are those of sysexits.h. A learner without `--stay` (`longrun run`) knows 0, 1, 2 and 73 alone.
 */
export const EXIT_STATUS = {
  /** A bug, and whatever nobody has thought of. */
  fault: 1,
  /** The spec, the task or the model cannot be used: trying again does not help. */
  input: 2,
  /** Memory of the GPU or of the host. */
  resource: 71,
  /** The run's volume: it is waited for room. */
  volumeFull: 73,
  /** Disks, mounts, networks, devices. */
  infrastructure: 74,
} as const;

export type FailureKind = keyof typeof EXIT_STATUS;
