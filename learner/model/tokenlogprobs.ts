/** Output layer, log-softmax, log-prob of the chosen token and entropy as one operator, so that logits are held once. */
import { custom } from "../graph/gradients.ts";
import type { Value } from "../graph/graph.ts";
import {
  add,
  exp,
  gatherElements,
  logSoftmax,
  matmul,
  mul,
  neg,
  reshape,
  scatterElements,
  sum,
} from "../graph/primitives.ts";

export interface TokenLogProbs {
  /** log softmax(hidden W^T / temperature)[target], float32 [rows] */
  logProbs: Value;
  /** entropy of the same distribution in nats, float32 [rows] */
  entropies: Value;
}

/**
 * hidden float32 [rows, size], weight [vocabulary, size], targets int32 [rows], inverseTemperature a float32 scalar.
 *
 * With p the probabilities and H the entropy, d logits = dLogProb (onehot - p) - dEntropy p (log p + H).
 */
export function tokenLogProbs(hidden: Value, weight: Value, targets: Value, inverseTemperature: Value): TokenLogProbs {
  const [rowCount] = hidden.shape;
  const column = (x: Value) => reshape(x, [rowCount, 1]);
  const index = column(targets);
  let saved: { scaled: Value; logs: Value; entropy: Value };
  const [logProbs, entropies] = custom(
    [hidden, weight],
    ([h, w]) => {
      const scaled = mul(h, inverseTemperature); // cheaper than dividing the logits
      const logs = logSoftmax(matmul(scaled, w, { transB: true }));
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
        hidden.requiresGrad ? mul(matmul(dLogits, weight), inverseTemperature) : undefined,
        weight.requiresGrad ? matmul(dLogits, scaled, { transA: true }) : undefined,
      ];
    },
  );
  return { logProbs, entropies };
}
