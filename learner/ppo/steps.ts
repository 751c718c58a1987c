/** The graphs that evaluate and train: weights, sequences and loss inputs in; loss, per-token numbers and gradients out. */
import { gradients } from "../graph/gradients.ts";
import { Graph, type Value } from "../graph/graph.ts";
import type { ModelConfig } from "../model/config.ts";
import { decoder, decoderInputs, decoderParameters, outputLayer, RESPONSE } from "../model/decoder.ts";
import { tokenLogProbs } from "../model/tokenlogprobs.ts";
import { valueHead, valueHeadParameters } from "../model/valuehead.ts";
import { crossEntropy, policyLoss, policyLossInputs } from "./policyloss.ts";
import { valueLoss, valueLossInputs } from "./valueloss.ts";

/** The output that holds a parameter's gradient. */
export const GRADIENT_PREFIX = "gradient of ";

function policyTrunk(g: Graph, config: ModelConfig, requiresGrad: boolean) {
  const weights = decoderParameters(g, config, { requiresGrad });
  const hidden = decoder(config, weights, decoderInputs(g, config));
  const targets = g.input("targets", "int32", [RESPONSE]);
  const inverseTemperature = g.input("inverseTemperature", "float32", []);
  return { weights, ...tokenLogProbs(hidden, outputLayer(config, weights), targets, inverseTemperature) };
}

function criticTrunk(g: Graph, config: ModelConfig, requiresGrad: boolean) {
  const head = valueHeadParameters(g, config, { requiresGrad });
  const trunk = decoderParameters(g, { ...config, tied: true }, { requiresGrad }); // a critic has no output layer
  const hidden = decoder(config, trunk, decoderInputs(g, config));
  return { weights: new Map([...trunk, ...head]), values: valueHead(hidden, head) };
}

function outputGradients(g: Graph, loss: Value, weights: ReadonlyMap<string, Value>): void {
  g.output("loss", loss);
  const cotangents = gradients(loss, [...weights.values()]);
  for (const [i, name] of [...weights.keys()].entries()) g.output(GRADIENT_PREFIX + name, cotangents[i]);
}

/** -> logProbs, and entropies if wanted */
export function evaluateGraph(config: ModelConfig, options: { entropies: boolean }): Graph {
  const g = new Graph("evaluate");
  const { logProbs, entropies } = policyTrunk(g, config, false);
  g.output("logProbs", logProbs);
  if (options.entropies) g.output("entropies", entropies);
  return g;
}

/** -> values */
export function valueGraph(config: ModelConfig): Graph {
  const g = new Graph("values");
  g.output("values", criticTrunk(g, config, false).values);
  return g;
}

/** -> loss, logProbs, entropies, gradients */
export function policyStepGraph(config: ModelConfig): Graph {
  const g = new Graph("policy_step");
  const { weights, logProbs, entropies } = policyTrunk(g, config, true);
  g.output("logProbs", logProbs);
  g.output("entropies", entropies);
  outputGradients(g, policyLoss(logProbs, entropies, policyLossInputs(g)), weights);
  return g;
}

/** -> loss, gradients */
export function pretrainStepGraph(config: ModelConfig): Graph {
  const g = new Graph("pretrain_step");
  const { weights, logProbs } = policyTrunk(g, config, true);
  outputGradients(g, crossEntropy(logProbs, g.input("scale", "float32", [RESPONSE])), weights);
  return g;
}

/** -> loss, values, gradients */
export function valueStepGraph(config: ModelConfig): Graph {
  const g = new Graph("value_step");
  const { weights, values } = criticTrunk(g, config, true);
  g.output("values", values);
  outputGradients(g, valueLoss(values, valueLossInputs(g)), weights);
  return g;
}
