/**
 * `longrun logprobs`: for each line `{"tokens":[...]}` writes `{"logProbs":[...]}`, the log-probs at temperature 1 of the tokens 1..n-1,
 * each given the tokens before it. `--adapter` names a PEFT folder. All lines are checked before the first is answered.
 */
import type { Values } from "../../proto/command-line.ts";
import { FROZEN, localEngine, logProbsOf } from "../engine/index.ts";
import {
  InputError,
  MODEL_OPTIONS,
  openModel,
  printLine,
  readLines,
  refuseOtherFields,
  runCommand,
  tokensOf,
} from "./command.ts";

export const LOGPROBS = {
  name: "longrun logprobs",
  description: "compute log-probs of tokens",
  options: {
    ...MODEL_OPTIONS,
    tokens: { value: "FILE", help: 'lines {"tokens":[...]}', required: 'a file of lines {"tokens":[...]}' },
  },
  notes: `Writes lines {"logProbs":[...]} of all tokens but the first, at temperature 1, in the same order.`,
  examples: ["longrun logprobs --model quickstart --tokens tokens.jsonl"],
} as const;

/** Lines that are evaluated together before the first of them is written. */
const LINES_AT_ONCE = 64;
/** Tokens in one pass of the model. */
const BATCH_TOKENS = 2048;

async function logProbs(values: Values<typeof LOGPROBS.options>): Promise<void> {
  const { model, config, adapter: trained, device, threads } = await openModel(values);
  const adapter = trained ? { ...trained.lora, seed: 0, folder: values.adapter! } : FROZEN;
  const sequences = readLines(values.tokens).map((line) => {
    refuseOtherFields(line, ["tokens"]);
    const tokens = tokensOf(line, config.vocabSize);
    if (tokens.length <= config.maxPositions) return tokens;
    throw new InputError(
      `${line.place}: it has ${tokens.length} tokens; the model has ${config.maxPositions} positions`,
    );
  });
  const rowTokens = sequences.reduce((longest, { length }) => Math.max(longest, length), 0);
  const engine = localEngine({ model, threads, device, adapter, microBatchTokens: BATCH_TOKENS, rowTokens });
  for (let first = 0; first < sequences.length; first += LINES_AT_ONCE) {
    const results = await logProbsOf(engine, model, sequences.slice(first, first + LINES_AT_ONCE));
    for (const result of results) printLine({ logProbs: [...result] });
  }
  await engine.close();
}

if (import.meta.main) await runCommand(LOGPROBS, logProbs);
