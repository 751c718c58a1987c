/** The contents of a model folder, and the memory that using it takes. */
import { elementCount, type MappedWeights, readEosIds, size, TRANSFORMERS_DTYPES } from "../engine/index.ts";

export function modelInfo({ config, tensors, folder }: MappedWeights) {
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
    ...{ folder, architecture: modelType, layers, hiddenSize, heads, keyValueHeads, headSize, vocabulary: vocabSize },
    ...{ positions: maxPositions, rope: rope?.type ?? "default", tied, eosIds: readEosIds(folder), parameters },
    /** Bytes of the weights in their files. logprobs and generate map the files, once for all processes. */
    bytes,
    files: new Set(tensors.map(({ file }) => file)).size,
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

export function printInfo(info: ReturnType<typeof modelInfo>): void {
  const { memory } = info;
  const dtypes = Object.entries(info.dtypes).map(([dtype, count]) => `${dtype} (${count})`);
  const rows: [string, string][] = [
    ["architecture", `${info.architecture}, ${info.layers} layers of ${info.hiddenSize}`],
    ["attention", `${info.heads} heads of ${info.headSize}, ${info.keyValueHeads} of keys and values`],
    ["vocabulary", `${info.vocabulary}, ${info.tied ? "tied" : "untied"}`],
    ["positions", `${info.positions}, rope ${info.rope}`],
    ["end of text", info.eosIds.length > 0 ? info.eosIds.join(", ") : "none"],
    ["parameters", String(info.parameters)],
    ["weights", `${size(info.bytes)} in ${info.files} file${info.files === 1 ? "" : "s"}`],
    ["dtypes", dtypes.join(", ")],
    ["memory", `${size(info.bytes)} mapped to read them, ${size(memory.float32Bytes)} in float32`],
    ["", `${size(memory.trainingBytes)} to train all of them, activations not counted`],
    ["", `${size(memory.cacheBytesPerToken)} of keys and values per token`],
  ];
  for (const [name, value] of rows) process.stdout.write(`${name.padEnd(14)}${value}\n`);
}
