/**
 * `npm run bench sft`: `longrun sft` beside TRL's SFTTrainer, step by step in turn: SmolLM2-135M-Instruct (../real/model.ts), every weight in
 * float32, the same examples in the same order. Compares losses, and tokens per CPU second.
 *
 *     npm run bench sft -- [--steps 20] [--batch 4] [--threads N] [--short]
 *
 * The first step makes sessions, so it is shown and not compared. `--short`: three steps of one example, whose result is not kept.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import os from "node:os";
import path from "node:path";
import { parseArgs } from "node:util";
import { readTokenizer, responseEnd, type Sequence } from "../../learner/engine/index.ts";
import { makeCorpus } from "../../learner/pretrain/corpus.ts";
import { encodeExamples } from "../../learner/sft/encode.ts";
import { FINE_TUNE_DEFAULTS, fineTune } from "../../learner/sft/fine-tune.ts";
import { examplesOfLines } from "../../learner/sft/sources.ts";
import { ensureRealModel } from "../real/model.ts";
import { Asked } from "./asked.ts";
import { peerPython } from "./peers.ts";
import type { Bench, BenchResult } from "./result.ts";
import { SftProcess, type SftStep } from "./sft-process.ts";

/** Goals of the issue: nats, and tokens per CPU second beside TRL's. */
const LARGEST_DIFFERENCE = 1e-3;
const LEAST_RATIO = 1;
const LEARNING_RATE = 1e-4;
const SEED = 0;

type Both = Record<"longrun" | "TRL", SftStep[]>;

/** Writes examples in the order of the seed, with the chat template's text as prompt. */
function writeExamples(file: string, model: string, count: number): void {
  const tokenizer = readTokenizer(model);
  const options = { seed: SEED, texts: 2 * count, improveShare: 0, mistakeShare: 0, tasks: ["movie", "wage"] };
  const lines = new Set(
    makeCorpus(options).map(({ messages, response }) =>
      JSON.stringify({ prompt: tokenizer.applyChatTemplate([...messages]), completion: response }),
    ),
  );
  if (lines.size < count) throw new Error(`the corpus has ${lines.size} different examples of ${count}`);
  writeFileSync(file, `${[...lines].slice(0, count).join("\n")}\n`);
}

/** Writes the examples in the order in which `longrun sft` takes them. @returns the tokens of each step */
async function writeInOrder(from: string, to: string, model: string, batchSize: number): Promise<number[]> {
  const tokenizer = readTokenizer(model);
  const lines = readFileSync(from, "utf8").trim().split("\n");
  const examples = examplesOfLines(from);
  const { sequences } = encodeExamples(examples, tokenizer, responseEnd(model, tokenizer), Number.POSITIVE_INFINITY);
  if (sequences.length !== lines.length) throw new Error(`${from}: examples are left out`);
  const [order, tokens]: [string[], number[]] = [[], []];
  const recorder = {
    pretrain: async (batch: Sequence[]) => {
      order.push(...batch.map((sequence) => lines[sequences.indexOf(sequence)]!));
      tokens.push(batch.reduce((sum, { prompt, response }) => sum + prompt.length + response.length, 0));
      return { loss: 0, gradientNorm: 0, skipped: false };
    },
    measureFit: async () => ({ loss: 0, correct: 0, tokens: 1 }),
  };
  const settings = { ...FINE_TUNE_DEFAULTS, epochs: 1, batchSize, learningRate: LEARNING_RATE, seed: SEED };
  await fineTune(recorder, { training: sequences, heldOut: [] }, settings, { onStep() {}, onHeldOut() {} });
  writeFileSync(to, `${order.join("\n")}\n`);
  return tokens;
}

async function run(flags: string[]): Promise<BenchResult> {
  const { values } = parseArgs({
    args: flags,
    options: {
      steps: { type: "string", default: "20" },
      batch: { type: "string", default: "4" },
      threads: { type: "string", default: String(os.availableParallelism()) },
      short: { type: "boolean", default: false },
    },
  });
  const [steps, batch] = values.short ? [3, 1] : [Number(values.steps), Number(values.batch)];
  let model: string;
  let python: string;
  try {
    model = await ensureRealModel();
    python = await peerPython("requirements-sft.txt", "TRL and PyTorch");
  } catch (error) {
    const reason = (error as Error).message.split("\n")[0]!;
    return { rows: [], goals: [], method: `skipped, because PyPI was not reached: ${reason}`, raw: {}, kept: false };
  }
  const folder = mkdtempSync(path.join(os.tmpdir(), "longrun-sft-"));
  try {
    const [data, ordered] = [path.join(folder, "data.jsonl"), path.join(folder, "ordered.jsonl")];
    writeExamples(data, model, steps * batch);
    const tokens = await writeInOrder(data, ordered, model, batch);
    const shared = ["--model", model, "--batch", String(batch), "--learning-rate", String(LEARNING_RATE)];
    const twin = ["--data", ordered, "--threads", values.threads, ...shared];
    const trl = await Asked.start<SftStep>("TRL", python, [path.join(import.meta.dirname, "sft_trl.py"), ...twin]);
    const ours = new SftProcess([
      ...["--model", model, "--data", data, "--out", path.join(folder, "out"), "--threads", values.threads],
      ...["--epochs", "1", "--batch-size", String(batch), "--micro-batch-size", String(batch), "--held-out", "0"],
      // TRL writes no checkpoint either
      ...["--checkpoint-seconds", "1000000"],
      ...["--learning-rate", String(LEARNING_RATE), "--warmup-share", "0", "--seed", String(SEED)],
    ]);
    const both: Both = { longrun: [], TRL: [] };
    try {
      for (let step = 0; step < steps; step++) {
        both.longrun.push(await ours.step());
        both.TRL.push(await trl.ask());
      }
    } finally {
      ours.close();
      trl.close();
    }
    return { ...compare(both, tokens), kept: !values.short, method: methodOf(batch, values.threads) };
  } finally {
    rmSync(folder, { recursive: true });
  }
}

const methodOf = (batch: number, threads: string) =>
  `SmolLM2-135M-Instruct, every weight, ${batch} a step, ${threads} threads, in turn; the first step is not compared; ` +
  `load average at the end ${os.loadavg()[0]!.toFixed(1)}`;

/** @throws Error if TRL read other tokens */
function compare(both: Both, tokens: number[]): Pick<BenchResult, "rows" | "goals" | "raw"> {
  const all = tokens.reduce((total, count) => total + count, 0);
  const theirs = both.TRL.at(-1)!.tokens;
  if (theirs !== all) throw new Error(`TRL trained on ${theirs} tokens, longrun on ${all}`);
  const sum = (values: number[]) => values.slice(1).reduce((total, value) => total + value, 0);
  const speed = (side: keyof Both, field: "cpuSeconds" | "seconds") =>
    sum(tokens) / sum(both[side].map((step) => step[field]));
  const differences = both.longrun.map(({ loss }, i) => Math.abs(loss - both.TRL[i]!.loss));
  const largest = Math.max(...differences);
  const ratio = speed("longrun", "cpuSeconds") / speed("TRL", "cpuSeconds");
  const rows = (["longrun", "TRL"] as const).map((side) => ({
    ...{ side, "loss, first": both[side][0]!.loss.toFixed(4), "loss, last": both[side].at(-1)!.loss.toFixed(4) },
    "first, CPU s": both[side][0]!.cpuSeconds.toFixed(1),
    "tokens per CPU s": speed(side, "cpuSeconds").toFixed(1),
    "tokens/s": speed(side, "seconds").toFixed(1),
  }));
  const goals = [
    {
      what: `losses of ${tokens.length} steps, largest difference, nats`,
      ...{ goal: `<= ${LARGEST_DIFFERENCE}`, measured: largest.toExponential(1), met: largest <= LARGEST_DIFFERENCE },
    },
    {
      what: "tokens per CPU second beside SFTTrainer",
      ...{ goal: `>= ${LEAST_RATIO}x`, measured: `${ratio.toFixed(2)}x`, met: ratio >= LEAST_RATIO },
    },
  ];
  return { rows, goals, raw: { tokens, ...both } };
}

export const sft: Bench = { about: "longrun sft beside TRL's SFTTrainer on a real model (ten minutes)", run };
