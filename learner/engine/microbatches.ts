/** Divides a batch into micro-batches, and computes the weight of a token in the loss. */

import os from "node:os";
import type { EngineOptions, Sequence, Step } from "./engine.ts";
import { EngineError } from "./errors.ts";
import type { Dims } from "./graph/memory.ts";
import type { ModelConfig } from "./model/config.ts";
import { decoderDims, type RowLayout, rowTokens } from "./model/decoder.ts";
import { packed } from "./packing.ts";

/** Tokens per thread of a CPU. 64 sequences on one thread: 2.2 s at 512, 3.2 s at 256, 2.4 s at 1024. */
const MICRO_BATCH_TOKENS = 512;

/** Most workers of a CPU, because each has sessions, gradients and activations of its own. */
const MAX_WORKERS = 8;

const threadsOf = ({ threads }: Pick<EngineOptions, "threads">) => threads || os.availableParallelism();

/** Whether trained and frozen weights stay on a GPU, where the networks run. */
export function isResident({ resident, device }: Pick<EngineOptions, "resident" | "device">): boolean {
  return resident ?? device?.kind === "cuda";
}

/** Whether graphs read weights that are rounded to bfloat16 in place of the trained ones. */
export const hasMasters = ({ compute, adapter }: Pick<EngineOptions, "compute" | "adapter">): boolean =>
  compute === "bfloat16" && adapter === undefined;

/**
 * Workers, which each run micro-batches of their own (workers.ts): one for each GPU, or for each thread of a CPU where every weight is
 * trained, 8 at most. With adapters on a CPU there is one worker: a frozen model can be large, its products fill many threads, and its
 * layers are widened for every pass.
 */
export function workerCount(
  options: Pick<EngineOptions, "threads" | "workers" | "adapter" | "resident" | "device" | "devices">,
): number {
  if (options.device?.kind === "cuda") return options.devices?.length ?? 1;
  const alone = options.adapter !== undefined || isResident(options);
  return options.workers ?? (alone ? 1 : Math.min(MAX_WORKERS, threadsOf(options)));
}

/** Threads of one operator in each worker. */
export const workerThreads = (options: Pick<EngineOptions, "threads">, workers: number): number =>
  Math.max(1, Math.floor(threadsOf(options) / workers));

/** Tokens of a pass that are fastest on a CPU. */
export const passTokens = (options: Pick<EngineOptions, "threads">, workers: number): number =>
  MICRO_BATCH_TOKENS * workerThreads(options, workers);

/**
 * The lengths of a pass of `tokens` tokens that takes the most memory: responses fill each row. @param sequences most sequences, where each row is
 * padded to the longest @param longest tokens of the longest sequence
 */
export function fullPass(
  { packs }: RowLayout,
  { tokens, longest, sequences = Number.POSITIVE_INFINITY }: { tokens: number; longest: number; sequences?: number },
) {
  if (packs) return { sequences: 1, promptTokens: 1, responseTokens: Math.max(tokens, longest) };
  const fitting = Math.max(1, Math.floor(tokens / longest));
  return { sequences: Math.min(fitting, sequences), promptTokens: 1, responseTokens: longest };
}

/** Returns the dims of the largest micro-batch that memory was planned for; undefined without a plan. */
export function longestDims(
  { microBatchTokens: tokens, rowTokens: longest }: Pick<EngineOptions, "microBatchTokens" | "rowTokens">,
  { vocabSize }: ModelConfig,
  layout: RowLayout,
): Dims | undefined {
  if (tokens === undefined || longest === undefined) return undefined;
  const full = fullPass(layout, { tokens, longest });
  return decoderDims(full, Math.min(vocabSize, full.sequences * full.responseTokens), layout);
}

interface MicroBatchLimits {
  /** rows stand one after the other, without padding; default false: each is padded to the longest of its group */
  packs?: boolean;
  /** most sequences */
  sequences: number;
  /** most tokens, padding included; a longer row goes alone */
  tokens: number;
  /** most tokens of a row with more than one sequence; with `packs` a row may be longer */
  rowTokens: number;
  /** a row of n tokens costs n (1 + n / attentionLength) times one of a token (model/decoder.ts) */
  attentionLength: number;
  /** number of workers: groups are cut so that each worker has about as much work; default 1 */
  workers?: number;
}

/** The rows of one run of a graph. Each row is the indices of sequences with the same prompt. */
export type MicroBatch = readonly (readonly number[])[];

type Row = { samples: number[]; tokens: number };

/**
 * Returns the sequences of `batch` in rows, longest first, in groups: of similar length, or, with `packs`, as full as possible. Memory peaks in
 * the first group. Sequences of one prompt share a row if this is less work than a row for each: the prompt is computed once, but
 * attention, unless it is one kernel, multiplies all of a row's tokens with each other. Leaves out sequences without response tokens.
 */
export function microBatches(batch: readonly Sequence[], limits: MicroBatchLimits): MicroBatch[] {
  if (limits.packs) return packedBatches(batch, limits);
  const rows = sharedRows(batch, limits);
  const tokens = evenTokens(
    rows.map((row) => row.tokens),
    limits,
  );
  const groups: Row[][] = [];
  let sequences = 0; // of the last group
  for (const row of rows) {
    const group = groups.at(-1);
    // the first of a group is its longest
    const fits = group && (group.length + 1) * group[0].tokens <= tokens;
    if (fits && sequences + row.samples.length <= limits.sequences) {
      group.push(row);
      sequences += row.samples.length;
    } else {
      groups.push([row]);
      sequences = row.samples.length;
    }
  }
  return groups.map((group) => group.map(({ samples }) => samples));
}

/**
 * Long rows compute a prompt for more responses, and short ones divide more evenly: of rows of at most `rowTokens` tokens, twice as many and so on
 * up to a whole pass, takes those with which the worker with most work has the fewest tokens, then those with the fewest passes.
 */
function packedBatches(batch: readonly Sequence[], limits: MicroBatchLimits): MicroBatch[] {
  const { tokens, rowTokens, workers = 1 } = limits;
  const found = [];
  for (let most = rowTokens; ; most = Math.min(2 * most, tokens)) {
    const rows = sharedRows(batch, { ...limits, rowTokens: most });
    const lengths = rows.map((row) => row.tokens);
    const passes = packed(lengths, tokens, workers);
    const sizes = passes.map((pass) => sum(pass.map((row) => lengths[row]!)));
    const work = Math.max(...balanced(sizes, workers).map((part) => sum(part.map((pass) => sizes[pass]!))));
    found.push({ work, passes: passes.map((pass) => pass.map((row) => rows[row]!.samples)) });
    if (most >= tokens || most === 0) break;
  }
  return found.reduce((a, b) => (b.work < a.work || (b.work === a.work && b.passes.length < a.passes.length) ? b : a))
    .passes;
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

/**
 * Returns rows, longest first. Each sequence, longest responses first, goes into the first row of its prompt in which it costs less than in a row
 * of its own.
 */
function sharedRows(
  batch: readonly Sequence[],
  { sequences, rowTokens: most, attentionLength }: MicroBatchLimits,
): Row[] {
  const cost = (tokens: number) => tokens * (1 + tokens / attentionLength);
  const found = samePrompts(batch.map(({ prompt }) => prompt)).flatMap((same) => {
    const rows: Row[] = [];
    const trained = same.filter((i) => batch[i].response.length > 0);
    for (const i of trained.sort((a, b) => batch[b].response.length - batch[a].response.length || a - b)) {
      const { prompt, response } = batch[i];
      const alone = rowTokens(prompt.length, response.length);
      const joined = (row: Row) => row.tokens + response.length;
      const gains = (row: Row) => cost(joined(row)) < cost(row.tokens) + cost(alone);
      const row = rows.find((row) => row.samples.length < sequences && joined(row) <= most && gains(row));
      if (row) {
        row.samples.push(i);
        row.tokens = joined(row);
      } else rows.push({ samples: [i], tokens: alone });
    }
    return rows;
  });
  return found.sort((a, b) => b.tokens - a.tokens || a.samples[0] - b.samples[0]);
}

/** Returns the limit at which every worker has the same number of groups of about the same size. */
function evenTokens(lengths: readonly number[], { tokens, workers = 1 }: MicroBatchLimits): number {
  if (workers === 1) return tokens;
  const total = sum(lengths);
  return Math.ceil(total / (workers * Math.ceil(total / (workers * tokens))));
}

/** Indices of equal prompts, in the order in which they first come. */
const samePrompts = (prompts: readonly Int32Array[]): number[][] =>
  Array.from(Map.groupBy(prompts.keys(), (i) => prompts[i].join()).values());

/** Returns indices of `sizes` for each of `workers`: each next index goes to the worker with the least work. */
export function balanced(sizes: readonly number[], workers: number): number[][] {
  const parts = Array.from({ length: workers }, () => ({ size: 0, indices: [] as number[] }));
  for (const [i, size] of sizes.entries()) {
    const least = parts.reduce((a, b) => (b.size < a.size ? b : a));
    least.size += size;
    least.indices.push(i);
  }
  return parts.map(({ indices }) => indices);
}

/**
 * Indices of `prompts` for each worker, so that all have about as many rows, counting their present ones: no worker gets more than its even
 * share, or it gets nothing. Equal prompts are side by side.
 */
export function dealtPrompts(prompts: readonly Int32Array[], rows: readonly number[]): number[][] {
  const parts = rows.map((): number[] => []);
  const order = samePrompts(prompts).flat();
  const total = () => rows.reduce((sum, count) => sum + count, order.length);
  const byRows = [...rows.keys()].sort((a, b) => rows[a]! - rows[b]!);
  const share = Math.ceil(total() / rows.length);
  for (const worker of byRows) parts[worker] = order.splice(0, Math.max(0, share - rows[worker]!));
  parts[byRows[0]!]!.push(...order); // others have more than an even share
  return parts;
}

/**
 * Returns the factor of each sequence's tokens with which the micro-batches' losses add up to the batch's:
 *
 * | aggregation | |
 * | --- | --- |
 * | SeqMeanTokenMean | mean over sequences of the mean over tokens |
 * | TokenMean | mean over all tokens |
 * | SeqMeanTokenSumNorm | mean over sequences of the sum over tokens, divided by maxResponseTokens (Dr. GRPO) |
 */
export function tokenScale(
  batch: readonly Sequence[],
  { aggregation, normalizer, maxResponseTokens }: Pick<Step, "aggregation" | "normalizer" | "maxResponseTokens">,
): number[] {
  const { sequences, tokens } = normalizer ?? {
    sequences: batch.length,
    tokens: batch.reduce((total, { response }) => total + response.length, 0),
  };
  switch (aggregation) {
    case "TokenMean":
      return batch.map(() => 1 / tokens);
    case "SeqMeanTokenMean":
      return batch.map(({ response }) => 1 / (sequences * response.length));
    case "SeqMeanTokenSumNorm":
      if (maxResponseTokens === undefined)
        throw new EngineError("step", "aggregation SeqMeanTokenSumNorm needs maxResponseTokens");
      return batch.map(() => 1 / (sequences * maxResponseTokens));
  }
}
