import { existsSync, mkdtempDisposableSync, renameSync, writeFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { makeFolder } from "../../proto/folders.ts";
import {
  createModelFolder,
  initialWeights,
  type ModelConfig,
  permutation,
  type Sequence,
  seedFor,
  startEngine,
  Tokenizer,
  uniforms,
} from "../engine/index.ts";
import { mean } from "../metrics/statistics.ts";
import { TOKENIZER_CODE, trainBpe } from "./bpe.ts";
import { type CorpusText, defaultCorpus, makeCorpus, programHashes } from "./corpus.ts";
import { corpusFacts, readme } from "./readme.ts";

export const defaultPretrain = {
  seed: defaultCorpus.seed,
  texts: defaultCorpus.texts,
  steps: 2400,
  batchSize: 16,
  learningRate: 2.5e-3,
  /** Threads of one operator. The same seed and number of threads give the same bytes. */
  threads: 1,
};

interface PretrainOptions extends Readonly<typeof defaultPretrain> {
  /** Folder for the model; it is replaced as a whole. */
  out: string;
  signal?: AbortSignal;
  onProgress?: (line: PretrainProgress) => void;
}

export type PretrainProgress =
  | { phase: "corpus" | "tokenizer" | "save" }
  | { phase: "train"; step: number; steps: number; loss: number; tokensPerSecond: number; secondsLeft: number };

/** 1.05 million weights, the size that learns most in minutes on one core. */
const architecture = {
  modelType: "qwen2",
  hiddenSize: 128,
  intermediateSize: 384,
  layers: 4,
  heads: 4,
  keyValueHeads: 2,
  headSize: 32,
  normEpsilon: 1e-6,
  ropeTheta: 10000,
  tied: true,
  queryKeyValueBias: true,
  maxPositions: 1024,
  initializerRange: 0.02,
} as const satisfies Omit<ModelConfig, "vocabSize">;

const vocabSize = 2048;
const warmupSteps = 100;
/** The learning rate falls to this share of its peak along half a cosine. */
const lastRate = 0.05;
/** Batches have sequences of similar length: sequences are sorted within this many batches, so that little is padded. */
const poolBatches = 20;
const adam = { beta1: 0.9, beta2: 0.98, epsilon: 1e-8, weightDecay: 0.01 };

/** Makes the corpus and tokenizer, trains on the response tokens, and writes the model folder. */
export async function pretrain(options: PretrainOptions): Promise<{ loss: number; steps: number; seconds: number }> {
  const { onProgress = () => {} } = options;
  const started = performance.now();
  makeFolder(dirname(resolve(options.out)), "--out");
  onProgress({ phase: "corpus" });
  const corpus = makeCorpus({ ...defaultCorpus, seed: options.seed, texts: options.texts });
  onProgress({ phase: "tokenizer" });
  const tokenizer = trainBpe(
    corpus.flatMap(({ messages, response }) => [...messages.map(({ content }) => content), response]),
    { vocabSize },
  );
  const sequences = tokenize(corpus, new Tokenizer(tokenizer));
  const eosId = new Tokenizer(tokenizer).eosId!;

  using temporary = mkdtempDisposableSync(`${resolve(options.out)}.`);
  const scratch = temporary.path;
  const start = join(scratch, "start");
  const config = { ...architecture, vocabSize };
  const weights = initialWeights(config, seedFor(options.seed, "initial weights"));
  createModelFolder(start, { config, weights, tokenizer, eosIds: [eosId] });
  const trained = await train(start, join(scratch, "trained"), sequences, options);
  const seconds = (performance.now() - started) / 1000;
  const folder = join(scratch, "trained", "policy");
  const facts = corpusFacts(corpus, sequences, { ...options, vocabulary: vocabSize }, trained);
  writeFileSync(join(folder, "corpus.json"), `${JSON.stringify(facts, null, 2)}\n`);
  writeFileSync(join(folder, "corpus.hashes"), programHashes(corpus.map(({ program }) => program)));
  writeFileSync(join(folder, "README.md"), readme(facts));
  writeFileSync(join(folder, TOKENIZER_CODE.name), TOKENIZER_CODE.text);
  if (existsSync(options.out)) renameSync(options.out, join(scratch, "replaced"));
  renameSync(folder, options.out);
  return { ...trained, seconds };
}

function tokenize(corpus: readonly CorpusText[], tokenizer: Tokenizer): Sequence[] {
  const prompts = new Map<string, Int32Array>(); // all scratch prompts of a task are the same
  const encodeChat = (text: CorpusText) => {
    if (text.kind === "improve") return tokenizer.encodeChat(text.messages);
    if (!prompts.has(text.task)) prompts.set(text.task, tokenizer.encodeChat(text.messages));
    return prompts.get(text.task)!;
  };
  return corpus.map((text) => ({
    prompt: encodeChat(text),
    response: Int32Array.of(...tokenizer.encode(text.response), tokenizer.eosId!),
  }));
}

async function train(start: string, out: string, sequences: readonly Sequence[], options: PretrainOptions) {
  const { steps, seed, batchSize, signal, onProgress = () => {} } = options;
  const engine = await startEngine({ model: start, threads: options.threads });
  const began = performance.now();
  const losses: number[] = [];
  let tokens = 0;
  try {
    for (const batch of batches(sequences, batchSize, seed)) {
      signal?.throwIfAborted();
      const { loss, skipped } = await engine.pretrain(batch, {
        learningRate: options.learningRate * rate(losses.length, steps),
        gradientClip: 1,
        adam,
        aggregation: "TokenMean",
        microBatchSize: batchSize,
      });
      if (skipped)
        throw new Error(`the gradient of step ${losses.length + 1} is not finite; use a lower --learning-rate`);
      losses.push(loss);
      tokens += batch.reduce((sum, { prompt, response }) => sum + prompt.length + response.length, 0);
      const seconds = (performance.now() - began) / 1000;
      onProgress({
        phase: "train",
        step: losses.length,
        steps,
        loss: recentMean(losses),
        tokensPerSecond: tokens / seconds,
        secondsLeft: (seconds / losses.length) * (steps - losses.length),
      });
      if (losses.length === steps) break;
    }
    onProgress({ phase: "save" });
    await engine.save(out);
    return { loss: recentMean(losses), steps: losses.length, tokens };
  } finally {
    await engine.close();
  }
}

/** Returns the learning rate: linear warm-up, then half a cosine. @param step from 0 */
function rate(step: number, steps: number): number {
  const cosine = (1 + Math.cos(Math.PI * (step / steps))) / 2;
  return Math.min(1, (step + 1) / warmupSteps) * (lastRate + (1 - lastRate) * cosine);
}

/** Yields batches without end: epoch after epoch, each in another order. */
function* batches(sequences: readonly Sequence[], size: number, seed: number): Generator<Sequence[]> {
  const lengthOf = (index: number) => sequences[index].prompt.length + sequences[index].response.length;
  for (let epoch = 0; ; epoch++) {
    const next = uniforms(seed, "pretraining order", epoch);
    const order = permutation(sequences.length, next);
    const groups: number[][] = [];
    for (let at = 0; at < order.length; at += size * poolBatches) {
      const pool = order.slice(at, at + size * poolBatches).sort((a, b) => lengthOf(a) - lengthOf(b) || a - b);
      for (let k = 0; k < pool.length; k += size) groups.push(pool.slice(k, k + size));
    }
    for (const group of permutation(groups.length, next)) yield groups[group].map((index) => sequences[index]);
  }
}

const recentMean = (losses: readonly number[]): number => mean(losses.slice(-50)) ?? Number.NaN;
