/**
 * Loaded before everything else in a rehearsal of plans (plans.ts) and in its worker threads: weights of a hollow model are neither read
 * nor copied in this process. They are zeros, and so is memory that nobody has written, which takes no room. Device memory is as always.
 */
import module from "node:module";
import { Parameters } from "../../learner/engine/graph/parameters.ts";

Parameters.prototype.set = () => {};
Parameters.prototype.copy = function () {
  return new Parameters(this.shapes);
};

/** Modules of learner/engine/model that read weights, in place of which hollow-weights.ts is imported. */
const READERS = ["./safetensors.ts", "./weights.ts"];
const IMPORTERS = /\/learner\/engine\/model\/(folder|mapped)\.ts$/;
module.registerHooks({
  resolve: (specifier, context, next) =>
    READERS.includes(specifier) && IMPORTERS.test(context.parentURL ?? "")
      ? next(new URL("./hollow-weights.ts", import.meta.url).href, context)
      : next(specifier, context),
});
