/**
 * `longrun logprobs`: log-probs of given tokens, at temperature 1.
 *
 * Each line of FILE is `{"tokens":[...]}`. In the same order the command writes `{"logProbs":[...]}`: the log-prob of
 * each of the tokens 1..n-1, given the tokens before it. `--adapter` names a PEFT folder of a LoRA adapter of the
 * model. All lines are checked before the first is answered.
 */
import { parseArgs } from "node:util";
import { Scorer } from "../engine/model/scorer.ts";
import {
  MODEL_OPTIONS,
  openModel,
  printLine,
  readLines,
  refuseOtherFields,
  required,
  runCommand,
  tokensOf,
} from "./command.ts";

const USAGE =
  "usage: longrun logprobs --model DIR --tokens FILE.jsonl [--adapter DIR] [--threads N] [--device auto|cpu|cuda:N]";
/** So many lines are scored together. */
const LINES_AT_ONCE = 64;

async function logProbs(): Promise<void> {
  const { values } = parseArgs({ options: { ...MODEL_OPTIONS, tokens: { type: "string" } } });
  const file = required(values.tokens, "--tokens", 'a file of lines {"tokens":[...]}');
  const { weights, adapter, threads } = await openModel(values);
  const scorer = new Scorer(weights, { threads, adapter });
  const sequences = readLines(file).map((line) => {
    refuseOtherFields(line, ["tokens"]);
    const tokens = tokensOf(line, weights.config.vocabSize);
    scorer.check(tokens, line.place);
    return tokens;
  });
  for (let first = 0; first < sequences.length; first += LINES_AT_ONCE) {
    const results = await scorer.logProbs(sequences.slice(first, first + LINES_AT_ONCE));
    for (const result of results) printLine({ logProbs: [...result] });
  }
  await scorer.release();
}

if (import.meta.main) await runCommand(USAGE, logProbs);
