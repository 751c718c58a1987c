/** The options of `longrun model`. */

const JSON_OPTION = { json: "print one object" } as const;
const FOLDER = { "<MODEL>": "model folder, or the name of a bundled policy" } as const;

export const FETCH = {
  name: "longrun model fetch",
  description: "Fetches a model of the Hugging Face hub, of S3 or of a registry, and prints its folder.",
  arguments: { "<MODEL>": "OWNER/NAME, s3://BUCKET/PREFIX or oci://HOST/REPOSITORY:TAG" },
  options: {
    "revision <REVISION>": "branch, tag or commit of the hub's repository",
    "out <DIR>": "folder to write (default: in the cache)",
    ...JSON_OPTION,
  },
} as const;

export const INFO = {
  name: "longrun model info",
  description: "Describes a model folder, and with --plan the memory of training it.",
  arguments: FOLDER,
  options: {
    ...JSON_OPTION,
    check: "look for weights that are NaN or infinite",
    "plan <full|lora>":
      "print one plan, or the refusal. Without a value: which GPUs train the model. Needs config.json alone",
    "tokens <PROMPT:RESPONSE>":
      "longest prompt and response (default: 1024:1024, or half of the model's positions each if those are fewer)",
    "batch <N>": "model.generationBatchSize (default: 64)",
    "compute <FORMAT>": "learner.compute, Float32 or BFloat16 (default: BFloat16 in the table, Float32 in one plan)",
    "device <cpu|cuda:N>": "the GPU need not exist (default: cpu)",
    "gpus <N>": "in place of --device: N GPUs, 16 at most",
    "memory-bytes <SIZE>":
      "bytes, or a size such as 80GB: memory of the device, or of each GPU. Required for a GPU; for a CPU the free memory by default",
  },
} as const;
export const TOKENIZE = {
  name: "longrun model tokenize",
  description: "Prints the ids and texts of a text's tokens.",
  arguments: { ...FOLDER, "[TEXT...]": "the text; absent: the standard input" },
  options: JSON_OPTION,
} as const;
export const OUTPUT = {
  "out <DIR>": { help: "new or empty folder", required: "the folder to write" },
  "dtype <float32|bfloat16>": "of the weights (default: as they are, of a GGUF file bfloat16)",
  "shard-size <SIZE>": "bytes, or a size such as 5GB: most of one file",
} as const;
export const CONVERT = {
  name: "longrun model convert",
  description: "Writes a model folder in another dtype or other files, or makes one of a GGUF file.",
  arguments: { "<MODEL>": "model folder, the name of a bundled policy, or a GGUF file" },
  options: {
    ...OUTPUT,
    "tokenizer <DIR>":
      "of a GGUF file: folder with config.json and the tokenizer of its model. GGUF's own tokenizer does not say all of it",
  },
} as const;
export const MERGE = {
  name: "longrun model merge",
  description: "Merges a LoRA adapter into its model.",
  options: {
    "model <MODEL>": { help: "model folder", required: "a model folder" },
    "adapter <DIR>": { help: "PEFT folder of a LoRA adapter", required: "a PEFT folder of a LoRA adapter" },
    ...OUTPUT,
  },
} as const;
export const MODEL = {
  name: "longrun model",
  description: "fetch a model, describe a model folder, tokenize a text, or convert or merge it",
  options: {},
  commands: [FETCH, INFO, TOKENIZE, CONVERT, MERGE],
  examples: [
    "longrun model fetch Qwen/Qwen2.5-0.5B-Instruct",
    "longrun model info quickstart",
    "longrun model tokenize quickstart 'import pandas as pd'",
    "longrun model info quickstart --plan",
    "longrun model info quickstart --plan lora --tokens 256:256",
    "longrun model convert quickstart --out policies/half --dtype bfloat16",
    "longrun model convert small.Q4_K_M.gguf --tokenizer models/small-tokenizer --out models/small",
  ],
} as const;
