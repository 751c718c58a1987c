/** `longrun model`: fetches a model; shows a folder's contents and the memory of training; converts; merges an adapter. */
import fs from "node:fs";
import path from "node:path";
import { bind, flagOf, type Values } from "../../proto/command-line.ts";
import { makeFolder } from "../../proto/folders.ts";
import {
  type Budget,
  type ConvertOptions,
  checkLengths,
  convertFolder,
  convertGguf,
  type Device,
  elementCount,
  eosIdsOf,
  fitRun,
  gpuLines,
  gpuTable,
  hasWeights,
  hostMemory,
  MappedWeights,
  ModelError,
  mergeFolder,
  type PlanRequest,
  PROJECTIONS,
  parseDevices,
  planTable,
  readTokenizer,
  SHARD_BYTES,
  size,
  TRANSFORMERS_DTYPES,
  tokenName,
  turnEndWarning,
} from "../engine/index.ts";
import { InputError, modelFolder, printLine, required, runCommands, wholeNumber } from "./command.ts";
import { CONVERT, FETCH, INFO, MERGE, MODEL, type OUTPUT, TOKENIZE } from "./model-options.ts";

const DTYPES = { float32: "F32", bfloat16: "BF16" } as const;

type Info = Values<typeof INFO.options>;

/** The options of a plan. */
const OF_A_PLAN = ["plan", "tokens", "batch", "device", "gpus", "compute", "memoryBytes"] as const;

async function fetch({ revision, out, json }: Values<typeof FETCH.options>, repo: string): Promise<void> {
  if (out === "") throw new InputError("--out is empty; give the folder to write");
  // Imported only here, because it loads the hub's library.
  const [{ fetchModel }, { useProxies }] = [await import("../hub/fetch-model.ts"), await import("../hub/proxy.ts")];
  useProxies(process.env);
  const fetched = await fetchModel({ repo, revision, out, env: process.env, output: process.stderr });
  if (json) printLine(fetched);
  else process.stdout.write(`${fetched.folder}\n`);
}

function info(values: Info, given: string): void {
  const folder = checkedFolder(given);
  const weights = MappedWeights.planned(folder);
  const wish = planWish(values, weights);
  if (values.check && !hasWeights(folder))
    throw new InputError(`--check: ${folder} has no weights; longrun model fetch fetches a whole model`);
  if (values.check) weights.checkFinite();
  const facts = modelInfo(weights);
  if (!values.json) printInfo(facts); // printed before the plan may be refused
  const { request, budget } = wish ?? {};
  const plan = request && budget && fitRun(request, 0, budget);
  const table = request && !budget && gpuTable(request);
  if (values.json) printLine({ ...facts, ...(plan && { plan }), ...(table && { table }) });
  else if (plan) printLines(planTable(plan, budget));
  else if (table) printLines(["", assumed(request), "", ...gpuLines(table)]);
}

/** Whether the argument after --plan is its value: --plan alone, before another option or the folder, is the table. */
const isTrained = (next: string | undefined): boolean =>
  next !== undefined && !next.startsWith("-") && (TRAINED.includes(next) || !fs.existsSync(next));

const printLines = (lines: readonly string[]) => void process.stdout.write(`${lines.join("\n")}\n`);

/** Returns a table's assumptions: precision, token lengths, batch sizes. */
function assumed({ compute, maxPromptTokens: prompt, maxResponseTokens: response, ...request }: PlanRequest): string {
  const name = Object.keys(COMPUTE).find((name) => COMPUTE[name as keyof typeof COMPUTE] === compute);
  return (
    `PPO with a critic, learner.compute ${name}, prompts of ${prompt} tokens, responses of ${response}, ` +
    `${request.generationBatchSize} of them generated side by side, LoRA of rank 16`
  );
}

function modelInfo({ config, tensors, folder }: MappedWeights) {
  const dtypes: Record<string, number> = {};
  let parameters = 0;
  let bytes = 0;
  for (const { dtype, shape, length } of tensors) {
    const count = elementCount(shape);
    const name = TRANSFORMERS_DTYPES[dtype];
    dtypes[name] = (dtypes[name] ?? 0) + count;
    parameters += count;
    bytes += length;
  }
  const { modelType, layers, hiddenSize, heads, keyValueHeads, headSize, vocabSize, maxPositions, rope, tied } = config;
  return {
    folder,
    architecture: modelType,
    layers,
    hiddenSize,
    heads,
    keyValueHeads,
    headSize,
    vocabulary: vocabSize,
    positions: maxPositions,
    rope: rope?.type ?? "default",
    tied,
    ...endsOfText(folder),
    parameters,
    /** Bytes of the weights in their files. logprobs and generate map the files, once for all processes. */
    bytes,
    files: hasWeights(folder) ? new Set(tensors.map(({ file }) => file)).size : 0,
    dtypes,
    memory: {
      /** weights in float32, as training holds them */
      float32Bytes: 4 * parameters,
      /** weights, gradient and two moments in float32: full fine-tuning, without activations, reference and critic */
      trainingBytes: 16 * parameters,
      /** keys and values of one token of one sequence */
      cacheBytesPerToken: 8 * layers * keyValueHeads * headSize,
    },
  };
}

interface EndsOfText {
  eosIds: number[];
  /** The file that names them. */
  eosSource: string | undefined;
  eosTokens?: (string | undefined)[];
  warning?: string;
}

/** The tokens that end a response. Names are missing without a usable tokenizer. */
function endsOfText(folder: string): EndsOfText {
  const { ids: eosIds, source: eosSource } = eosIdsOf(folder);
  try {
    const tokenizer = readTokenizer(folder);
    const warning = turnEndWarning(folder, tokenizer);
    return { eosIds, eosSource, eosTokens: eosIds.map((id) => tokenName(tokenizer, id)), ...(warning && { warning }) };
  } catch (cause) {
    if (!(cause instanceof ModelError)) throw cause;
    return { eosIds, eosSource, ...(fs.existsSync(path.join(folder, "tokenizer.json")) && { warning: cause.message }) };
  }
}

function printInfo(info: ReturnType<typeof modelInfo>): void {
  const { memory } = info;
  const dtypes = Object.entries(info.dtypes).map(([dtype, count]) => `${dtype} (${count})`);
  const ends = info.eosIds.map((id, i) => `${id} ${info.eosTokens?.[i] ?? ""}`.trim());
  const rows: [string, string][] = [
    ["architecture", `${info.architecture}, ${info.layers} layers of ${info.hiddenSize}`],
    ["attention", `${info.heads} heads of ${info.headSize}, ${info.keyValueHeads} of keys and values`],
    ["vocabulary", `${info.vocabulary}, ${info.tied ? "tied" : "untied"}`],
    ["positions", `${info.positions}, rope ${info.rope}`],
    [
      "end of text",
      ends.length > 0 ? `${ends.join(", ")} (${info.eosSource})` : "none: no file of the folder names one",
    ],
    ["parameters", String(info.parameters)],
    [
      "weights",
      info.files > 0
        ? `${size(info.bytes)} in ${info.files} file${info.files === 1 ? "" : "s"}`
        : `${size(info.bytes)} by config.json; there are none in the folder`,
    ],
    ["dtypes", dtypes.join(", ")],
    ["memory", `${size(info.bytes)} mapped to read them, ${size(memory.float32Bytes)} in float32`],
    ["", `${size(memory.trainingBytes)} to train all of them, activations not counted`],
    ["", `${size(memory.cacheBytesPerToken)} of keys and values per token`],
    ...(info.warning ? [["warning", info.warning] as [string, string]] : []),
  ];
  for (const [name, value] of rows) process.stdout.write(`${name.padEnd(14)}${value}\n`);
}

const TRAINED = ["full", "lora"];
/** The precision of a plan's passes for each value of learner.compute. */
const COMPUTE = { Float32: "float32", BFloat16: "bfloat16" } as const;
/** A manifest's default of either length. */
const TOKENS = 1024;
/** A manifest's default of model.generationBatchSize, and the most that it may give. */
const BATCH = 64;
const MOST_BATCH = 4096;
const MOST_GPUS = 16;

/** @returns the request of PPO with a manifest's defaults and its memory, unless a table is wanted; undefined without --plan */
function planWish(
  values: Info,
  { config, folder }: MappedWeights,
): { request: PlanRequest; budget: Budget | undefined } | undefined {
  const { plan } = values;
  if (plan === undefined) {
    const other = OF_A_PLAN.find((name) => values[name] !== undefined);
    if (other) throw new InputError(`${flagOf(other)} is of a plan; give --plan, --plan full or --plan lora with it`);
    return undefined;
  }
  if (plan !== "table" && !TRAINED.includes(plan))
    throw new InputError(`--plan is ${plan}; give full or lora, or --plan alone for a table of GPUs`);
  const shorter = Math.min(TOKENS, Math.floor(config.maxPositions / 2));
  const tokens = values.tokens ?? `${shorter}:${shorter}`;
  const given = /^([1-9]\d{0,6}):([1-9]\d{0,6})$/.exec(tokens);
  if (!given) throw new InputError(`--tokens is ${tokens}; give PROMPT:RESPONSE, the longest of each`);
  const generationBatchSize = wholeNumber(values.batch ?? String(BATCH), "--batch", 1);
  if (generationBatchSize > MOST_BATCH)
    throw new InputError(`--batch is ${generationBatchSize}; give a whole number of at most ${MOST_BATCH}`);
  const lengths = { maxPromptTokens: Number(given[1]), maxResponseTokens: Number(given[2]) };
  checkLengths(lengths, config.maxPositions, `--tokens ${tokens}: `);
  const adapter = plan === "lora" ? { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 0 } : undefined;
  // a GPU of the table has bfloat16; a plan has a manifest's default
  const wanted = values.compute ?? (plan === "table" ? "BFloat16" : "Float32");
  const compute = COMPUTE[wanted as keyof typeof COMPUTE];
  if (compute === undefined)
    throw new InputError(`--compute is ${wanted}; give Float32, which is as large as TF32, or BFloat16`);
  const ppo = { critic: true, microBatchSize: 8, samplesPerPrompt: 1 };
  const request = { model: folder, adapter, ...ppo, ...lengths, generationBatchSize, compute };
  if (plan === "table") {
    const device = (["device", "gpus", "memoryBytes"] as const).find((name) => values[name] !== undefined);
    if (device)
      throw new InputError(
        `${flagOf(device)} is of one plan, and --plan alone has all; say --plan full or --plan lora`,
      );
    return { request: { ...request, device: { kind: "cuda", id: 0 } as const }, budget: undefined };
  }
  const devices = planDevices(values);
  const [device] = devices as [Device];
  if (device.kind === "cpu" && compute === "bfloat16")
    throw new InputError("--compute is BFloat16, which needs a GPU; give --gpus too, or Float32");
  const budget = budgetOf(device, values.memoryBytes);
  return { request: { ...request, device, ...(devices.length > 1 && { devices }) }, budget };
}

/** Returns the devices to plan for: `--device`, or so many GPUs. */
function planDevices({ device, gpus }: { device?: string; gpus?: string }): readonly Device[] {
  if (gpus === undefined) {
    const wish = parseDevices(device ?? "cpu");
    if (wish === "auto") throw new InputError("--device is auto; give cpu or cuda:N");
    return wish === "cuda" ? [{ kind: "cuda", id: 0 }] : wish;
  }
  if (device !== undefined) throw new InputError(`--device is ${device} beside --gpus; give one of them`);
  const count = wholeNumber(gpus, "--gpus", 1);
  if (count > MOST_GPUS) throw new InputError(`--gpus is ${gpus}; give a whole number of at most ${MOST_GPUS}`);
  return Array.from({ length: count }, (_, id) => ({ kind: "cuda", id }));
}

/** Returns the memory to plan for. It looks for no GPU: this machine need not have one. */
function budgetOf(device: Device, text: string | undefined): Budget {
  const given = text === undefined ? undefined : { bytes: byteCount(text, "--memory-bytes"), source: "given" };
  if (device.kind === "cpu") return { host: given ?? hostMemory(), gpu: undefined };
  required(text, "--memory-bytes", "what each GPU has free, such as 80GB");
  return { host: undefined, gpu: given };
}

function convert(values: Values<typeof CONVERT.options>, given: string): void {
  const { tokenizer } = values;
  if (isGguf(given)) {
    if (tokenizer === undefined) throw new InputError(ofGguf(given));
    if (!fs.existsSync(given)) throw new InputError(`${given}: there is no such file`);
    const surroundings = modelFolder(tokenizer);
    write(values, (out, saving) => convertGguf(given, surroundings, out, saving));
    return;
  }
  if (tokenizer !== undefined)
    throw new InputError(`--tokenizer is for GGUF files; ${given} has its own, leave it out`);
  const source = modelFolder(given);
  write(values, (out, saving) => convertFolder(source, out, saving));
}

function merge(values: Values<typeof MERGE.options>): void {
  const model = modelFolder(values.model);
  write(values, (out, saving) => mergeFolder(model, values.adapter, out, saving));
}

/** @param folder writes the folder, and returns the number of files of weights */
function write(
  { dtype, out, shardSize }: Values<typeof OUTPUT>,
  folder: (out: string, saving: ConvertOptions) => number,
): void {
  if (dtype !== undefined && !Object.hasOwn(DTYPES, dtype))
    throw new InputError(`--dtype is ${dtype}; give ${Object.keys(DTYPES).join(" or ")}`);
  if (fs.existsSync(out) && (!fs.statSync(out).isDirectory() || fs.readdirSync(out).length > 0))
    throw new InputError(`--out ${out} is there already; give a new or empty folder`);
  const shardBytes = shardSize === undefined ? SHARD_BYTES : byteCount(shardSize, "--shard-size");
  makeFolder(out, "--out");
  try {
    const files = folder(out, { dtype: DTYPES[dtype as keyof typeof DTYPES], shardBytes });
    process.stdout.write(`${out}: ${files} file${files === 1 ? "" : "s"} of weights\n`);
  } catch (cause) {
    fs.rmSync(out, { recursive: true, force: true }); // the next try needs a new folder
    throw cause;
  }
}

/** Prints a line for each token of a text: its id and its text. */
function tokenize({ json }: Values<typeof TOKENIZE.options>, folder: string, ...words: string[]): void {
  const tokenizer = readTokenizer(modelFolder(folder));
  const ids = [...tokenizer.encode(words.length > 0 ? words.join(" ") : fs.readFileSync(0, "utf8"))];
  const texts = ids.map((id) => tokenizer.decode([id], { skipSpecialTokens: false }));
  if (json) {
    printLine({ ids, texts });
    return;
  }
  const width = Math.max(0, ...ids.map((id) => String(id).length));
  const lines = ids.map((id, i) => `${String(id).padStart(width)}  ${JSON.stringify(texts[i])}`);
  printLines([...lines, `${ids.length} tokens`]);
}

const isGguf = (given: string): boolean => /\.gguf$/i.test(given);

function checkedFolder(given: string): string {
  if (isGguf(given)) throw new InputError(ofGguf(given));
  return modelFolder(given);
}

/** Names the conversion. */
const ofGguf = (file: string): string =>
  `${file} is a GGUF file, and longrun reads folders in Hugging Face format: longrun model convert ${file} --tokenizer DIR --out OUT makes ` +
  `one, where DIR has config.json and the tokenizer of the same model, as its page at the Hugging Face hub has them`;

function byteCount(text: string, option: string): number {
  const match = /^(\d+(?:\.\d+)?(?:e\d+)?) ?([KMG]?)B?$/i.exec(text);
  const value = match ? Number(match[1]) * { "": 1, K: 1e3, M: 1e6, G: 1e9 }[match[2].toUpperCase()]! : 0;
  if (value >= 1 && Number.isFinite(value)) return value;
  throw new InputError(`${option} is ${text}; give bytes, or a size such as 5GB`);
}

/** `--plan` alone is the table. */
const withTable = (args: readonly string[]): string[] =>
  args.map((arg, i) => (arg === "--plan" && !isTrained(args[i + 1]) ? "--plan=table" : arg));

if (import.meta.main) {
  const describe = bind(INFO, info);
  await runCommands(MODEL, [
    bind(FETCH, fetch),
    { ...describe, run: (args) => describe.run(withTable(args)) },
    bind(TOKENIZE, tokenize),
    bind(CONVERT, convert),
    bind(MERGE, merge),
  ]);
}
