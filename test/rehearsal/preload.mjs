/**
 * Loaded before everything else in each process of a rehearsal, and in each of its worker threads (NODE_OPTIONS=--import):
 * `onnxruntime-node` is then the copy that has the CUDA provider beside it.
 */
import module, { createRequire } from "node:module";
import { join } from "node:path";
import { pathToFileURL } from "node:url";

const folder = process.env.REHEARSAL_FOLDER;
if (folder !== undefined) {
  const copy = createRequire(join(folder, "package.json"));
  const known = ["onnxruntime-node", "onnxruntime-node/package.json"];
  const files = new Map(known.map((name) => [name, pathToFileURL(copy.resolve(name)).href]));
  module.registerHooks?.({
    resolve: (specifier, context, next) =>
      files.has(specifier) ? { url: files.get(specifier), shortCircuit: true } : next(specifier, context),
  });
}
