/**
 * `longrun generate`: samples one response to each line `{"tokens":[...]}` or `{"messages":[{"role","content"}]}`, and
 * writes `{"tokens":[...],"text":"...","logProbs":[...]}` in the same order. A response that ended by itself has the
 * EOS token last. Log-probs are at the sampling temperature, or at 1 for greedy responses. Without a tokenizer in the
 * folder `text` is null and messages are refused. `--adapter` names a PEFT folder. The same seed, line and weights give
 * the same response.
 */
import fs from "node:fs";
import path from "node:path";
import type { Values } from "../../proto/command-line.ts";
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
  runCommand,
  tokensOf,
  whole,
} from "./command.ts";

/** Default of --max-tokens; less where the model's context ends sooner. */
const MAX_TOKENS = 256;
/** Smallest temperature above 0, as in a manifest (model.temperature): logits divided by less exceed float32. */
const LEAST_TEMPERATURE = 0.01;
const ROLES = ["system", "user", "assistant"];

export const GENERATE = {
  name: "longrun generate",
  description: "generate responses to prompts",
  options: {
    ...MODEL_OPTIONS,
    prompts: {
      value: "FILE",
      help: 'lines {"tokens":[...]} or {"messages":[{"role","content"}]}',
      required: 'a file of lines {"tokens":[...]} or {"messages":[...]}',
    },
    "max-tokens": { value: "N", help: `default ${MAX_TOKENS}, or what is left of the context`, as: whole(1) },
    temperature: {
      value: "T",
      help: `0 takes the most probable token, with its log-prob at temperature 1; else ${LEAST_TEMPERATURE} or more`,
      default: "1",
      as: temperatureOf,
    },
    seed: { value: "S", help: "the same seed, line and weights give the same response", default: "0", as: whole(0) },
    "show-prompt": { help: 'adds "prompt", the text that the model continues, with the chat template\'s tokens' },
  },
  notes: `Writes lines {"tokens":[...],"text":"...","logProbs":[...]} in the same order. "text" is null without a tokenizer.json.`,
  examples: ["longrun generate --model quickstart --prompts prompts.jsonl --temperature 0"],
} as const;

function temperatureOf(text: string, option: string): number {
  const temperature = Number(text);
  const greedy = text.trim() !== "" && temperature === 0;
  if (greedy || (temperature >= LEAST_TEMPERATURE && temperature < Infinity)) return temperature;
  const known = `give 0 for the most probable tokens, or a number of at least ${LEAST_TEMPERATURE}`;
  throw new InputError(`${option} is ${text}; ${known}`);
}

async function generate(values: Values<typeof GENERATE.options>): Promise<void> {
  const { maxTokens, temperature, seed, prompts: file } = values;
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
      ...(values.showPrompt && { prompt }),
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

if (import.meta.main) await runCommand(GENERATE, generate);
