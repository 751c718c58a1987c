/**
 * `longrun generate`: samples one response to each line `{"tokens":[...]}` or `{"messages":[{"role","content"}]}`, and
 * writes `{"tokens":[...],"text":"...","logProbs":[...]}` in the same order. A response that ended by itself has the
 * EOS token last. Log-probs are at the sampling temperature, or at 1 for greedy responses. Without a tokenizer in the
 * folder `text` is null and messages are refused. `--adapter` names a PEFT folder. The same seed, line and weights give
 * the same response.
 */
import fs from "node:fs";
import path from "node:path";
import { parseArgs } from "node:util";
import {
  DEFAULT_SLOTS,
  fitInference,
  Generator,
  MappedWeights,
  type Message,
  readEosIds,
  readTokenizer,
  seedFor,
  type Tokenizer,
} from "../engine/index.ts";
import {
  brief,
  InputError,
  type Line,
  MODEL_OPTIONS,
  memoryOf,
  openModel,
  printLine,
  readLines,
  refuseOtherFields,
  required,
  runCommand,
  tokensOf,
  wholeNumber,
} from "./command.ts";

const USAGE = `Usage: longrun generate --model DIR --prompts FILE.jsonl [--adapter DIR] [--max-tokens N] [--temperature T] [--seed S]
       [--show-prompt] [--threads N] [--device auto|cpu|cuda:N]

Reads lines {"tokens":[...]} or {"messages":[{"role","content"}]}; writes lines {"tokens":[...],"text":"...","logProbs":[...]} in
the same order. "text" is null without a tokenizer.json.

--show-prompt   adds "prompt", the text that the model continues, with the chat template's tokens
--max-tokens    default 256, or what is left of the context
--temperature   default 1; 0 takes the most probable token, with its log-prob at temperature 1; else 0.01 or more
--seed          default 0; the same seed, line and weights give the same response
--threads       default 0: as many as there are cores
--device        default LONGRUN_DEVICE, else auto: a GPU that works, else the CPU`;
/** Default of --max-tokens; less where the model's context ends sooner. */
const MAX_TOKENS = 256;
/** Smallest temperature above 0, as in a manifest (model.temperature): logits divided by less exceed float32. */
const LEAST_TEMPERATURE = 0.01;
const ROLES = ["system", "user", "assistant"];

async function generate(): Promise<void> {
  const { values } = parseArgs({
    options: {
      ...MODEL_OPTIONS,
      prompts: { type: "string" },
      "max-tokens": { type: "string" },
      temperature: { type: "string", default: "1" },
      seed: { type: "string", default: "0" },
      "show-prompt": { type: "boolean" },
    },
  });
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

  const { model: folder, config, adapter, device, threads } = await openModel(values);
  const weights = new MappedWeights(folder);
  const { vocabSize, maxPositions } = config;
  const tokenizer = fs.existsSync(path.join(folder, "tokenizer.json")) ? readTokenizer(folder) : undefined;
  const eosIds = readEosIds(folder);
  const prompts = readLines(file).map((line) => {
    const prompt = promptOf(line, vocabSize, tokenizer);
    const total = prompt.length + (maxTokens ?? 1);
    if (total <= maxPositions) return prompt;
    const excess = `its prompt and --max-tokens are ${total} tokens; the model has ${maxPositions} positions`;
    throw new InputError(`${line.place}: ${excess}`);
  });

  const slots = Math.max(1, Math.min(prompts.length, DEFAULT_SLOTS));
  const newTokens = (prompt: Int32Array) => maxTokens ?? Math.min(MAX_TOKENS, maxPositions - prompt.length);
  const most = (of: (prompt: Int32Array) => number) =>
    prompts.reduce((largest, prompt) => Math.max(largest, of(prompt)), 1);
  const shape = { rows: slots, promptTokens: most(({ length }) => length), responseTokens: most(newTokens) };
  const models = [{ folder, lora: adapter?.lora }];
  const settings = { slots: "lines of --prompts, at most", lengths: ["--max-tokens"] };
  const { widens } = fitInference({ models, shapes: [shape], device }, memoryOf(device), settings);
  const generator = new Generator(config, { threads, slots, widens });
  const answers = prompts.map(async (prompt, line) => {
    const maxNewTokens = newTokens(prompt);
    const how = { seeds: [seedFor(seed, "generate", line)], temperature, topP: 1, maxNewTokens, eosIds };
    const [answer] = await generator.generate({ base: weights, ...(adapter && { adapter }) }, [prompt], how);
    return answer!;
  });
  for (const answer of answers) answer.catch(() => {}); // the loop throws it
  for (const [line, answer] of answers.entries()) {
    const { response, logProbs } = await answer;
    const prompt = tokenizer?.decode(prompts[line]!, { skipSpecialTokens: false }) ?? null;
    printLine({
      ...(values["show-prompt"] && { prompt }),
      tokens: [...response],
      text: tokenizer?.decode(response) ?? null,
      logProbs: [...logProbs],
    });
  }
  await generator.release();
}

function promptOf(line: Line, vocabulary: number, tokenizer: Tokenizer | undefined): Int32Array {
  refuseOtherFields(line, ["tokens", "messages"]);
  const refused = (why: string) => new InputError(`${line.place}: ${why}`);
  const { tokens, messages } = line.json;
  if ((tokens === undefined) === (messages === undefined)) throw refused("give either tokens or messages");
  if (messages === undefined) return tokensOf(line, vocabulary);
  if (tokenizer === undefined)
    throw refused("messages need a tokenizer, and the folder has no tokenizer.json; give tokens");
  if (!Array.isArray(messages) || messages.length === 0)
    throw refused(`messages is ${brief(messages)}; expected a list of messages`);
  for (const [index, message] of messages.entries()) {
    const { role, content } = (message ?? {}) as Partial<Message>;
    if (!ROLES.includes(role as string))
      throw refused(`messages[${index}].role is ${brief(role)}; known are ${ROLES.join(", ")}`);
    if (typeof content !== "string") throw refused(`messages[${index}].content is ${brief(content)}; expected a text`);
  }
  return tokenizer.encodeChat(messages as Message[]);
}

await runCommand(USAGE, generate);
