/** Lets a test end the threads of another process, as a fault of ONNX Runtime or of memory would. */

/** Returns options of Node.js with which each thread but the main one ends with status 3 when `file` exists. */
export function threadsDieWith(file: string): string[] {
  const program = `
    import { existsSync } from "node:fs";
    import { isMainThread } from "node:worker_threads";
    if (!isMainThread) setInterval(() => existsSync(${JSON.stringify(file)}) && process.exit(3), 20).unref();`;
  return ["--import", `data:text/javascript,${encodeURIComponent(program)}`];
}
