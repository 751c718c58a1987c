/** The measurements of one round of the controller's benchmark. */
export interface Round {
  runs: number;
  /** Objects that the controller created, without status writes. */
  creations: number;
  /** Time until every run has its learner and its actor. */
  creationSeconds: number;
  creationCores: Record<string, number>;
  pods: number;
  bytesPerPod: number;
  heapBytes: number;
  residentBytes: number;
  /** Every run's pod changes as fast as the stub can write. */
  burst: {
    changes: number;
    seconds: number;
    milliseconds: number[];
    reconciles: number;
    requests: number;
    cores: Record<string, number>;
  };
  /** The same two writes of each change by the stub alone: the API server's own time. */
  direct: { changes: number; seconds: number };
  /** Milliseconds from the pod's event to the run's event, at a steady rate. */
  steady: { perSecond: number; milliseconds: number[]; cores: Record<string, number> };
  requestsPerRun: number;
}

export function perSecond({ changes, seconds }: { changes: number; seconds: number }): number {
  return changes / seconds;
}
