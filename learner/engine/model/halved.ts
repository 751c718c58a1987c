/**
 * Trained parameters as inputs of graphs. A graph that multiplies in half precision takes copies of the matrices that it
 * multiplies, in that precision, and returns their gradients in it; everything else is float32.
 */
import type { Graph, Shape, Value } from "../graph/graph.ts";

/** Prefix of the names of inputs that are half-precision copies of parameters. */
export const HALF_PREFIX = "half ";

/** Whether a parameter is a matrix of a linear layer within the decoder, or of an adapter beside one. */
export const isMultiplied = (name: string): boolean => /_proj\.(lora_[AB]\.)?weight$/.test(name);

/** A parameter as an input. @param shape the parameter's shape */
export function parameterInput(g: Graph, name: string, shape: Shape, options: { requiresGrad: boolean }): Value {
  return g.model.compute !== "float32" && isMultiplied(name)
    ? g.input(HALF_PREFIX + name, g.model.compute, shape, options)
    : g.input(name, "float32", shape, options);
}
