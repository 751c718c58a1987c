/**
 * Forward pass of a Qwen2 / Qwen3 / Llama decoder for training and evaluation: right-padded sequences in, hidden states at the
 * positions that predict response tokens out. Generation has a graph of its own (generate.ts).
 *
 * Padding stands on the right, so the causal mask alone keeps it out of what real tokens see; what padding computes itself
 * is never read.
 */
import { attention, causalMasks } from "../graph/attention.ts";
import { checkpoint } from "../graph/checkpoint.ts";
import {
  affine,
  type EmbeddingPlan,
  embedding,
  embeddingPlan,
  rmsNorm,
  rotary,
  rows,
  swiglu,
} from "../graph/composites.ts";
import type { Graph, Value } from "../graph/graph.ts";
import type { Dims } from "../graph/memory.ts";
import { add, cast, linear, reshape } from "../graph/primitives.ts";
import { product } from "../graph/shapes.ts";
import { type Tensor, tensor } from "../graph/tensor.ts";
import type { ModelConfig } from "./config.ts";
import { rotaryTable } from "./rotary.ts";
import { parameters } from "./weights.ts";

export interface DecoderInputs {
  /** int32 [batch*time] */
  ids: Value;
  plan: EmbeddingPlan;
  /** float32 [block, block], a large negative number above the diagonal */
  triangle: Value;
  /** float32 [time, headSize / 2] */
  cos: Value;
  sin: Value;
  negativeSin: Value;
  /** rows of [batch*time] whose logits are wanted, int32 [response] */
  positions: Value;
  /** its inverse: for each row its place in `positions`, or their number, int32 [batch*time] */
  inverse: Value;
}

const BATCH = "batch";
/** Attention goes in this many blocks of queries. Two save a quarter of its work; more cost too many small kernels at 250 tokens. */
const BLOCKS = 2;
const BLOCK = "block";
const TIME = product([BLOCKS, BLOCK]);
const DISTINCT = "distinct";
const ROWS = product([BATCH, TIME]);
/** the named dim of all response tokens in a micro-batch */
export const RESPONSE = "response";

export function decoderInputs(g: Graph, config: ModelConfig): DecoderInputs {
  const half = config.headSize / 2;
  const ids = g.input("ids", "int32", [BATCH, TIME]);
  return {
    ids: reshape(ids, [ROWS]),
    plan: {
      order: reshape(g.input("order", "int32", [BATCH, TIME]), [ROWS]),
      distinct: g.input("distinct", "int32", [DISTINCT, 1]),
      begins: g.input("begins", "int32", [DISTINCT]),
      ends: g.input("ends", "int32", [DISTINCT]),
    },
    triangle: g.input("triangle", "float32", [BLOCK, BLOCK]),
    cos: g.input("cos", "float32", [TIME, half]),
    sin: g.input("sin", "float32", [TIME, half]),
    negativeSin: g.input("negativeSin", "float32", [TIME, half]),
    positions: g.input("positions", "int32", [RESPONSE]),
    inverse: reshape(g.input("inverse", "int32", [BATCH, TIME]), [ROWS]),
  };
}

/** The decoder's parameters as graph inputs named as in Hugging Face, by that name. */
export function decoderParameters(
  g: Graph,
  config: ModelConfig,
  options: { requiresGrad: boolean },
): Map<string, Value> {
  return new Map(parameters(config).map(({ name, shape }) => [name, g.input(name, "float32", shape, options)]));
}

/** The output [rows, out] of the linear layer `path`, such as `model.layers.0.mlp.up_proj`, for x [rows, in]. */
export type Project = (x: Value, path: string) => Value;

/** Linear layers with these weights and nothing else. */
function plain(weights: ReadonlyMap<string, Value>): Project {
  return (x, path) => {
    const matrix = weights.get(`${path}.weight`)!;
    const bias = weights.get(`${path}.bias`);
    return bias ? affine(x, matrix, bias) : linear(x, matrix);
  };
}

export interface DecoderOptions {
  /** the linear layers; left out: weights and nothing else */
  project?: Project;
  /**
   * Of each layer but the last only the input is kept for the backward pass, which computes the layer again. The last
   * layer's backward comes first, so what it keeps would have to be there then anyway.
   */
  checkpointing?: boolean;
}

/**
 * Hidden states after the last norm at `positions`: float32 [response, hiddenSize]. Weights are float32; the embedding may
 * be in half precision.
 */
export function decoder(
  config: ModelConfig,
  weights: ReadonlyMap<string, Value>,
  inputs: DecoderInputs,
  { project: linearLayer = plain(weights), checkpointing = false }: DecoderOptions = {},
): Value {
  const weight = (name: string) => weights.get(name)!;
  const { headSize, heads, keyValueHeads, normEpsilon } = config;
  const shape = { batch: BATCH, blocks: BLOCKS, block: BLOCK, heads, keyValueHeads, headSize };
  const masks = causalMasks(inputs.triangle, BLOCKS);
  const layerOutput = (input: Value, layer: number): Value => {
    let x = input;
    const at = (name: string) => weight(`model.layers.${layer}.${name}`);
    const project = (value: Value, name: string) => linearLayer(value, `model.layers.${layer}.${name}`);
    /** an RMSNorm over each head, in the models that have one */
    const headNorm = (value: Value, name: string, count: number) =>
      config.queryKeyNorm
        ? reshape(
            rmsNorm(reshape(value, [product([ROWS, count]), headSize]), at(`self_attn.${name}.weight`), normEpsilon),
            [ROWS, count * headSize],
          )
        : value;
    const turn = (value: Value, count: number) =>
      reshape(
        rotary(reshape(value, [BATCH, TIME, count * headSize]), inputs.cos, inputs.sin, inputs.negativeSin, count),
        [ROWS, count * headSize],
      );
    const normed = rmsNorm(x, at("input_layernorm.weight"), normEpsilon);
    const query = turn(headNorm(project(normed, "self_attn.q_proj"), "q_norm", heads), heads);
    const key = turn(headNorm(project(normed, "self_attn.k_proj"), "k_norm", keyValueHeads), keyValueHeads);
    let context = attention(query, key, project(normed, "self_attn.v_proj"), masks, shape);
    if (layer === config.layers - 1) {
      // past the last attention nobody looks at other positions any more
      context = rows(context, inputs.positions, inputs.inverse);
      x = rows(x, inputs.positions, inputs.inverse);
    }
    x = add(x, project(context, "self_attn.o_proj"));
    const inner = rmsNorm(x, at("post_attention_layernorm.weight"), normEpsilon);
    const gated = swiglu(project(inner, "mlp.gate_proj"), project(inner, "mlp.up_proj"));
    return add(x, project(gated, "mlp.down_proj"));
  };
  let x = cast(embedding(weight("model.embed_tokens.weight"), inputs.ids, inputs.plan), "float32");
  for (let layer = 0; layer < config.layers; layer++) {
    const output = ([input]: Value[]) => [layerOutput(input, layer)];
    [x] = checkpointing && layer < config.layers - 1 ? checkpoint([x], output) : output([x]);
  }
  return rmsNorm(x, weight("model.norm.weight"), normEpsilon);
}

/** The matrix that makes logits of hidden states, [vocabSize, hiddenSize]. */
export function outputLayer(config: ModelConfig, weights: ReadonlyMap<string, Value>): Value {
  return weights.get(config.tied ? "model.embed_tokens.weight" : "lm_head.weight")!;
}

export interface TokenSequence {
  prompt: Int32Array;
  response: Int32Array;
}

const blockOf = (longest: number): number => Math.ceil(longest / BLOCKS);

/** What sequences of one length make of the named dims, without their feeds, whose mask grows with the length's square. */
export function decoderDims(
  { sequences, promptTokens, responseTokens }: { sequences: number; promptTokens: number; responseTokens: number },
  /** different tokens among them */
  distinct: number,
): Dims {
  return {
    [BATCH]: sequences,
    [BLOCK]: blockOf(promptTokens + responseTokens),
    [RESPONSE]: sequences * responseTokens,
    [DISTINCT]: distinct,
  };
}

/** Feeds of `decoderInputs` for some sequences, padded to the longest; response tokens follow each other sequence by sequence. */
export function decoderFeeds(sequences: readonly TokenSequence[], config: ModelConfig): Record<string, Tensor> {
  const batch = sequences.length;
  const lengths = sequences.map(({ prompt, response }) => prompt.length + response.length);
  const time = BLOCKS * blockOf(Math.max(...lengths));
  const ids = new Int32Array(batch * time);
  const responseTokens = sequences.reduce((total, { response }) => total + response.length, 0);
  const positions = new Int32Array(responseTokens);
  const inverse = new Int32Array(batch * time).fill(responseTokens);
  let next = 0;
  for (const [row, { prompt, response }] of sequences.entries()) {
    ids.set(prompt, row * time);
    ids.set(response, row * time + prompt.length);
    for (let t = 0; t < response.length; t++) {
      const position = row * time + prompt.length + t - 1; // the one that predicts response[t]
      positions[next] = position;
      inverse[position] = next++;
    }
  }
  const { order, distinct, begins, ends } = embeddingPlan(ids, config.vocabSize);
  return {
    ids: tensor(ids, [batch, time]),
    order: tensor(order, [batch, time]),
    distinct: tensor(distinct, [distinct.length, 1]),
    begins: tensor(begins),
    ends: tensor(ends),
    positions: tensor(positions),
    inverse: tensor(inverse, [batch, time]),
    ...positionFeeds(time, config),
  };
}

const MASKED = -1e9;

/** Causal mask and rotary tables for a length. */
function positionFeeds(time: number, config: ModelConfig): Record<string, Tensor> {
  const half = config.headSize / 2;
  const block = time / BLOCKS;
  const triangle = new Float32Array(block * block);
  for (let row = 0; row < block; row++) triangle.fill(MASKED, row * block + row + 1, (row + 1) * block);
  const { cosines, sines } = rotaryTable(config, time);
  return {
    triangle: tensor(triangle, [block, block]),
    cos: tensor(cosines, [time, half]),
    sin: tensor(sines, [time, half]),
    negativeSin: tensor(
      sines.map((value) => -value),
      [time, half],
    ),
  };
}
