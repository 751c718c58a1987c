/**
 * Makes a model folder of a GGUF file and of a folder with the model's config.json and tokenizer. GGUF has a tokenizer of its own, from which
 * Hugging Face's cannot be made exactly: it names the pre-tokenizer and leaves out its pattern. Names and the order of rows are those of
 * transformers' modeling_gguf_pytorch_utils.py.
 */
import { ModelError } from "./errors.ts";
import { saveWeights } from "./files.ts";
import { copyOtherFiles, readConfig, readTokenizer, writeConfig } from "./folder.ts";
import { type Gguf, type GgufTensor, readGguf, readRows } from "./gguf.ts";
import { type SafetensorsDType, TRANSFORMERS_DTYPES } from "./halves.ts";
import { checkFinite, EMBEDDING, elementCount, OUTPUT_LAYER, parameters } from "./weights.ts";

/** Layers' parts by their names in Hugging Face's files. */
const PARTS: Record<string, string> = {
  input_layernorm: "attn_norm",
  post_attention_layernorm: "ffn_norm",
  "self_attn.q_proj": "attn_q",
  "self_attn.k_proj": "attn_k",
  "self_attn.v_proj": "attn_v",
  "self_attn.o_proj": "attn_output",
  "self_attn.q_norm": "attn_q_norm",
  "self_attn.k_norm": "attn_k_norm",
  "mlp.gate_proj": "ffn_gate",
  "mlp.up_proj": "ffn_up",
  "mlp.down_proj": "ffn_down",
};
const WHOLE: Record<string, string> = {
  [EMBEDDING]: "token_embd.weight",
  "model.norm.weight": "output_norm.weight",
  [OUTPUT_LAYER]: "output.weight",
};
/** Tensors that config.json says in another way. */
const DERIVED = ["rope_freqs.weight"];
/** Numbers in memory at a time, at least a row. */
const PART_NUMBERS = 2 ** 22;

/**
 * Writes the folder `out`; config.json is written last, so that an unfinished folder is refused.
 *
 * @param source folder with config.json and the tokenizer of the same model
 * @param options `dtype` of the weights, default BF16: most types of GGUF have fewer bits
 * @returns the number of weight files
 * @throws ModelError naming a tensor that is missing, has another shape, is unknown or has a type that is not read
 */
export function convertGguf(
  file: string,
  source: string,
  out: string,
  { dtype = "BF16", shardBytes }: { dtype?: SafetensorsDType | undefined; shardBytes?: number | undefined },
): number {
  const gguf = readGguf(file);
  const config = readConfig(source);
  readTokenizer(source);
  const refused = (why: string) => new ModelError("weights", `${file}: ${why}`);
  const architecture = gguf.fields.get("general.architecture");
  if (architecture !== config.modelType)
    throw refused(`it is of the architecture ${architecture}, and config.json in ${source} of ${config.modelType}`);
  const parts = Number(gguf.fields.get("split.count") ?? 1);
  if (parts > 1) throw refused(`it is one of ${parts} files; join them with llama-gguf-split --merge`);
  const heads: Record<string, number> = { q_proj: config.heads, k_proj: config.keyValueHeads };
  const known = new Set(DERIVED);
  const tensors = parameters(config).map(({ name, shape }) => {
    const theirs = nameOf(name);
    const tensor = gguf.tensors.get(theirs);
    if (!tensor) throw refused(`it has no ${theirs}, which config.json in ${source} asks for`);
    if (String(tensor.shape) !== String(shape))
      throw refused(`${theirs} is [${tensor.shape}], and config.json in ${source} asks for [${shape}]`);
    known.add(theirs);
    const count = config.modelType === "llama" ? heads[/\.([qk]_proj)\./.exec(name)?.[1] ?? ""] : undefined;
    return { name, shape, read: () => checkedParts(name, gguf, tensor, count) };
  });
  const unknown = [...gguf.tensors.keys()].find((name) => !known.has(name));
  if (unknown !== undefined) throw refused(`it has ${unknown}, which config.json in ${source} does not ask for`);
  copyOtherFiles(out, source);
  const files = saveWeights(out, tensors, { dtype, ...(shardBytes !== undefined && { shardBytes }) });
  writeConfig(out, source, TRANSFORMERS_DTYPES[dtype]);
  return files;
}

function nameOf(name: string): string {
  if (WHOLE[name] !== undefined) return WHOLE[name];
  const [, layer, part, kind] = /^model\.layers\.(\d+)\.(.+)\.(weight|bias)$/.exec(name)!;
  return `blk.${layer}.${PARTS[part!]}.${kind}`;
}

/** Yields some rows at a time. @param heads of a matrix whose rows llama.cpp orders otherwise */
function* checkedParts(
  name: string,
  gguf: Gguf,
  tensor: GgufTensor,
  heads: number | undefined,
): Generator<Float32Array> {
  const isVector = tensor.shape.length === 1;
  const rows = isVector ? 1 : tensor.shape[0]!;
  const columns = elementCount(tensor.shape) / rows;
  // whole heads, where rows change places
  const unit = heads === undefined || isVector ? 1 : rows / heads;
  const step = unit * Math.max(1, Math.floor(PART_NUMBERS / (columns * unit)));
  for (let first = 0; first < rows; first += step) {
    const numbers = readRows(gguf, tensor, first, Math.min(step, rows - first));
    checkFinite(name, numbers, gguf.file, first * columns);
    if (heads === undefined) yield numbers;
    else yield isVector ? unpaired(numbers, 1, columns / heads) : unpaired(numbers, columns, unit);
  }
}

/** llama.cpp rotates neighbours and transformers halves of a head: rows 2i and 2i + 1 of a head become its rows i and i + size / 2. */
function unpaired(numbers: Float32Array, columns: number, size: number): Float32Array {
  const moved = new Float32Array(numbers.length);
  for (let row = 0; row < numbers.length / columns; row++) {
    const [head, i] = [Math.floor(row / size), row % size];
    const from = head * size + (i < size / 2 ? 2 * i : 2 * (i - size / 2) + 1);
    moved.set(numbers.subarray(from * columns, (from + 1) * columns), row * columns);
  }
  return moved;
}
