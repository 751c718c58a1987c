/**
 * Output layer, log-softmax, log-prob of the chosen token and entropy as one operator. A small vocabulary is computed as a whole and
 * its logits are held once. A large one is computed in chunks: only [rows, chunk] of the logits and of their gradient exists at a time.
 * Its forward pass keeps one number per row, the normaliser; its backward pass computes each chunk's logits again. Chunks of rows would
 * each read all of W (545 MB in Qwen2.5-0.5B) and add up all of its gradient.
 */
import { custom } from "../graph/emit.ts";
import { fusedLogProbs, fusesLogProbs } from "../graph/fused.ts";
import type { Graph, Value } from "../graph/graph.ts";
import {
  add,
  cast,
  clip,
  concat,
  equal,
  exp,
  gatherElements,
  log,
  logSoftmax,
  max,
  mul,
  neg,
  reshape,
  scatterElements,
  slice,
  sub,
  sum,
  where,
} from "../graph/primitives.ts";
import { matmul, narrows } from "../graph/products.ts";
import { after } from "../graph/recomputation.ts";

export interface TokenLogProbs {
  /** log softmax(hidden W^T / temperature)[target], float32 [rows] */
  logProbs: Value;
  /** entropy of the same distribution in nats, float32 [rows] */
  entropies: Value;
  /** log-prob of the most probable token, float32 [rows]; equal to `logProbs`, bit for bit, where that is the target. Only if requested */
  largest?: Value;
}

/** Some rows of a frozen output layer, float32 [rows, size]: each pass has its own value, so that a cast lives as long as its pass. */
export interface VocabularyChunk {
  forward: Value;
  backward: Value;
}

/**
 * Logits are always float32: bfloat16 has 8 bits, so the log-prob of a logit of 30 would be wrong by 0.1. So are the products of
 * their gradients, which would each need casts in every chunk.
 */
const LOGITS = { transB: true, precise: true };
const OF_LOGITS = { precise: true };

/** The matrix W that makes logits, float32 [vocabulary, size]: one value, or frozen chunks of its rows. */
export type OutputLayer = Value | readonly VocabularyChunk[];

/** Entries of the largest vocabulary that is computed as a whole: a quarter faster, because no logits are computed twice. */
export const WHOLE_VOCABULARY = 8192;
/** Entries of a chunk of a larger vocabulary. Smaller chunks stay in the caches, but add nodes to the session. */
export const VOCABULARY_CHUNK = 4096;
/** The same in a graph that multiplies in bfloat16: on a GPU, which keeps no chunk in a cache and launches about 28 kernels for each. */
const LARGE_CHUNK = 16384;

export const vocabularyChunk = (graph: Graph): number => (narrows({ graph }) ? LARGE_CHUNK : VOCABULARY_CHUNK);

interface TokenLogProbsOptions {
  /** entries of a chunk, and of the largest whole vocabulary (tests) */
  chunk?: number | undefined;
  /** whether `largest` is computed, which no kernel does; default false */
  largest?: boolean | undefined;
}

/** hidden float32 or bfloat16 [rows, size], targets int32 [rows], inverseTemperature a float32 scalar. */
export function tokenLogProbs(
  hidden: Value,
  layer: OutputLayer,
  targets: Value,
  inverseTemperature: Value,
  { chunk, largest = false }: TokenLogProbsOptions = {},
): TokenLogProbs {
  const whole = "shape" in layer ? layer : undefined;
  if (whole && !largest && fusesLogProbs(hidden, whole.shape[0] as number, whole.shape[1] as number))
    return fusedLogProbs(hidden, whole, targets, inverseTemperature);
  const x = cast(hidden, "float32");
  return whole && (whole.shape[0] as number) <= (chunk ?? WHOLE_VOCABULARY)
    ? wholeTokenLogProbs(x, cast(whole, "float32"), targets, inverseTemperature, largest)
    : chunkedTokenLogProbs(x, layer, targets, inverseTemperature, chunk ?? vocabularyChunk(hidden.graph), largest);
}

/** With p the probabilities and H the entropy, d logits = dLogProb (onehot - p) - dEntropy p (log p + H). */
function wholeTokenLogProbs(
  hidden: Value,
  weight: Value,
  targets: Value,
  inverseTemperature: Value,
  wantsLargest: boolean,
): TokenLogProbs {
  const [rowCount] = hidden.shape;
  const column = (x: Value) => reshape(x, [rowCount, 1]);
  const index = column(targets);
  let saved: { scaled: Value; logs: Value; entropy: Value };
  const [logProbs, entropies, largest] = custom(
    "tokenLogProbs",
    [hidden, weight],
    ([h, w]) => {
      const scaled = mul(h, inverseTemperature); // cheaper than dividing the logits
      const logs = logSoftmax(matmul(scaled, w, LOGITS));
      const entropy = neg(sum(mul(exp(logs), logs), [1], true));
      saved = { scaled, logs, entropy };
      const outputs = [reshape(gatherElements(logs, index), [rowCount]), reshape(entropy, [rowCount])];
      return wantsLargest ? [...outputs, max(logs, [1], false)] : outputs;
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
  return { logProbs, entropies, ...(largest && { largest }) };
}

/** Numbers per row and chunk that the forward pass makes: the largest logit m, sums of e^u and u e^u with u = logit - m, the target's logit. */
const STATISTICS = 4;

/** Does the same as `tokenLogProbs` in chunks, which have at most `size` entries of the vocabulary if W is one value. */
function chunkedTokenLogProbs(
  hidden: Value,
  layer: OutputLayer,
  targets: Value,
  inverseTemperature: Value,
  size: number,
  wantsLargest: boolean,
): TokenLogProbs {
  const [rowCount] = hidden.shape;
  const column = (x: Value) => reshape(x, [rowCount, 1]);
  const whole = "shape" in layer ? layer : undefined;
  const chunks = chunksOf(layer, size);
  const index = cast(column(targets), "int64"); // CUDA clips no int32
  /** the target's place in a chunk, and whether the chunk contains it */
  const placeIn = ({ begin, count }: Chunk) => {
    const offset = sub(index, begin);
    const place = clip(offset, 0, count - 1);
    return { place, inside: equal(place, offset) };
  };
  let saved: { scaled: Value; normaliser: Value; entropy: Value };
  const [logProbs, entropies, largest] = custom(
    "tokenLogProbs",
    whole ? [hidden, whole] : [hidden],
    ([h]) => {
      const scaled = mul(h, inverseTemperature); // cheaper than dividing the logits
      const ofChunks = chunks.map((chunk) => {
        const logits = matmul(scaled, chunk.weight("forward"), LOGITS);
        const largest = max(logits, [1], true);
        const u = sub(logits, largest);
        const e = exp(u);
        const sums = [sum(e, [1], true), sum(mul(e, u), [1], true)];
        const { place, inside } = placeIn(chunk); // emitted last, so read first: then u is written over the logits
        const chosen = where(inside, gatherElements(logits, place), 0);
        return concat([largest, ...sums, chosen], 1);
      });
      // ONNX Runtime computes one chunk after the other, because only one value of each is used outside of it
      const table = reshape(concat(ofChunks, 1), [rowCount, chunks.length, STATISTICS]);
      const [m, s, t, chosen] = [0, 1, 2, 3].map((i) => slice(table, 2, i, i + 1)); // [rows, chunks, 1]
      const top = max(m, [1], true);
      const share = exp(sub(m, top));
      const total = sum(mul(share, s), [1], true);
      const normaliser = add(top, log(total));
      // H = -sum p log p, log p = u + m - normaliser
      const entropySum = sum(mul(share, add(t, mul(sub(m, normaliser), s))), [1], true);
      const entropy = neg(mul(entropySum, exp(sub(top, normaliser))));
      saved = { scaled, normaliser: column(normaliser), entropy: column(entropy) };
      const logProb = sub(sum(chosen, [1], true), normaliser);
      const outputs = [reshape(logProb, [rowCount]), reshape(entropy, [rowCount])];
      return wantsLargest ? [...outputs, reshape(sub(top, normaliser), [rowCount])] : outputs;
    },
    ([dLogProb, dEntropy]) => {
      const { scaled, normaliser, entropy } = saved;
      scaled.graph.model.recomputes = true;
      const d = dLogProb && column(dLogProb);
      const dH = dEntropy && column(dEntropy);
      // d logits = p (log p * factor + constant), and dLogProb more at the target
      const factor = dH && neg(dH);
      const constant = neg(d && dH ? add(d, mul(dH, entropy)) : (d ?? mul(dH!, entropy)));
      let dScaled: Value | undefined;
      let previous: Value | undefined;
      const dWeights = chunks.map((chunk) => {
        // one after the other, else all chunks' dLogits wait for the gradient of W
        const sliced = chunk.weight("backward");
        const weight = previous ? after(sliced, previous) : sliced;
        const logs = sub(matmul(scaled, weight, LOGITS), normaliser);
        const probabilities = exp(logs); // emitted before the slope, so computed after it: written over the logs
        const slope = factor ? add(mul(logs, factor), constant) : constant;
        let dLogits = mul(probabilities, slope);
        if (d) {
          const { place, inside } = placeIn(chunk);
          dLogits = scatterElements(dLogits, place, add(gatherElements(dLogits, place), where(inside, d, 0)));
        }
        const part = matmul(dLogits, weight, OF_LOGITS);
        dScaled = dScaled ? add(dScaled, part) : part;
        if (!whole?.requiresGrad) return undefined;
        previous = matmul(dLogits, after(scaled, part), { ...OF_LOGITS, transA: true });
        return previous;
      });
      return [
        hidden.requiresGrad ? mul(dScaled!, inverseTemperature) : undefined,
        whole?.requiresGrad ? concat(dWeights as Value[], 0) : undefined,
      ];
    },
  );
  return { logProbs, entropies, ...(largest && { largest }) };
}

interface Chunk {
  /** the chunk's first entry of the vocabulary, and its number of entries */
  begin: number;
  count: number;
  weight: (pass: "forward" | "backward") => Value;
}

/** The chunks of the output layer, of at most `size` entries if W is one value. */
function chunksOf(layer: OutputLayer, size: number): Chunk[] {
  if ("shape" in layer) {
    const vocabulary = layer.shape[0] as number;
    return Array.from({ length: Math.ceil(vocabulary / size) }, (_, i) => {
      const begin = i * size;
      const count = Math.min(size, vocabulary - begin);
      return { begin, count, weight: () => cast(slice(layer, 0, begin, begin + count), "float32") };
    });
  }
  let end = 0;
  return layer.map((chunk) => {
    const count = chunk.forward.shape[0] as number;
    end += count;
    return { begin: end - count, count, weight: (pass) => chunk[pass] };
  });
}
