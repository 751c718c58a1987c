/**
 * `npm test` loads this file into the process of each test file. It ends the process FILE_SECONDS after its start and names what kept the
 * process alive. Node limits the time of a test only: a test file that leaves a server open would never end, and neither would `npm test`.
 */
import { writeSync } from "node:fs";
import { isMainThread } from "node:worker_threads";

/** Limit for the process in seconds: `file-limit.ts?seconds=N`. */
const FILE_SECONDS = Number(new URL(import.meta.url).searchParams.get("seconds") ?? 240);

function end(): void {
  const active = process.getActiveResourcesInfo().join(", ");
  writeSync(2, `${process.argv[1]}: did not end within ${FILE_SECONDS} s; still active: ${active}\n`);
  process.exit(1);
}

if (isMainThread) setTimeout(end, FILE_SECONDS * 1000).unref();
