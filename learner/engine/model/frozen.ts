/**
 * The frozen trunk of LoRA in graphs that train: a folder's memory-mapped weights, which exist once for policy, critic,
 * reference and generation. A gradient passes through the weights to the adapters below; the weights have no gradients.
 */

import { affine } from "../graph/composites.ts";
import { custom } from "../graph/emit.ts";
import { fusesLogProbs } from "../graph/fused.ts";
import type { Graph, Value } from "../graph/graph.ts";
import { cast, sumTo } from "../graph/primitives.ts";
import { half, linear, matmul, narrows } from "../graph/products.ts";
import type { SessionOptions } from "../runtime/session.ts";
import { type Project, withBias } from "./decoder.ts";
import { adapted, type GraphAdapter, joinedAdapters } from "./lora.ts";
import { JOINED_PROJECTIONS, type MappedWeights } from "./mapped.ts";
import { type OutputLayer, vocabularyChunk, WHOLE_VOCABULARY } from "./token-log-probs.ts";
import { EMBEDDING, OUTPUT_LAYER } from "./weights.ts";

interface FrozenTrunk {
  /** float32 by transformers' name, but the embedding in the dtype of the file */
  readonly weights: ReadonlyMap<string, Value>;
  readonly project: Project;
  /** undefined if the graph computes no logits */
  readonly outputLayer: OutputLayer | undefined;
}

/**
 * Call this before other nodes are made: see `MappedWeights.initializers`.
 *
 * @param adapter left out: the trunk alone
 * @param wants `gradient`: the graph has a backward pass; `logits`: it uses the output layer
 */
export function frozenTrunk(
  g: Graph,
  mapped: MappedWeights,
  adapter: GraphAdapter | undefined,
  wants: { gradient: boolean; logits: boolean },
): FrozenTrunk {
  const stored = mapped.stored(g);
  const weights = mapped.initializers(g, stored);
  // The backward pass casts half precision anew, and so does a layer that is computed again in it: only one layer's float32 copy exists at a time.
  const again = new Map(
    wants.gradient
      ? [...stored].flatMap(([name, value]) => (name.endsWith("_proj.weight") ? [[name, cast(value, "float32")]] : []))
      : [],
  );
  const outputName = mapped.config.tied ? EMBEDDING : OUTPUT_LAYER;
  const large = mapped.config.vocabSize > WHOLE_VOCABULARY;
  const outputLayer = !wants.logits
    ? undefined
    : fusesLogProbs({ graph: g }, mapped.config.vocabSize, mapped.config.hiddenSize)
      ? weights.get(outputName)!
      : large
        ? mapped.outputChunks(g, vocabularyChunk(g))
        : cast(weights.get(outputName)!, "float32");
  const adapterOutput = adapter && joinedAdapters(adapter, JOINED_PROJECTIONS);
  const used = new Set<string>();
  const project: Project = (x, path) => {
    const name = `${path}.weight`;
    const weight = used.has(name) ? again.get(name)! : weights.get(name)!;
    used.add(name);
    const bias = weights.get(`${path}.bias`);
    if (!narrows({ graph: g })) {
      const whole = () => {
        const y = frozenLinear(x, weight, again.get(name), bias);
        return adapter ? adapted(y, x, path, adapter) : y;
      };
      return { narrow: whole, wide: whole, product: () => frozenLinear(x, weight, again.get(name), undefined), bias };
    }
    // The product is added to the adapter's, not the other way round: beside a rounded product, the effect that an adapter has
    // learned in a few steps is smaller than a rounding.
    const product = () => frozenLinear(x, weight, again.get(name), adapterOutput?.(x, path));
    const biased = (wide: boolean) => withBias(product(), bias, wide);
    return { narrow: () => biased(false), wide: () => biased(true), product, bias };
  };
  return { weights, project, outputLayer };
}

/** x W^T + bias, whose gradient reads W from another value; bias [out] or [rows, out], left out: 0. */
export function frozenLinear(x: Value, weight: Value, again: Value | undefined, bias: Value | undefined): Value {
  return custom(
    "frozenLinear",
    [narrows(x) ? half(x) : x, ...(bias ? [bias] : [])],
    ([input, added]) => [added ? affine(input!, weight, added) : linear(input!, weight)],
    ([d]) => [x.requiresGrad ? matmul(d!, again!) : undefined, bias?.requiresGrad ? sumTo(d!, bias.shape) : undefined],
  )[0]!;
}

/** Options of sessions with such graphs: equal casts must not be merged, or all float32 copies live from forward to backward. */
export function frozenSessionOptions(mapped: MappedWeights): SessionOptions {
  const { sessionOptions } = mapped;
  if (mapped.tensors.every(({ dtype }) => dtype === "F32")) return sessionOptions;
  return {
    ...sessionOptions,
    disabledOptimizers: [...(sessionOptions.disabledOptimizers ?? []), "CommonSubexpressionElimination"],
  };
}
