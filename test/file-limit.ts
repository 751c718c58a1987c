/**
 * Loaded into the process of each test file: ends it FILE_SECONDS after its start and names what kept it alive. Node limits the time of a test
 * alone: a file whose test failed and left a server open would never end, and `npm test` neither.
 */
import { writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

/** Limit for one test file in seconds. The longest one takes about 100 on two cores. */
const FILE_SECONDS = 240;

function end(): void {
  const active = process.getActiveResourcesInfo().join(", ");
  writeSync(2, `${process.argv[1]}: not at its end after ${FILE_SECONDS} s; what is active: ${active}\n`);
  process.exit(1);
}

if (isMainThread) setTimeout(end, FILE_SECONDS * 1000).unref();
