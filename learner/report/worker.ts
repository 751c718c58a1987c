/** Writes a report per message: `{ directory }` in, `{ path }` or `{ error }` out. */
import { parentPort } from "node:worker_threads";
import { writeReport } from "./write.ts";

const port = parentPort!;

port.on("message", async ({ directory }: { directory: string }) => {
  try {
    port.postMessage({ path: await writeReport(directory) });
  } catch (error) {
    port.postMessage({ error: (error as Error).message });
  }
});
