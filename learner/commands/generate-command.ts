/**
 * `longrun generate`: samples one response to each prompt.
 *
 * Each line of FILE is `{"tokens":[...]}` or `{"messages":[{"role","content"}]}`, for which
 * `{"tokens":[...],"text":"...","logProbs":[...]}` is written, in order. The response's last token is the EOS token where
 * it ended with one; the log-probs are those of the tokens at the temperature, of greedy ones at temperature 1. `text` is
 * null where the folder has no tokenizer, and then lines of messages are refused. `--adapter` names a PEFT folder of a LoRA
 * adapter of the model. The same seed, line and weights give the same response.
 */
import fs from "node:fs";
import path from "node:path";
import { readAdapter } from "../engine/model/adapter-folder.ts";
import { readEosIds, readTokenizer } from "../engine/model/folder.ts";
import { Generator, type Response } from "../engine/model/generate.ts";
import { MappedWeights } from "../engine/model/mapped.ts";
import { seedFor } from "../engine/model/random.ts";
import type { Message, Tokenizer } from "../engine/model/tokenizer.ts";
import {
  brief,
  InputError,
  type Line,
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

const USAGE = `usage: longrun generate --model DIR --prompts FILE.jsonl [--adapter DIR] [--max-tokens N] [--temperature T] [--seed S]
       [--threads N] [--device auto|cpu|cuda:N]`;
/** Longest response, where --max-tokens does not say another; less where the model's context ends before. */
const MAX_TOKENS = 256;
/** Above 0, as in a manifest (model.temperature); far below it logits divided by the temperature are beyond float32. */
const LEAST_TEMPERATURE = 0.01;
/** Lines that are answered together, before the first of them is written. */
const LINES_AT_ONCE = 64;
const ROLES = ["system", "user", "assistant"];

async function generate(): Promise<void> {
  const { values } = parseOptions({
    model: { type: "string" },
    prompts: { type: "string" },
    device: { type: "string" },
    adapter: { type: "string" },
    "max-tokens": { type: "string" },
    temperature: { type: "string", default: "1" },
    seed: { type: "string", default: "0" },
    threads: { type: "string", default: "0" },
  });
  const folder = required(values.model, "--model", "a model folder");
  const file = required(values.prompts, "--prompts", 'a file of lines {"tokens":[...]} or {"messages":[...]}');
  const wanted = values["max-tokens"];
  const maxTokens = wanted === undefined ? undefined : wholeNumber(wanted, "--max-tokens", 1);
  const temperature = Number(values.temperature);
  const greedy = values.temperature.trim() !== "" && temperature === 0;
  if (!greedy && !(temperature >= LEAST_TEMPERATURE && temperature < Infinity)) {
    const known = `give 0 for the most probable tokens, or a number of at least ${LEAST_TEMPERATURE}`;
    throw new InputError(`--temperature is ${values.temperature}; ${known}`);
  }
  const seed = wholeNumber(values.seed, "--seed", 0);
  const threads = wholeNumber(values.threads, "--threads", 0);

  await placeSessions(values.device);
  const weights = new MappedWeights(folder);
  const adapter = values.adapter === undefined ? undefined : readAdapter(values.adapter, weights.config);
  const { vocabSize, maxPositions } = weights.config;
  const tokenizer = fs.existsSync(path.join(folder, "tokenizer.json")) ? readTokenizer(folder) : undefined;
  const eosIds = readEosIds(folder);
  const prompts = readLines(file).map((line) => {
    const prompt = promptOf(line, vocabSize, tokenizer);
    const total = prompt.length + (maxTokens ?? 1);
    if (total <= maxPositions) return prompt;
    const excess = `its prompt and --max-tokens are ${total} tokens; the model has ${maxPositions} positions`;
    throw new InputError(`${line.place}: ${excess}`);
  });

  const generator = new Generator(weights.config, { threads });
  for (let first = 0; first < prompts.length; first += LINES_AT_ONCE) {
    const rows = prompts.slice(first, first + LINES_AT_ONCE).map((prompt, row) => ({
      prompt,
      seed: seedFor(seed, "generate", first + row),
      most: maxTokens ?? Math.min(MAX_TOKENS, maxPositions - prompt.length),
    }));
    const answered = new Map<(typeof rows)[number], Response>();
    // a long prompt, after which the context ends sooner, shortens no other line's response
    for (const [maxNewTokens, same] of Map.groupBy(rows, ({ most }) => most)) {
      const responses = await generator.generate(
        { base: weights, ...(adapter && { adapter }) },
        same.map(({ prompt }) => prompt),
        { seeds: same.map((row) => row.seed), temperature, topP: 1, maxNewTokens, eosIds },
      );
      for (const [i, row] of same.entries()) answered.set(row, responses[i]!);
    }
    for (const { response, logProbs } of rows.map((row) => answered.get(row)!)) {
      printLine({ tokens: [...response], text: tokenizer?.decode(response) ?? null, logProbs: [...logProbs] });
    }
  }
  await generator.release();
}

function promptOf(line: Line, vocabulary: number, tokenizer: Tokenizer | undefined): Int32Array {
  refuseOtherFields(line, ["tokens", "messages"]);
  const { tokens, messages } = line.json;
  if ((tokens === undefined) === (messages === undefined)) {
    throw new InputError(`${line.place}: give either tokens or messages`);
  }
  if (messages === undefined) return tokensOf(line, vocabulary);
  if (tokenizer === undefined) {
    throw new InputError(`${line.place}: messages need a tokenizer, and the folder has no tokenizer.json; give tokens`);
  }
  if (!Array.isArray(messages) || messages.length === 0) {
    throw new InputError(`${line.place}: messages is ${brief(messages)}; expected a list of messages`);
  }
  for (const [index, message] of messages.entries()) {
    const { role, content } = (message ?? {}) as Partial<Message>;
    if (!ROLES.includes(role as string)) {
      throw new InputError(`${line.place}: messages[${index}].role is ${brief(role)}; known are ${ROLES.join(", ")}`);
    }
    if (typeof content !== "string") {
      throw new InputError(`${line.place}: messages[${index}].content is ${brief(content)}; expected a text`);
    }
  }
  return tokenizer.encodeChat(messages as Message[]);
}

if (import.meta.main) await runCommand(USAGE, generate);
