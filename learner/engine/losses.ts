/** PPO's clipped losses over all response tokens of a micro-batch: the policy's with entropy bonus and KL penalty, and the critic's. */
import type { Graph, Value } from "./graph/graph.ts";
import { add, clip, exp, less, maximum, minimum, mul, neg, square, sub, sum, where } from "./graph/primitives.ts";
import { RESPONSE } from "./model/decoder.ts";

const LOG_RATIO_LIMIT = 20; // largest |log ratio|, whose exp is finite in float32 (verl)
const KL_LIMIT = 10; // largest KL of one token in the loss (verl)

/** Makes inputs with one number per response token, and inputs with one number for all; float32. */
const inputs = <T extends string, S extends string>(g: Graph, tokens: readonly T[], scalars: readonly S[]) =>
  Object.fromEntries([
    ...tokens.map((name) => [name, g.input(name, "float32", [RESPONSE])]),
    ...scalars.map((name) => [name, g.input(name, "float32", [])]),
  ]) as Record<T | S, Value>;

/**
 * Inputs of the policy's loss. Scales include 1 / normaliser: `policyScale` is sample weight * importance, `entropyScale` the entropy
 * coefficient, `klScale` the KL coefficient, or 0 if KL is part of the reward. `ratioLow`, `ratioHigh`: 1 - eps_low and 1 + eps_high.
 * `dualClip`: c of dual clip; very large: off.
 */
export const policyLossInputs = (g: Graph) =>
  inputs(
    g,
    ["proximalLogProbs", "advantages", "policyScale", "entropyScale", "referenceLogProbs", "klScale"],
    ["ratioLow", "ratioHigh", "dualClip"],
  );

/** Returns the scalar sum over tokens of policyScale * max(-A ratio, -A clip(ratio)) - entropyScale * entropy + klScale * KL. */
export function policyLoss(logProbs: Value, entropies: Value, inputs: ReturnType<typeof policyLossInputs>): Value {
  const { advantages: a } = inputs;
  const ratio = exp(clip(sub(logProbs, inputs.proximalLogProbs), -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT));
  const loss = neg(minimum(mul(ratio, a), mul(clip(ratio, inputs.ratioLow, inputs.ratioHigh), a)));
  const bounded = where(less(a, 0), minimum(loss, neg(mul(a, inputs.dualClip))), loss);
  const surrogate = sub(sum(mul(bounded, inputs.policyScale)), sum(mul(entropies, inputs.entropyScale)));
  return add(surrogate, sum(mul(klToReference(logProbs, inputs.referenceLogProbs), inputs.klScale)));
}

/** Returns per token exp(d) - d - 1 with d = log pi_ref - log pi: the k3 estimate (Schulman 2020; GRPO, eq. 4). */
function klToReference(logProbs: Value, referenceLogProbs: Value): Value {
  const d = clip(sub(referenceLogProbs, logProbs), -LOG_RATIO_LIMIT, LOG_RATIO_LIMIT);
  return clip(sub(sub(exp(d), d), 1), -KL_LIMIT, KL_LIMIT);
}

/** Returns the sum over tokens of -scale * log-prob: cross entropy. */
export function crossEntropy(logProbs: Value, scale: Value): Value {
  return neg(sum(mul(logProbs, scale)));
}

/** `valueScale`: factor of a token's loss, 1 / normaliser. `valueClip`: how far V may move from its old value. */
export const valueLossInputs = (g: Graph) => inputs(g, ["oldValues", "returns", "valueScale"], ["valueClip"]);

/** Returns the scalar sum over tokens of valueScale * 0.5 max((V - R)^2, (clip(V, V_old +- valueClip) - R)^2). */
export function valueLoss(
  values: Value,
  { oldValues, returns, valueScale, valueClip }: ReturnType<typeof valueLossInputs>,
): Value {
  const clipped = add(oldValues, clip(sub(values, oldValues), mul(valueClip, -1), valueClip));
  const worst = maximum(square(sub(values, returns)), square(sub(clipped, returns)));
  return mul(sum(mul(worst, valueScale)), 0.5);
}
