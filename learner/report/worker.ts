/** Writes a report for each message, the folder of a run; answers with undefined, or why there is none. */
import { parentPort } from "node:worker_threads";
import { writeReport } from "./write.ts";

parentPort!.on("message", (directory: string) =>
  writeReport(directory).then(
    () => parentPort!.postMessage(undefined),
    (error: Error) => parentPort!.postMessage(error.message),
  ),
);
