/**
 * `longrun model info DIR` says what a model folder holds, and with `--plan` what training it takes; `longrun model convert DIR --out OUT` writes it anew in another
 * dtype or with other shards, for transformers and for here; `longrun model merge` does so with a LoRA adapter added to it.
 */
import fs from "node:fs";
import { parseArgs } from "node:util";
import { hostMemory } from "../ppo/available-memory.ts";
import { fitRun, planTable } from "../ppo/fit.ts";
import type { PlanRequest } from "../ppo/plan.ts";
import { InputError, printLine, required, runCommand } from "./command.ts";
import { convertFolder } from "./convert.ts";
import { modelInfo, printInfo } from "./info.ts";
import { PROJECTIONS } from "./lora.ts";
import { MappedWeights } from "./mapped.ts";
import { mergeFolder } from "./merge.ts";
import { SHARD_BYTES } from "./save.ts";

const USAGE = `usage: longrun model info DIR [--check] [--json] [--plan full|lora [--tokens PROMPT:RESPONSE]]
       longrun model convert DIR --out OUT [--dtype float32|bfloat16] [--shard-size BYTES|N GB|N MB]
       longrun model merge --model DIR --adapter DIR --out OUT [--dtype float32|bfloat16] [--shard-size BYTES|N GB|N MB]`;
const DTYPES = { float32: "F32", bfloat16: "BF16" } as const;

async function model(): Promise<void> {
  const [command, ...args] = process.argv.slice(2);
  if (command === "info") info(args);
  else if (command === "convert") convert(args);
  else if (command === "merge") merge(args);
  else throw new InputError(USAGE);
}

function info(args: string[]): void {
  const { values, positionals } = parseArgs({
    args,
    options: {
      check: { type: "boolean", default: false },
      json: { type: "boolean", default: false },
      plan: { type: "string" },
      tokens: { type: "string", default: "1024:1024" },
    },
    allowPositionals: true,
  });
  const weights = new MappedWeights(onlyFolder(positionals));
  if (values.check) weights.checkFinite();
  const facts = modelInfo(weights);
  const plan = values.plan === undefined ? undefined : trainingPlan(weights.folder, values.plan, values.tokens);
  if (values.json) printLine({ ...facts, ...(plan && { plan: plan.plan }) });
  else {
    printInfo(facts);
    for (const line of plan?.table ?? []) process.stdout.write(`${line}\n`);
  }
}

/** Of PPO on this machine's CPU with a manifest's defaults. */
function trainingPlan(model: string, adaptation: string, tokens: string) {
  if (adaptation !== "full" && adaptation !== "lora")
    throw new InputError(`--plan is ${adaptation}; give full or lora`);
  const lengths = /^([1-9]\d{0,6}):([1-9]\d{0,6})$/.exec(tokens);
  if (!lengths) throw new InputError(`--tokens is ${tokens}; give PROMPT:RESPONSE, the longest of each`);
  const adapter = { rank: 16, alpha: 16, targets: PROJECTIONS, seed: 0 };
  const request: PlanRequest = {
    ...{ model, adapter: adaptation === "lora" ? adapter : undefined, critic: true, device: { kind: "cpu" } },
    ...{ maxPromptTokens: Number(lengths[1]), maxResponseTokens: Number(lengths[2]) },
    ...{ microBatchSize: 8, generationBatchSize: 64, samplesPerPrompt: 1 },
  };
  const budget = { host: hostMemory(), gpu: undefined };
  const plan = fitRun(request, 0, budget);
  return { plan, table: planTable(plan, budget) };
}

function convert(args: string[]): void {
  const { values, positionals } = parseArgs({
    args,
    options: { out: { type: "string" }, dtype: { type: "string" }, "shard-size": { type: "string" } },
    allowPositionals: true,
  });
  const source = onlyFolder(positionals);
  const { out, ...saving } = output(values);
  told(out, convertFolder(source, out, saving));
}

function merge(args: string[]): void {
  const folders = { model: { type: "string" }, adapter: { type: "string" } } as const;
  const { values } = parseArgs({
    args,
    options: { ...folders, out: { type: "string" }, dtype: { type: "string" }, "shard-size": { type: "string" } },
  });
  const model = required(values.model, "--model", "a model folder");
  const adapter = required(values.adapter, "--adapter", "a PEFT folder of a LoRA adapter");
  const { out, ...saving } = output(values);
  told(out, mergeFolder(model, adapter, out, saving));
}

function output(values: { out?: string; dtype?: string; "shard-size"?: string }) {
  const out = required(values.out, "--out", "the folder to write");
  const dtype = values.dtype === undefined ? undefined : DTYPES[values.dtype as keyof typeof DTYPES];
  if (values.dtype !== undefined && !Object.hasOwn(DTYPES, values.dtype)) {
    throw new InputError(`--dtype is ${values.dtype}; give ${Object.keys(DTYPES).join(" or ")}`);
  }
  if (fs.existsSync(out) && (!fs.statSync(out).isDirectory() || fs.readdirSync(out).length > 0)) {
    throw new InputError(`--out ${out} is there already; give a new or empty folder`);
  }
  return { out, dtype, shardBytes: bytes(values["shard-size"]) };
}

function told(out: string, files: number): void {
  process.stdout.write(`${out}: ${files} file${files === 1 ? "" : "s"} of weights\n`);
}

function onlyFolder(positionals: readonly string[]): string {
  if (positionals.length !== 1) throw new InputError(`give one model folder, not ${positionals.length}\n${USAGE}`);
  return positionals[0];
}

function bytes(text: string | undefined): number {
  if (text === undefined) return SHARD_BYTES;
  const match = /^(\d+(?:\.\d+)?) ?([KMG]?)B?$/i.exec(text);
  const value = match ? Number(match[1]) * { "": 1, K: 1e3, M: 1e6, G: 1e9 }[match[2].toUpperCase()]! : 0;
  if (value >= 1 && Number.isFinite(value)) return value;
  throw new InputError(`--shard-size is ${text}; give bytes, or a size such as 5GB`);
}

if (import.meta.main) await runCommand(USAGE, model);
