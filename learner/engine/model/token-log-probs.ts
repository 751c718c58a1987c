/**
 * Output layer, log-softmax, log-prob of the chosen token and entropy as one operator. A small vocabulary goes through it
 * as a whole and its logits are held once; a large one goes chunk by chunk (vocabulary.ts) and its logits never exist.
 */
import { custom } from "../graph/emit.ts";
import type { Graph, Value } from "../graph/graph.ts";
import {
  add,
  exp,
  gatherElements,
  logSoftmax,
  matmul,
  mul,
  narrows,
  neg,
  reshape,
  scatterElements,
  sum,
} from "../graph/primitives.ts";
import { chunkedTokenLogProbs, LOGITS, OF_LOGITS, type VocabularyChunk } from "./vocabulary.ts";

export interface TokenLogProbs {
  /** log softmax(hidden W^T / temperature)[target], float32 [rows] */
  logProbs: Value;
  /** entropy of the same distribution in nats, float32 [rows] */
  entropies: Value;
}

/** The matrix W that makes logits, float32 [vocabulary, size]: one value, or frozen chunks of its rows. */
export type OutputLayer = Value | readonly VocabularyChunk[];

/** Entries of the largest vocabulary that goes as a whole: a quarter faster, as no logits are computed twice. */
export const WHOLE_VOCABULARY = 8192;
/** Entries of a chunk of a larger one. Fewer stay in the caches, but are more nodes to make a session of. */
export const VOCABULARY_CHUNK = 4096;
/** The same in a graph that multiplies in bfloat16: on a GPU, which keeps no chunk in a cache and launches some 28 kernels for each. */
const LARGE_CHUNK = 16384;

export const vocabularyChunk = (graph: Graph): number => (narrows({ graph }) ? LARGE_CHUNK : VOCABULARY_CHUNK);

/**
 * hidden float32 [rows, size], targets int32 [rows], inverseTemperature a float32 scalar.
 *
 * @param chunk entries of a chunk, and of the largest whole vocabulary (tests)
 */
export function tokenLogProbs(
  hidden: Value,
  layer: OutputLayer,
  targets: Value,
  inverseTemperature: Value,
  chunk?: number,
): TokenLogProbs {
  const whole = "shape" in layer ? layer : undefined;
  return whole && (whole.shape[0] as number) <= (chunk ?? WHOLE_VOCABULARY)
    ? wholeTokenLogProbs(hidden, whole, targets, inverseTemperature)
    : chunkedTokenLogProbs(hidden, layer, targets, inverseTemperature, chunk ?? vocabularyChunk(hidden.graph));
}

/** With p the probabilities and H the entropy, d logits = dLogProb (onehot - p) - dEntropy p (log p + H). */
function wholeTokenLogProbs(hidden: Value, weight: Value, targets: Value, inverseTemperature: Value): TokenLogProbs {
  const [rowCount] = hidden.shape;
  const column = (x: Value) => reshape(x, [rowCount, 1]);
  const index = column(targets);
  let saved: { scaled: Value; logs: Value; entropy: Value };
  const [logProbs, entropies] = custom(
    "tokenLogProbs",
    [hidden, weight],
    ([h, w]) => {
      const scaled = mul(h, inverseTemperature); // cheaper than dividing the logits
      const logs = logSoftmax(matmul(scaled, w, LOGITS));
      const entropy = neg(sum(mul(exp(logs), logs), [1], true));
      saved = { scaled, logs, entropy };
      return [reshape(gatherElements(logs, index), [rowCount]), reshape(entropy, [rowCount])];
    },
    ([dLogProb, dEntropy]) => {
      const { scaled, logs, entropy } = saved;
      const probabilities = exp(logs);
      let slope = dLogProb ? column(dLogProb) : undefined;
      if (dEntropy) {
        const d = column(dEntropy);
        const constant = slope ? add(slope, mul(d, entropy)) : mul(d, entropy);
        slope = add(mul(logs, d), constant);
      }
      let dLogits = neg(mul(probabilities, slope!));
      if (dLogProb) {
        const d = column(dLogProb);
        // at the target's column: -p slope + dLogProb
        dLogits = scatterElements(dLogits, index, add(gatherElements(dLogits, index), d));
      }
      return [
        hidden.requiresGrad ? mul(matmul(dLogits, weight, OF_LOGITS), inverseTemperature) : undefined,
        weight.requiresGrad ? matmul(dLogits, scaled, { ...OF_LOGITS, transA: true }) : undefined,
      ];
    },
  );
  return { logProbs, entropies };
}
