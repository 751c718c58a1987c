/** Limits of fetches and of pushes. README.md of this folder and of ../results list them too. */
export interface TransferLimits {
  /** Files, or parts of one, that are transferred at once. */
  filesAtOnce: number;
  /** Tries of a request in a row without a new byte. A new byte resets the count. */
  tries: number;
  /** Wait before the second try; each later wait is twice as long, up to `longestWaitSeconds`. */
  firstWaitSeconds: number;
  longestWaitSeconds: number;
  /** Longest wait that the server may ask for (`Retry-After`). A longer one ends the fetch. */
  longestRetryAfterSeconds: number;
  /** Time between a request and its answer; with the hub's API, the end of the answer. */
  answerSeconds: number;
  /** Length of a server's answer about files, such as a page of a list or a manifest. */
  answerBytes: number;
  /** Pages of a list of files. The hub and S3 put up to 1,000 files on a page. */
  listPages: number;
  /** Time without a byte of a file in transfer. */
  silenceSeconds: number;
  /** Length of the parts that a file is uploaded in; longer where there would be more than 10,000. */
  partBytes: number;
  /** Slowest upload of a part: at this pace it takes `bytes / slowestBytesPerSecond` longer than `answerSeconds`. */
  slowestBytesPerSecond: number;
  /** Age at which a push removes files and unfinished uploads that no manifest names. Younger ones may belong to another push. */
  leftoverSeconds: number;
}

export const TRANSFER_LIMITS: TransferLimits = {
  filesAtOnce: 4,
  tries: 6,
  firstWaitSeconds: 1,
  longestWaitSeconds: 30,
  longestRetryAfterSeconds: 600,
  answerSeconds: 60,
  answerBytes: 64 * 2 ** 20,
  listPages: 1000,
  silenceSeconds: 60,
  partBytes: 16 * 2 ** 20,
  slowestBytesPerSecond: 50_000,
  leftoverSeconds: 24 * 3600,
};
