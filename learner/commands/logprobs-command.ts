/**
 * `longrun logprobs`: log-probs of given tokens, at temperature 1.
 *
 * Each line of FILE is `{"tokens":[...]}`, for which `{"logProbs":[...]}` is written, in order: the log-prob of tokens
 * 1..n-1, each given those before. `--adapter` names a PEFT folder of a LoRA adapter of the model. All lines are checked
 * before the first is answered.
 */
import { FROZEN } from "../engine/engine.ts";
import { localEngine, logProbsOf } from "../engine/local.ts";
import { readAdapter } from "../engine/model/adapter-folder.ts";
import { readConfig } from "../engine/model/folder.ts";
import {
  InputError,
  parseOptions,
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
/** Lines that are evaluated together, before the first of them is written. */
const LINES_AT_ONCE = 64;
/** Tokens that go through the model together. */
const BATCH_TOKENS = 2048;

async function logProbs(): Promise<void> {
  const { values } = parseOptions({
    model: { type: "string" },
    tokens: { type: "string" },
    device: { type: "string" },
    adapter: { type: "string" },
    threads: { type: "string", default: "0" },
  });
  const model = required(values.model, "--model", "a model folder");
  const file = required(values.tokens, "--tokens", 'a file of lines {"tokens":[...]}');
  const threads = wholeNumber(values.threads, "--threads", 0);
  const device = await placeSessions(values.device);
  const config = readConfig(model);
  const { adapter: folder } = values;
  const adapter = folder === undefined ? FROZEN : { ...readAdapter(folder, config).lora, seed: 0, folder };
  const sequences = readLines(file).map((line) => {
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

if (import.meta.main) await runCommand(USAGE, logProbs);
