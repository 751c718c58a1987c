/**
 * Forward pass of a Qwen2 / Qwen3 / Llama decoder for training and evaluation: rows of tokens in, hidden states that predict response
 * tokens out. Generation has a graph of its own (generate.ts).
 *
 * A row is a prompt and all of its responses in one graph, so that the prompt is computed once:
 *
 *     token     p0 p1 ... p(n-2)   p(n-1) r0 r1 ...   p(n-1) s0 s1 ...
 *     branch     0  0 ...  0          1    1  1 ...      2    2  2 ...
 *     position   0  1 ... n-2        n-1   n n+1 ...    n-1   n n+1 ...
 *
 * A branch sees the prompt and itself. It begins with the prompt's last token, which predicts its first one; its last token predicts
 * none and is not there.
 *
 * A graph's inputs are lines of tokens, [batch, time]. Rows stand one after the other in one line, or each in a line of its own (`RowLayout`);
 * padding then stands on the right, where the causal mask hides it from real tokens.
 */
import { attention, MASKED, masksOf, sightInputs, spansOf } from "../graph/attention.ts";
import {
  affine,
  embedding,
  embeddingPlan,
  normOf,
  plusOutput,
  rmsNorm,
  rows,
  type Stream,
  swiglu,
  turned,
} from "../graph/composites.ts";
import { fusesAttention, packsRows } from "../graph/fused.ts";
import type { Graph, Value } from "../graph/graph.ts";
import type { Dims } from "../graph/memory.ts";
import { add, cast, reshape } from "../graph/primitives.ts";
import { half, type LinearOutput, linear, narrows } from "../graph/products.ts";
import { checkpoint } from "../graph/recomputation.ts";
import { product } from "../graph/shapes.ts";
import { type Tensor, tensor } from "../graph/tensor.ts";
import type { ModelConfig } from "./config.ts";
import { parameterInput } from "./halved.ts";
import { rotaryTable } from "./rotary.ts";
import { EMBEDDING, OUTPUT_LAYER, parameters } from "./weights.ts";

const BATCH = "batch";
const BLOCK = "block";
const DISTINCT = "distinct";
const POSITIONS = "angles";
const timeOf = (blocks: number) => product([blocks, BLOCK]);
const tokensOf = (blocks: number) => product([BATCH, timeOf(blocks)]);

/** Tokens of a block of queries, if a row has at most MOST_BLOCKS blocks. */
const BLOCK_TOKENS = 512;
const MOST_BLOCKS = 32;
/** Two blocks save a quarter of attention's work; more blocks cost too many small kernels at 250 tokens. */
const FEWEST_BLOCKS = 2;

/**
 * Blocks of queries in attention: a layer holds the scores of one block, and leaves later keys out. Their number belongs to a
 * graph, so all sequences of a run have the number of the `longest` row, tokens.
 */
export const blocksOf = (longest: number): number =>
  Math.min(MOST_BLOCKS, Math.max(FEWEST_BLOCKS, 2 ** Math.ceil(Math.log2(longest / BLOCK_TOKENS))));
/** the named dim of all response tokens in a micro-batch */
export const RESPONSE = "response";

/** Where the rows of a micro-batch stand. Micro-batches, their feeds and their planned memory must agree on it. */
export interface RowLayout {
  /** one after the other in one line, without padding; otherwise each in a line of its own, padded to the longest */
  readonly packs: boolean;
  /** blocks of queries of a line, to a multiple of which it is padded */
  readonly blocks: number;
}

const PACKED: RowLayout = { packs: true, blocks: 1 };

/** Returns the layout of a run whose graphs have these options. @param longest tokens of its longest row */
export const rowLayout = (
  options: Parameters<typeof packsRows>[0],
  { headSize }: Pick<ModelConfig, "headSize">,
  longest = 0,
): RowLayout => rowLayoutOf(packsRows(options, headSize), longest);

/** Returns the same where it is known whether the graphs pack rows. */
export const rowLayoutOf = (packs: boolean, longest = 0): RowLayout =>
  packs ? PACKED : { packs, blocks: blocksOf(longest) };

/** @param asked number of blocks of queries in attention, as in `decoderFeeds`; a kernel attends to all at once, and takes any layout */
export function decoderInputs(g: Graph, config: ModelConfig, asked = FEWEST_BLOCKS) {
  const blocks = fusesAttention({ graph: g }, config.headSize) ? 1 : asked;
  const [TIME, ROWS] = [timeOf(blocks), tokensOf(blocks)];
  const each = (name: string) => g.input(name, "int32", [BATCH, TIME]);
  const ofDistinct = (name: string) => g.input(name, "int32", [DISTINCT]);
  const angles = (name: string) => g.input(name, "float32", [POSITIONS, config.headSize / 2]);
  const ids = each("ids");
  return {
    blocks,
    sight: sightInputs(g, { batch: BATCH, blocks, block: BLOCK, headSize: config.headSize }),
    ids: reshape(ids, [ROWS]),
    plan: {
      order: reshape(each("order"), [product([BATCH, blocks]), BLOCK]),
      distinct: g.input("distinct", "int32", [DISTINCT, 1]),
      begins: ofDistinct("begins"),
      ends: ofDistinct("ends"),
    },
    /** position of each token in its prompt and response, int64 */
    positions: cast(each("positions"), "int64"),
    rotary: { cos: angles("cos"), sin: angles("sin"), negativeSin: angles("negativeSin") },
    /** positions in [batch*time] that predict response tokens */
    predicting: g.input("predicting", "int32", [RESPONSE]),
    /** inverse of `predicting`: each position's place in it, or the length of `predicting` */
    inverse: reshape(each("inverse"), [ROWS]),
  };
}

/** The decoder's parameters as graph inputs (halved.ts), by their name in Hugging Face. */
export const decoderParameters = (g: Graph, config: ModelConfig, options: { requiresGrad: boolean }) =>
  new Map(parameters(config).map(({ name, shape }) => [name, parameterInput(g, name, shape, options)]));

/** Returns the output [rows, out] of the linear layer `path`, such as `model.layers.0.mlp.up_proj`, for x [rows, in]. */
export type Project = (x: Value, path: string) => LinearOutput;

/** y + bias, in bfloat16 or, with `wide`, in float32, where a large bias does not round away the other summand. */
export function withBias(y: Value, bias: Value | undefined, wide: boolean): Value {
  const widened = wide ? cast(y, "float32") : y;
  return bias ? add(widened, wide ? bias : half(bias)) : widened;
}

/** Linear layers with these weights alone. */
function plain(weights: ReadonlyMap<string, Value>): Project {
  return (x, path) => {
    const matrix = weights.get(`${path}.weight`)!;
    const bias = weights.get(`${path}.bias`);
    const product = () => linear(x, matrix);
    const narrow = () => (bias ? affine(x, matrix, bias) : product());
    return { narrow, wide: () => (narrows(x) ? withBias(product(), bias, true) : narrow()), product, bias };
  };
}

/**
 * Hidden states after the last norm at `predicting`, [response, hiddenSize]: float32, or bfloat16 from a kernel. Weights are float32; the
 * embedding may be in half precision.
 *
 * @param options `project`: the linear layers, left out: weights and nothing else; `checkpointing`: of each layer but the last, whose
 *   backward comes first, only the input is kept for the backward pass, which computes the layer again
 */
export function decoder(
  config: ModelConfig,
  weights: ReadonlyMap<string, Value>,
  inputs: ReturnType<typeof decoderInputs>,
  { project: linearLayer = plain(weights), checkpointing = false }: { project?: Project; checkpointing?: boolean } = {},
): Value {
  const weight = (name: string) => weights.get(name)!;
  const { headSize, heads, keyValueHeads, normEpsilon } = config;
  const { blocks } = inputs;
  const TIME = timeOf(blocks);
  const recompute = blocks > FEWEST_BLOCKS;
  const shape = { batch: BATCH, blocks, block: BLOCK, heads, keyValueHeads, headSize, recompute };
  const masks = masksOf(inputs.sight, shape);
  const layerOutput = (stream: Stream, layer: number): Stream => {
    const at = (name: string) => weight(`model.layers.${layer}.${name}`);
    const project = (value: Value, name: string) => linearLayer(value, `model.layers.${layer}.${name}`);
    const headNorm = (name: string) =>
      config.queryKeyNorm ? (each: Value) => rmsNorm(each, at(`self_attn.${name}.weight`), normEpsilon) : undefined;
    const turn = (letter: "q" | "k", count: number) => {
      const place = { batch: BATCH, time: TIME, heads: count, positions: inputs.positions };
      return turned(project(normed, `self_attn.${letter}_proj`), inputs.rotary, place, headNorm(`${letter}_norm`));
    };
    let [x, normed] = normOf(stream, at("input_layernorm.weight"), normEpsilon);
    const [query, key] = [turn("q", heads), turn("k", keyValueHeads)];
    let context = attention(query, key, project(normed, "self_attn.v_proj").narrow(), masks, shape);
    if (layer === config.layers - 1) {
      // past the last attention no token reads other tokens
      context = rows(context, inputs.predicting, inputs.inverse);
      x = rows(x, inputs.predicting, inputs.inverse);
    }
    const between = plusOutput(x, project(context, "self_attn.o_proj"));
    const [sum, inner] = normOf(between, at("post_attention_layernorm.weight"), normEpsilon);
    const gated = swiglu(project(inner, "mlp.gate_proj").narrow(), project(inner, "mlp.up_proj").narrow());
    return plusOutput(sum, project(gated, "mlp.down_proj"));
  };
  let stream: Stream = [cast(embedding(weight(EMBEDDING), inputs.ids, inputs.plan), "float32")];
  for (let layer = 0; layer < config.layers; layer++) {
    const output = (input: Stream) => layerOutput(input, layer);
    stream = checkpointing && layer < config.layers - 1 ? checkpoint(stream, output) : output(stream);
  }
  return normOf(stream, weight("model.norm.weight"), normEpsilon)[1];
}

/** Returns the matrix that computes logits from hidden states, [vocabSize, hiddenSize]. */
export function outputLayer(config: ModelConfig, weights: ReadonlyMap<string, Value>): Value {
  return weights.get(config.tied ? EMBEDDING : OUTPUT_LAYER)!;
}

export interface DecoderRow {
  /** token ids, at least one */
  prompt: Int32Array;
  responses: readonly Int32Array[];
}

/** Returns the tokens of a row with a prompt and responses of these lengths. */
export const rowTokens = (promptTokens: number, responseTokens: number): number => promptTokens - 1 + responseTokens;

/** Time of a number in attention's scores, relative to a number in a linear layer: its products are small, and softmax is part of it. */
const ATTENTION_FACTOR = 2.5;

/**
 * The length at which a row's attention costs as much as its linear layers, tokens: a row of n costs n (1 + n / this). A kernel multiplies no
 * tokens that do not see each other, so longer rows cost it nothing.
 */
export function attentionLength(
  { hiddenSize, intermediateSize, heads, keyValueHeads, headSize }: ModelConfig,
  { packs, blocks }: RowLayout = rowLayoutOf(false),
): number {
  if (packs) return Number.POSITIVE_INFINITY;
  const linear = hiddenSize * headSize * (2 * heads + 2 * keyValueHeads) + 3 * hiddenSize * intermediateSize;
  const attention = 2 * heads * headSize * ((blocks + 1) / (2 * blocks)); // of a pair of tokens
  return linear / (ATTENTION_FACTOR * attention);
}

/** Returns the number of lines that rows of these lengths take, and the tokens of a block and of a line. */
function linesOf(rows: { count: number; longest: number; total: number }, { packs, blocks }: RowLayout) {
  const block = Math.ceil((packs ? rows.total : rows.longest) / blocks);
  return { lines: packs ? 1 : rows.count, block, time: blocks * block };
}

/** The named dims of rows of one response, without their feeds. @param distinct different tokens among them */
export function decoderDims(
  { sequences, promptTokens, responseTokens }: { sequences: number; promptTokens: number; responseTokens: number },
  distinct: number,
  layout = rowLayoutOf(false),
): Dims {
  const length = rowTokens(promptTokens, responseTokens);
  const { lines, block, time } = linesOf({ count: sequences, longest: length, total: sequences * length }, layout);
  return {
    [BATCH]: lines,
    [BLOCK]: block,
    [RESPONSE]: sequences * responseTokens,
    [DISTINCT]: distinct,
    [POSITIONS]: layout.packs ? length : time,
  };
}

/** Feeds of `decoderInputs` for some rows; response tokens follow each other row by row. */
export function decoderFeeds(
  batch: readonly DecoderRow[],
  config: ModelConfig,
  layout = rowLayoutOf(false),
): Record<string, Tensor> {
  const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);
  const responded = batch.map(({ responses }) => sum(responses.map(({ length }) => length)));
  const lengths = batch.map(({ prompt }, row) => rowTokens(prompt.length, responded[row]!));
  const rows = { count: batch.length, longest: Math.max(...lengths), total: sum(lengths) };
  const { lines, block, time } = linesOf(rows, layout);
  let end = 0;
  const places = lengths.map((tokens, row) => {
    const begin = layout.packs ? end : row * time;
    end += tokens;
    return { begin, tokens };
  });
  const responseTokens = sum(responded);
  const each = () => new Int32Array(lines * time);
  const [ids, branches, positions, inverse] = [each(), each(), each(), each().fill(responseTokens)];
  const predicting = new Int32Array(responseTokens);
  let next = 0;
  for (const [row, { prompt, responses }] of batch.entries()) {
    const last = prompt.length - 1;
    let at = places[row]!.begin;
    for (let t = 0; t < last; t++) positions[at + t] = t;
    ids.set(prompt.subarray(0, last), at);
    at += last;
    for (const [i, response] of responses.entries()) {
      for (let t = 0; t < response.length; t++, at++) {
        ids[at] = t === 0 ? prompt[last] : response[t - 1];
        branches[at] = i + 1;
        positions[at] = last + t;
        predicting[next] = at;
        inverse[at] = next++;
      }
    }
  }
  const spans = spansOf(branches, places);
  const { order, distinct, begins, ends } = embeddingPlan(ids, config.vocabSize);
  // ONNX Runtime's operator wants an angle for each place of a line
  const angled = layout.packs ? positions.reduce((most, position) => Math.max(most, position + 1), 1) : time;
  const { cosines, sines } = rotaryTable(config, angled);
  const negative = sines.map((value) => -value);
  const shape = [lines, time];
  const angles = [angled, config.headSize / 2];
  return {
    ids: tensor(ids, shape),
    order: tensor(order, shape),
    distinct: tensor(distinct, [distinct.length, 1]),
    begins: tensor(begins),
    ends: tensor(ends),
    branches: tensor(branches, shape),
    spans: tensor(spans, [4, lines * time]),
    positions: tensor(positions, shape),
    predicting: tensor(predicting),
    inverse: tensor(inverse, shape),
    ...(!layout.packs && { triangle: triangleOf(block) }),
    cos: tensor(cosines, angles),
    sin: tensor(sines, angles),
    negativeSin: tensor(negative, angles),
  };
}

/** The mask of a block of queries and its own keys, float32 [block, block]. */
function triangleOf(block: number): Tensor {
  const triangle = new Float32Array(block * block);
  for (let row = 0; row < block; row++) triangle.fill(MASKED, row * block + row + 1, (row + 1) * block);
  return tensor(triangle, [block, block]);
}

/** The tokens that hidden states predict: the response tokens of the rows, int32 [response]. */
export function targetFeeds(batch: readonly DecoderRow[]): { targets: Tensor } {
  return { targets: tensor(Int32Array.from(batch.flatMap(({ responses }) => responses.flatMap((r) => [...r])))) };
}
