/** Log-probs of given tokens, with the weights of a folder's files. Everything blocks this thread: use it in a worker. */

import { Graph, type Value } from "../graph/graph.ts";
import { cast, concat, gather, linear, mul, reshape, sub, sum } from "../graph/primitives.ts";
import { createSession } from "../runtime/runtime.ts";
import type { Session } from "../runtime/session.ts";
import { blocksOf, decoder, decoderFeeds, decoderInputs, outputLayer, RESPONSE, targetFeeds } from "./decoder.ts";
import { ModelError } from "./errors.ts";
import { frozenTrunk } from "./frozen.ts";
import { type Adapter, adapterFeeds, adapterInputs, type LoraConfig } from "./lora.ts";
import type { MappedWeights } from "./mapped.ts";
import { VOCABULARY_CHUNK } from "./token-log-probs.ts";

/** Tokens of a run, padding included; a longer sequence has a run of its own. */
const BATCH_TOKENS = 2048;

export class Scorer {
  readonly #weights: MappedWeights;
  readonly #threads: number;
  readonly #adapter: Adapter | undefined;
  /** by the number of blocks that attention goes in */
  readonly #sessions = new Map<number, Session>();

  constructor(
    weights: MappedWeights,
    { threads = 0, adapter }: { threads?: number; adapter?: Adapter | undefined } = {},
  ) {
    this.#weights = weights;
    this.#threads = threads;
    this.#adapter = adapter;
  }

  /**
   * For each sequence log p(token i | tokens before) of its tokens 1..n-1 at temperature 1, float32 [n - 1].
   *
   * @throws ModelError `generation` for a sequence that the model cannot read, `weights` for weights that are not finite
   */
  async logProbs(sequences: readonly Int32Array[]): Promise<Float32Array[]> {
    for (const [index, tokens] of sequences.entries()) this.check(tokens, `sequence ${index}`);
    const results = sequences.map(({ length }) => new Float32Array(length - 1));
    // those of like length together, so that little is padding
    const waiting = [...sequences.keys()].filter((i) => sequences[i].length > 1);
    waiting.sort((a, b) => sequences[a].length - sequences[b].length);
    while (waiting.length > 0) {
      const longest = sequences[waiting.at(-1)!].length;
      const batch = waiting.splice(-Math.max(1, Math.floor(BATCH_TOKENS / longest)));
      const all = await this.#run(batch.map((i) => sequences[i]));
      let at = 0;
      for (const i of batch) {
        results[i].set(all.subarray(at, at + results[i].length));
        at += results[i].length;
      }
    }
    return results;
  }

  /** @throws ModelError `generation` beginning with `what` */
  check(tokens: Int32Array, what: string): void {
    const { vocabSize, maxPositions } = this.#weights.config;
    const refuse = (problem: string): never => {
      throw new ModelError("generation", `${what}: ${problem}`);
    };
    if (tokens.length === 0) refuse("it has no tokens; begin it with some token");
    if (tokens.length > maxPositions) refuse(`it has ${tokens.length} tokens; the model has ${maxPositions} positions`);
    const outside = tokens.find((token) => token < 0 || token >= vocabSize);
    if (outside !== undefined) refuse(`token ${outside} is not in the vocabulary of ${vocabSize}`);
  }

  async release(): Promise<void> {
    for (const session of this.#sessions.values()) await session.release();
    this.#sessions.clear();
  }

  async #run(sequences: readonly Int32Array[]): Promise<Float32Array> {
    const { config, sessionOptions } = this.#weights;
    const adapter = this.#adapter;
    const blocks = blocksOf(Math.max(...sequences.map(({ length }) => length)));
    const graph = () => scoreGraph(this.#weights, adapter?.lora, blocks);
    const session =
      this.#sessions.get(blocks) ?? (await createSession(graph(), { threads: this.#threads, ...sessionOptions }));
    this.#sessions.set(blocks, session);
    const rows = sequences.map((tokens) => ({ prompt: tokens.subarray(0, 1), responses: [tokens.subarray(1)] }));
    const feeds = {
      ...decoderFeeds(rows, config, blocks),
      ...targetFeeds(rows),
      ...(adapter && adapterFeeds(config, adapter)),
    };
    const results = await session.run(feeds);
    const logProbs = results.logProbs.data as Float32Array;
    if (!logProbs.every(Number.isFinite)) throw this.#weights.notFinite();
    return logProbs;
  }
}

function scoreGraph(weights: MappedWeights, lora: LoraConfig | undefined, blocks: number): Graph {
  const g = new Graph("score");
  const adapter = lora && adapterInputs(g, weights.config, lora, { requiresGrad: false });
  const trunk = frozenTrunk(g, weights, adapter, { gradient: false, logits: false });
  const chunks = weights.outputChunks(g, VOCABULARY_CHUNK).map(({ forward }) => forward);
  const inputs = decoderInputs(g, weights.config, blocks);
  const targets = g.input("targets", "int32", [RESPONSE]);
  const hidden = decoder(weights.config, trunk.weights, inputs, trunk);
  g.output("logProbs", logProbsOf(hidden, outputLayer(weights.config, trunk.weights), chunks, targets));
  return g;
}

/**
 * log softmax(hidden W^T)[target], float32 [rows]. The target's logit is a product with its own row of W, and the
 * normaliser is summed over chunks of the vocabulary, so that neither the logits nor a float32 W exist as a whole.
 */
function logProbsOf(hidden: Value, weight: Value, chunks: readonly Value[], targets: Value): Value {
  const [rows] = hidden.shape;
  const sums = chunks.map((chunk) => logSumExp(linear(hidden, chunk)));
  const normaliser = sums.length === 1 ? sums[0] : logSumExp(concat(sums, 1));
  const chosen = sum(mul(hidden, cast(gather(weight, targets), "float32")), [1]);
  return sub(chosen, reshape(normaliser, [rows]));
}

/** Over the last axis, kept as 1; stable for large logits. */
function logSumExp(x: Value): Value {
  const shape = [...x.shape.slice(0, -1), 1];
  return x.graph.op("ReduceLogSumExp", [x, x.graph.constant([-1], "int64")], { keepdims: 1 }, [
    { dtype: x.dtype, shape },
  ])[0];
}
