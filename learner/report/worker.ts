/** Writes a report for each message, which is a run folder. Answers with undefined, or with the reason for a missing report. */
import { parentPort } from "node:worker_threads";
import { writeReport } from "./write.ts";

parentPort!.on("message", (directory: string) =>
  writeReport(directory).then(
    () => parentPort!.postMessage(undefined),
    (error: Error) => parentPort!.postMessage(error.message),
  ),
);
