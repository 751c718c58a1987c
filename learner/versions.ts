import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

/** Returns the versions of longrun, Node and ONNX Runtime, for the report. */
export function versions(): Record<string, string> {
  const require = createRequire(import.meta.url);
  const read = (path: string) => (JSON.parse(readFileSync(path, "utf8")) as { version: string }).version;
  return {
    longrun: read(new URL("../package.json", import.meta.url).pathname),
    node: process.version.slice(1),
    onnxruntime: read(require.resolve("onnxruntime-node/package.json")),
  };
}
