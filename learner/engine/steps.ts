/** The graphs that evaluate and train. Inputs: weights, sequences and loss inputs. Outputs: loss, per-token numbers and gradients. */

import type { Adaptation, Role } from "./adaptation.ts";
import { gradients } from "./graph/gradients.ts";
import { type Compute, Graph, type KernelSource, type Value } from "./graph/graph.ts";
import { concat, plus } from "./graph/primitives.ts";
import { crossEntropy, policyLoss, policyLossInputs, valueLoss, valueLossInputs } from "./losses.ts";
import { decoder, decoderInputs, RESPONSE } from "./model/decoder.ts";
import { tokenLogProbs } from "./model/token-log-probs.ts";
import { valueHead, valueHeadParameters } from "./model/value-head.ts";

/** Prefix of the output with the sum of a parameter's gradients so far. */
export const GRADIENT_PREFIX = "gradient of ";
/** Prefix of the output with the bfloat16 gradient, of this micro-batch alone, of a parameter that is fed in bfloat16 (model/halved.ts). */
export const HALF_GRADIENT_PREFIX = "bfloat16 gradient of ";
/**
 * Prefix of the input to which a float32 gradient is added: the sum so far. It may be the output's tensor, because nothing else reads it.
 */
export const SUM_PREFIX = "sum of ";

export interface StepOptions {
  /** Whether layers are computed again in the backward pass instead of being kept; default false. */
  checkpointing?: boolean;
  /** Format of matrix products; weights and gradients are always float32. Default float32. */
  compute?: Compute;
  /** Our own kernels on the device, for a graph that computes in bfloat16; left out: none. */
  kernels?: KernelSource | undefined;
  /** Blocks of attention, as in the feeds (../model/decoder.ts); default: for short sequences. */
  blocks?: number | undefined;
}

type EvaluationOptions = Pick<StepOptions, "compute" | "kernels" | "blocks">;
type TrunkOptions = StepOptions & { requiresGrad: boolean };
type PolicyOptions = TrunkOptions & { largest?: boolean };

function trunk(g: Graph, model: Adaptation, role: Role, { requiresGrad, checkpointing, blocks }: TrunkOptions) {
  const { weights, project, ...rest } = model.trunk(g, role, { requiresGrad });
  const inputs = decoderInputs(g, model.config, blocks);
  return { ...rest, hidden: decoder(model.config, weights, inputs, { project, checkpointing }) };
}

function policyTrunk(g: Graph, model: Adaptation, role: Role, { largest, ...options }: PolicyOptions) {
  const { trained, hidden, outputLayer } = trunk(g, model, role, options);
  const targets = g.input("targets", "int32", [RESPONSE]);
  const inverseTemperature = g.input("inverseTemperature", "float32", []);
  return { trained, ...tokenLogProbs(hidden, outputLayer!, targets, inverseTemperature, { largest }) };
}

function criticTrunk(g: Graph, model: Adaptation, options: TrunkOptions) {
  const head = valueHeadParameters(g, model.config, options);
  const { trained, hidden } = trunk(g, model, "critic", options);
  return { trained: new Map([...trained, ...head]), values: valueHead(hidden, head) };
}

function outputGradients(g: Graph, loss: Value, trained: ReadonlyMap<string, Value>): void {
  g.output("loss", loss);
  const cotangents = gradients(loss, [...trained.values()]);
  for (const [i, [name, { dtype, shape }]] of [...trained].entries()) {
    if (dtype === "bfloat16") g.output(HALF_GRADIENT_PREFIX + name, cotangents[i]);
    else g.output(GRADIENT_PREFIX + name, plus(g.input(SUM_PREFIX + name, dtype, shape), cotangents[i]));
  }
}

/** Outputs: logProbs, and the policy's entropies. */
export function evaluateGraph(model: Adaptation, role: Role, options: EvaluationOptions = {}): Graph {
  const g = new Graph("evaluate", options);
  const { logProbs, entropies } = policyTrunk(g, model, role, { requiresGrad: false, ...options });
  g.output("logProbs", logProbs);
  if (role === "policy") g.output("entropies", entropies);
  return g;
}

/** Outputs: logProbs, and the log-probs of the most probable tokens, `largest`. */
export function accuracyGraph(model: Adaptation, options: EvaluationOptions = {}): Graph {
  const g = new Graph("accuracy", options);
  const { logProbs, largest } = policyTrunk(g, model, "policy", { requiresGrad: false, largest: true, ...options });
  g.output("logProbs", logProbs);
  g.output("largest", largest!);
  return g;
}

/** Outputs: values. */
export function valueGraph(model: Adaptation, options: EvaluationOptions = {}): Graph {
  const g = new Graph("values", options);
  g.output("values", criticTrunk(g, model, { requiresGrad: false, ...options }).values);
  return g;
}

/** Inputs: sums of gradients. Outputs: loss; tokens: logProbs, then entropies, which leave a GPU in one copy; the new sums. */
export function policyStepGraph(model: Adaptation, options: StepOptions = {}): Graph {
  const g = new Graph("policy_step", options);
  const { trained, logProbs, entropies } = policyTrunk(g, model, "policy", { requiresGrad: true, ...options });
  g.output("tokens", concat([logProbs, entropies], 0));
  outputGradients(g, policyLoss(logProbs, entropies, policyLossInputs(g)), trained);
  return g;
}

/** Inputs: sums of gradients. Outputs: loss, the new sums. */
export function pretrainStepGraph(model: Adaptation, options: StepOptions = {}): Graph {
  const g = new Graph("pretrain_step", options);
  const { trained, logProbs } = policyTrunk(g, model, "policy", { requiresGrad: true, ...options });
  outputGradients(g, crossEntropy(logProbs, g.input("scale", "float32", [RESPONSE])), trained);
  return g;
}

/** Inputs: sums of gradients. Outputs: loss, values, the new sums. */
export function valueStepGraph(model: Adaptation, options: StepOptions = {}): Graph {
  const g = new Graph("value_step", options);
  const { trained, values } = criticTrunk(g, model, { requiresGrad: true, ...options });
  g.output("values", values);
  outputGradients(g, valueLoss(values, valueLossInputs(g)), trained);
  return g;
}
