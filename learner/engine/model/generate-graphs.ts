import { type Dim, float, Graph, type Shape, type Value } from "../graph/graph.ts";
import { reshape } from "../graph/primitives.ts";
import type { ModelConfig } from "./config.ts";
import type { GraphWeights } from "./generate-weights.ts";
import { sampleFromAll, sampleFromNucleus, sampleGreedy } from "./sample.ts";

/**
 * The two graphs of generation.
 *
 * `prefillGraph` computes keys and values of prompts. `decodeGraph` samples a chunk of tokens for all rows in one ONNX
 * Loop. A row attends to three segments: its prompt, what earlier chunks generated (both captured from outside the loop,
 * which costs nothing; what a Loop carries is copied in every iteration), and what this chunk has generated so far.
 *
 * Rows are laid out as [slots, group]: the `group` rows of a slot have the same prompt, whose keys are then read once
 * for all of them by one matrix product. Where no row has a twin, group = 1, a graph of its own leaves out what brings a
 * slot's rows together and apart: nine nodes of 43 a layer, and a node costs some 6 us in a small model.
 *
 * A query that is alone with its keys is multiplied by itself, as a vector, though its head's other queries have the same
 * keys: a product of two rows first copies the keys into another order, which takes longer than the product (scores of 128
 * cells of 2 queries on 208 keys of 32: 196 us by themselves, 323 us together; of 7 queries on keys of 64 1.7 and 2.0 ms).
 * On a GPU a cell's queries are multiplied together: by themselves ONNX Runtime copies three arrays of pointers from the host for each product.
 */

export type Sampling = "greedy" | "all" | "nucleus";

export const MASKED = -1e30; // finite: a row of a padded query has nothing but masked keys, and must not become NaN

/** Makes the graph's weights, which are inputs or point into files. */
export type WeightsOf = (graph: Graph) => GraphWeights;

/** Emits float32 operators into one graph; shapes are given, as ONNX Runtime wants them all written down. */
class Emit {
  readonly graph: Graph;
  readonly config: ModelConfig;
  readonly weights: GraphWeights;

  constructor(graph: Graph, config: ModelConfig, weights: GraphWeights) {
    this.graph = graph;
    this.config = config;
    this.weights = weights;
  }

  op(type: string, inputs: (Value | null)[], shape: Shape, attributes = {}, domain = ""): Value {
    return this.graph.op(type, inputs, attributes, [{ dtype: inputs[0]!.dtype, shape }], domain)[0];
  }

  reshape(x: Value, shape: Shape): Value {
    return this.op("Reshape", [x, this.graph.shapeOf(shape)], shape);
  }

  transpose(x: Value, perm: number[]): Value {
    return this.op(
      "Transpose",
      [x],
      perm.map((axis) => x.shape[axis]),
      { perm },
    );
  }

  split(x: Value, axis: number, sizes: number[]): Value[] {
    const shapes = sizes.map((size) => x.shape.map((dim, i) => (i === axis ? size : dim)));
    return this.graph.op(
      "Split",
      [x, this.graph.constant(sizes, "int64")],
      { axis },
      shapes.map((shape) => ({ dtype: x.dtype, shape })),
    );
  }

  matMul(a: Value, b: Value): Value {
    return this.op("MatMul", [a, b], [...a.shape.slice(0, -1), b.shape.at(-1)!]);
  }

  /** a times the transpose of b. */
  matMulTransposed(a: Value, b: Value): Value {
    return this.op("FusedMatMul", [a, b], [...a.shape.slice(0, -1), b.shape.at(-2)!], { transB: 1 }, "com.microsoft");
  }

  /** RMSNorm of x + delta; returns the norm and the sum. */
  addNorm(x: Value, delta: Value, name: string): [Value, Value] {
    const epsilon = float(this.config.normEpsilon);
    const spec = { dtype: x.dtype, shape: x.shape };
    const outputs = this.graph.op(
      "SkipSimplifiedLayerNormalization",
      [x, delta, this.weights.norm(name)],
      { epsilon },
      [spec, { dtype: "float32", shape: [] }, { dtype: "float32", shape: [] }, spec],
      "com.microsoft",
    );
    return [outputs[0], outputs[3]];
  }

  norm(x: Value, weight: Value): Value {
    return this.op("SimplifiedLayerNormalization", [x, weight], x.shape, {
      epsilon: float(this.config.normEpsilon),
      axis: -1,
    });
  }

  /**
   * The RMSNorm that some models have over each query and key; x [..., queries + 1, (time,) headSize], a key-value head's
   * queries and its key. `scales` is of the same shape without leading axes, its time 1.
   */
  headNorm(x: Value, layer: number, shape: Shape): Value {
    if (!this.config.queryKeyNorm) return x;
    const ones = this.graph.constant(new Array(this.config.headSize).fill(1));
    const scales = reshape(this.weights.headNorms(layer), shape);
    return this.op("Mul", [this.norm(x, ones), scales], x.shape);
  }

  /** x [batch, heads, time, headSize] turned by positions int64 [batch, time]. */
  rotary(x: Value, positions: Value, cosines: Value, sines: Value): Value {
    return this.op("RotaryEmbedding", [x, positions, cosines, sines], x.shape, {}, "com.microsoft");
  }

  mlp(x: Value, layer: number): Value {
    const [gate, up] = this.weights.gateAndUp(x, layer);
    const activated = this.op("QuickGelu", [gate], gate.shape, { alpha: float(1) }, "com.microsoft"); // x sigmoid(x)
    return this.weights.linear(this.op("Mul", [activated, up], up.shape), `${layer}.down`);
  }
}

/**
 * Keys and values of prompts, padded on the left, or of a block of one long prompt's tokens after those of the blocks before.
 *
 * Inputs: tokens int64 [prompts, length]; positions int64 [prompts, length]; padding float32
 * [prompts, 1, 1, all] and causal float32 [length, all], 0 or MASKED, all = past + length; cosines, sines; per layer pastKeys,
 * pastValues [prompts, keyValueHeads, past, headSize]. Outputs per layer: keys and values [prompts, keyValueHeads, all, headSize].
 */
export function prefillGraph(config: ModelConfig, weightsOf: WeightsOf): Graph {
  const graph = new Graph("prefill", { opset: 21 });
  const { headSize, keyValueHeads } = config;
  const queries = config.heads / keyValueHeads; // per key-value head
  const tokens = graph.input("tokens", "int64", ["prompts", "length"]);
  const positions = graph.input("positions", "int64", ["prompts", "length"]);
  const padding = graph.input("padding", "float32", ["prompts", 1, 1, "all"]);
  const causal = graph.input("causal", "float32", ["length", "all"]);
  const cosines = graph.input("cosines", "float32", ["positions", headSize / 2]);
  const sines = graph.input("sines", "float32", ["positions", headSize / 2]);
  const emit = new Emit(graph, config, weightsOf(graph));
  const mask = emit.op("Add", [padding, causal], ["prompts", 1, "length", "all"]);

  const flat = "prompts*length";
  let x = emit.weights.embed(emit.reshape(tokens, [flat]));
  let normed = emit.norm(x, emit.weights.norm("0.norm1"));
  for (let layer = 0; ; layer++) {
    const qkv = emit.weights.queryKeyValue(normed, layer);
    const split = emit.reshape(qkv, ["prompts", "length", keyValueHeads, queries + 2, headSize]);
    const [toTurn, value] = emit.split(emit.transpose(split, [0, 2, 3, 1, 4]), 2, [queries + 1, 1]);
    const turned = emit.reshape(
      emit.rotary(
        emit.reshape(emit.headNorm(toTurn, layer, [queries + 1, 1, headSize]), [
          "prompts",
          keyValueHeads * (queries + 1),
          "length",
          headSize,
        ]),
        positions,
        cosines,
        sines,
      ),
      ["prompts", keyValueHeads, queries + 1, "length", headSize],
    );
    const [query, key] = emit.split(turned, 2, [queries, 1]);
    const extended = (name: string, fresh: Value) => {
      const past = graph.input(`${name}.${layer}`, "float32", ["prompts", keyValueHeads, "past", headSize]);
      const block = emit.reshape(fresh, ["prompts", keyValueHeads, "length", headSize]);
      return emit.op("Concat", [past, block], ["prompts", keyValueHeads, "all", headSize], { axis: 2 });
    };
    const keys = extended("pastKeys", key);
    const values = extended("pastValues", value);
    graph.output(`keys.${layer}`, keys);
    graph.output(`values.${layer}`, values);
    if (layer === config.layers - 1) return graph; // no logits are wanted: the last prompt token is decoded
    const rows = `${queries}*length`;
    const scores = emit.reshape(
      emit.matMulTransposed(emit.reshape(query, ["prompts", keyValueHeads, rows, headSize]), keys),
      ["prompts", keyValueHeads * queries, "length", "all"],
    );
    const masked = emit.op("Add", [scores, mask], scores.shape);
    const probabilities = emit.op("Softmax", [masked], masked.shape, { axis: -1 });
    const mixed = emit.matMul(emit.reshape(probabilities, ["prompts", keyValueHeads, rows, "all"]), values);
    const heads = emit.reshape(mixed, ["prompts", config.heads, "length", headSize]);
    const joined = emit.reshape(emit.transpose(heads, [0, 2, 1, 3]), [flat, config.heads * headSize]);
    let delta = emit.weights.linear(joined, `${layer}.out`);
    [normed, x] = emit.addNorm(x, delta, `${layer}.norm2`);
    delta = emit.mlp(normed, layer);
    [normed, x] = emit.addNorm(x, delta, `${layer + 1}.norm1`);
  }
}

/**
 * Samples `steps` tokens for every row.
 *
 * Inputs: token int64 [rows], the last token of each row, rows in the order [slots, group]; positions int64 [cells, 1],
 * that token's position, cells in the order [slots, keyValueHeads, group]; padding float32, 0 or MASKED; uniforms float32
 * [steps, rows]; inverseTemperature, topP float32 []; cosines, sines; per layer promptKeys, promptValues, and pastKeys,
 * pastValues [cells, 1, past, headSize]. Outputs: tokens int64 [steps, rows], logProbs float32 [steps, rows]; per layer
 * keys, values [cells, 1, past + steps, headSize].
 *
 * | `grouped` | padding | promptKeys, promptValues |
 * | --- | --- | --- |
 * | yes | [slots, 1, 1, prompt] | [slots, keyValueHeads, prompt, headSize] |
 * | no: group = 1 | [cells, 1, 1, prompt] | [cells, 1, prompt, headSize] |
 *
 * @param forGpu queries are multiplied as a GPU prefers it: see above
 */
export function decodeGraph(
  config: ModelConfig,
  sampling: Sampling,
  grouped: boolean,
  weightsOf: WeightsOf,
  forGpu = false,
): Graph {
  const graph = new Graph("decode", { opset: 21 });
  const { headSize, keyValueHeads, layers } = config;
  const queries = config.heads / keyValueHeads;
  const group = grouped ? "group" : 1;
  const rows = grouped ? "slots*group" : "slots";
  const cells = `${rows}*${keyValueHeads}`; // one per row and key-value head
  const ofCell = forGpu ? [cells, 1, queries] : [cells, queries, 1]; // its queries as the rows of one product, or one each
  const steps = graph.input("steps", "int64", []);
  const token = graph.input("token", "int64", ["slots", group]);
  const positions = graph.input("positions", "int64", [cells, 1]);
  const padding = graph.input("padding", "float32", [grouped ? "slots" : cells, 1, 1, "prompt"]);
  const uniforms = graph.input("uniforms", "float32", ["steps", rows]);
  const inverseTemperature = graph.input("inverseTemperature", "float32", []);
  const topP = sampling === "nucleus" ? graph.input("topP", "float32", []) : undefined;
  const cosines = graph.input("cosines", "float32", ["positions", headSize / 2]);
  const sines = graph.input("sines", "float32", ["positions", headSize / 2]);
  const promptShape = [...(grouped ? ["slots", keyValueHeads] : [cells, 1]), "prompt", headSize];
  const prompt: [Value, Value][] = [];
  const past: [Value, Value][] = [];
  for (let layer = 0; layer < layers; layer++) {
    prompt.push([
      graph.input(`promptKeys.${layer}`, "float32", promptShape),
      graph.input(`promptValues.${layer}`, "float32", promptShape),
    ]);
    past.push([
      graph.input(`pastKeys.${layer}`, "float32", [cells, 1, "past", headSize]),
      graph.input(`pastValues.${layer}`, "float32", [cells, 1, "past", headSize]),
    ]);
  }
  const weights = weightsOf(graph);
  const outer = new Emit(graph, config, weights);
  const start = outer.reshape(token, [rows]);
  const empty = graph.op("Slice", [past[0][0], ...[0, 0, 2].map((n) => graph.constant([n], "int64"))], {}, [
    { dtype: "float32", shape: [cells, 1, "none", headSize] },
  ])[0];

  /** [rows, keyValueHeads * (queries + 2) * headSize] -> [cells, queries + 2, 1, headSize] */
  const byCell = (emit: Emit, x: Value): Value => {
    const cell = [queries + 2, headSize];
    const split = grouped && emit.reshape(x, ["slots", "group", keyValueHeads, ...cell]);
    return emit.reshape(split ? emit.transpose(split, [0, 2, 1, 3, 4]) : x, [cells, queries + 2, 1, headSize]);
  };
  /** [...ofCell, headSize] -> [rows, heads * headSize] */
  const byRow = (emit: Emit, x: Value): Value => {
    const split = grouped && emit.reshape(x, ["slots", keyValueHeads, "group", queries * headSize]);
    return emit.reshape(split ? emit.transpose(split, [0, 2, 1, 3]) : x, [rows, config.heads * headSize]);
  };
  /** [...ofCell, size] -> [slots, keyValueHeads, group * queries, size], and back */
  const bySlot = (emit: Emit, x: Value, size: Dim): Value =>
    grouped ? emit.reshape(x, ["slots", keyValueHeads, `group*${queries}`, size]) : x;
  const alone = (emit: Emit, x: Value, size: Dim): Value => (grouped ? emit.reshape(x, [...ofCell, size]) : x);

  /**
   * Of keys, int64 [their number]. Each Shape is in the loop's own body: then ONNX Runtime does all of it in this process's memory,
   * where Split wants it, and a GPU need not be waited for with every token.
   */
  const lengths = (body: Graph, keys: Value[]): Value => {
    const size = { dtype: "int64", shape: [1] } as const;
    const each = keys.map((of) => body.op("Shape", [of], { start: -2, end: -1 }, [size])[0]);
    return body.op("Concat", each, { axis: 0 }, [{ dtype: "int64", shape: [keys.length] }])[0];
  };

  const results = graph.loop({
    tripCount: steps,
    carried: [start, ...Array<Value>(2 * layers).fill(empty)],
    carriedShapes: [start.shape, ...Array<Shape>(2 * layers).fill([cells, 1, "chunk", headSize])],
    body: (body, iteration, _condition, [last, ...chunk]) => {
      const emit = new Emit(body, config, weights);
      const position = body.op("Add", [positions, iteration], {}, [{ dtype: "int64", shape: [cells, 1] }])[0];
      const grown: Value[] = [];
      let sizes: Value | undefined;
      let x = weights.embed(last);
      let normed = emit.norm(x, weights.norm("0.norm1"));
      for (let layer = 0; layer < layers; layer++) {
        const qkv = weights.queryKeyValue(normed, layer);
        const [toTurn, value] = emit.split(byCell(emit, qkv), 1, [queries + 1, 1]);
        const headed = emit.headNorm(toTurn, layer, [queries + 1, 1, headSize]);
        const [turned, key] = emit.split(emit.rotary(headed, position, cosines, sines), 1, [queries, 1]);
        const query = forGpu ? emit.reshape(turned, [...ofCell, headSize]) : turned;
        const append = (old: Value, fresh: Value) =>
          emit.op("Concat", [old, fresh], [cells, 1, "chunk+1", headSize], { axis: 2 });
        const keys = append(chunk[2 * layer], key);
        const values = append(chunk[2 * layer + 1], value);
        grown.push(keys, values);
        sizes ??= lengths(body, [prompt[0][0], past[0][0], keys]);

        const onKeys = emit.matMulTransposed(bySlot(emit, query, headSize), prompt[layer][0]);
        const promptScores = alone(emit, emit.op("Add", [onKeys, padding], onKeys.shape), "prompt");
        const others = [past[layer][0], keys].map((segment) => emit.matMulTransposed(query, segment));
        const scores = emit.op("Concat", [promptScores, ...others], [...ofCell, "all"], { axis: 3 });
        const probabilities = emit.op("Softmax", [scores], scores.shape, { axis: -1 });
        const [onPrompt, onPast, onChunk] = body.op(
          "Split",
          [probabilities, sizes],
          { axis: 3 },
          ["prompt", "past", "chunk+1"].map((size) => ({ dtype: "float32", shape: [...ofCell, size] })),
        );
        const fromPrompt = alone(emit, emit.matMul(bySlot(emit, onPrompt, "prompt"), prompt[layer][1]), headSize);
        const [fromPast, fromChunk] = [emit.matMul(onPast, past[layer][1]), emit.matMul(onChunk, values)];
        const generated = emit.op("Add", [fromPast, fromChunk], fromPast.shape);
        const mixed = byRow(emit, emit.op("Add", [fromPrompt, generated], generated.shape));
        let delta = weights.linear(mixed, `${layer}.out`);
        [normed, x] = emit.addNorm(x, delta, `${layer}.norm2`);
        delta = emit.mlp(normed, layer);
        [normed, x] = emit.addNorm(x, delta, layer + 1 < layers ? `${layer + 1}.norm1` : "norm");
      }
      const scaled = emit.op("Mul", [normed, inverseTemperature], normed.shape);
      const logits = weights.linear(scaled, "head");
      const uniform = body.op("Gather", [uniforms, iteration], {}, [{ dtype: "float32", shape: [rows] }])[0];
      const sampled =
        sampling === "greedy"
          ? sampleGreedy(body, logits)
          : sampling === "all"
            ? sampleFromAll(body, logits, uniform)
            : sampleFromNucleus(body, logits, uniform, topP!);
      return { carried: [sampled.token, ...grown], scans: [sampled.token, sampled.logProb] };
    },
  });
  graph.output("tokens", results[1 + 2 * layers]);
  graph.output("logProbs", results[2 + 2 * layers]);
  for (let layer = 0; layer < layers; layer++) {
    for (const [which, name] of ["keys", "values"].entries()) {
      const all = outer.op(
        "Concat",
        [past[layer][which], results[1 + 2 * layer + which]],
        [cells, 1, "past+steps", headSize],
        { axis: 2 },
      );
      graph.output(`${name}.${layer}`, all);
    }
  }
  return graph;
}
