/** An adapter as a folder of PEFT: `adapter_config.json` and `adapter_model.safetensors`. */
import fs from "node:fs";
import path from "node:path";
import { sameShape } from "../graph/shapes.ts";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { type Json, readJson, writeJson } from "./json.ts";
import { type Adapter, adapterParameters, PROJECTIONS, type Projection } from "./lora.ts";
import { readSafetensors, writeSafetensors } from "./safetensors.ts";
import { checkFinite, type Tensor } from "./weights.ts";

const CONFIG = "adapter_config.json";
const WEIGHTS = "adapter_model.safetensors";
const PREFIX = "base_model.model.";

/** Fields that would change PEFT's computation, with the values at which it equals ours. */
const NEUTRAL_FIELDS: Record<string, readonly unknown[]> = {
  peft_type: ["LORA"],
  bias: ["none"],
  lora_bias: [false],
  fan_in_fan_out: [false],
  modules_to_save: [],
  layers_to_transform: [],
  exclude_modules: [],
  target_parameters: [],
  trainable_token_indices: [],
  layer_replication: [],
  alora_invocation_tokens: [],
  init_lora_weights: [true, false, "gaussian", "orthogonal", "eva"], // others change the base weights
};
const EMPTY_FIELDS = ["rank_pattern", "alpha_pattern"];
/** Variants of LoRA, such as use_dora and velora_config, which must be off. */
const VARIANT = /^use_|_config$/;

/**
 * @throws ModelError `config` naming the field of adapter_config.json that is not supported, `weights` naming the matrix that
 * is missing, unknown, of another shape or not finite
 */
export function readAdapter(folder: string, config: ModelConfig): Adapter {
  const lora = parseAdapterConfig(readJson(folder, CONFIG, "config"), path.join(folder, CONFIG));
  const file = path.join(folder, WEIGHTS);
  const tensors = readSafetensors(file);
  const weights = new Map<string, Float32Array>();
  for (const { name, shape } of adapterParameters(config, lora)) {
    const found = tensors.get(PREFIX + name);
    if (found === undefined) throw new ModelError("weights", `${file}: ${PREFIX}${name} is missing`);
    const problem = `is [${found.shape}], but the model and ${CONFIG} ask for [${shape}]`;
    if (!sameShape(found.shape, shape)) throw new ModelError("weights", `${file}: ${PREFIX}${name} ${problem}`);
    checkFinite(PREFIX + name, found.data, file);
    weights.set(name, found.data);
    tensors.delete(PREFIX + name);
  }
  const [unknown] = tensors.keys();
  if (unknown !== undefined) {
    throw new ModelError("weights", `${file}: unknown tensor ${unknown}; it does not fit ${CONFIG} and the model`);
  }
  return { lora, weights };
}

function parseAdapterConfig(json: Json, source: string): Adapter["lora"] {
  const refuse = (field: string, remedy: string): never => {
    throw new ModelError("config", `${source}: ${field} is ${JSON.stringify(json[field])}; ${remedy}`);
  };
  for (const [field, allowed] of Object.entries(NEUTRAL_FIELDS)) {
    const value = json[field];
    const missing = value === undefined || value === null || (Array.isArray(value) && value.length === 0);
    if (missing ? field !== "peft_type" : allowed.includes(value)) continue;
    const supported = allowed.map((x) => JSON.stringify(x)).join(", ");
    refuse(field, supported ? `supported is ${supported}` : "leave it out");
  }
  for (const [field, value] of Object.entries(json)) {
    const on = typeof value === "object" ? value !== null && Object.keys(value).length > 0 : value !== false;
    if (VARIANT.test(field) && on) refuse(field, "only plain LoRA is supported");
  }
  for (const field of EMPTY_FIELDS) {
    const value = json[field];
    if (value && Object.keys(value).length > 0)
      refuse(field, "only one rank and one alpha for all layers are supported");
  }
  const { r, lora_alpha: alpha, target_modules: modules } = json;
  if (!Number.isSafeInteger(r) || (r as number) < 1) refuse("r", "expected a whole number of at least 1");
  if (typeof alpha !== "number" || !Number.isFinite(alpha)) refuse("lora_alpha", "expected a number");
  const isProjection = (name: unknown) => PROJECTIONS.some((projection) => projection === name);
  const listed = Array.isArray(modules) && modules.length > 0 && modules.every(isProjection);
  if (!listed && modules !== "all-linear") refuse("target_modules", `supported are ${PROJECTIONS.join(", ")}`);
  const targets = PROJECTIONS.filter((name) => modules === "all-linear" || (modules as Projection[]).includes(name));
  return { rank: r as number, alpha: alpha as number, targets };
}

/** @param base the model that the adapter was trained on: a folder, or a name of Hugging Face's hub */
export function writeAdapter(folder: string, { lora, weights }: Adapter, base: string): void {
  fs.mkdirSync(folder, { recursive: true });
  const { rank, alpha, targets } = lora;
  writeJson(path.join(folder, CONFIG), {
    peft_type: "LORA",
    task_type: "CAUSAL_LM",
    base_model_name_or_path: base,
    inference_mode: true,
    r: rank,
    lora_alpha: alpha,
    lora_dropout: 0,
    target_modules: targets,
    bias: "none",
  });
  const tensors = [...weights].map(([name, data]): [string, Tensor] => {
    const shape = name.includes(".lora_A.") ? [rank, data.length / rank] : [data.length / rank, rank];
    return [PREFIX + name, { shape, data }];
  });
  writeSafetensors(path.join(folder, WEIGHTS), new Map(tensors));
}
