/**
 * `longrun logprobs`: log-probs of given tokens, at temperature 1.
 *
 * Each line of FILE is `{"tokens":[...]}`, for which `{"logProbs":[...]}` is written, in order: the log-prob of tokens
 * 1..n-1, each given those before. `--adapter` names a PEFT folder of a LoRA adapter of the model. All lines are checked
 * before the first is answered.
 */
import { parseArgs } from "node:util";
import { readAdapter } from "../engine/model/adapter-folder.ts";
import { MappedWeights } from "../engine/model/mapped.ts";
import { Scorer } from "../engine/model/scorer.ts";
import {
  placeSessions,
  printLine,
  readLines,
  refuseOtherFields,
  required,
  runCommand,
  tokensOf,
  wholeNumber,
} from "./command.ts";

const USAGE =
  "usage: longrun logprobs --model DIR --tokens FILE.jsonl [--adapter DIR] [--threads N] [--device auto|cpu|cuda:N]";
/** Lines that are scored together, before the first of them is written. */
const LINES_AT_ONCE = 64;

async function logProbs(): Promise<void> {
  const { values } = parseArgs({
    options: {
      model: { type: "string" },
      tokens: { type: "string" },
      device: { type: "string" },
      adapter: { type: "string" },
      threads: { type: "string", default: "0" },
    },
  });
  const folder = required(values.model, "--model", "a model folder");
  const file = required(values.tokens, "--tokens", 'a file of lines {"tokens":[...]}');
  const threads = wholeNumber(values.threads, "--threads", 0);
  await placeSessions(values.device);
  const weights = new MappedWeights(folder);
  const adapter = values.adapter === undefined ? undefined : readAdapter(values.adapter, weights.config);
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
