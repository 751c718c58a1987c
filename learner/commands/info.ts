/** What a model folder holds and what using it takes. */
import { size } from "../engine/bytes.ts";
import { readEosIds } from "../engine/model/folder.ts";
import type { MappedWeights } from "../engine/model/mapped.ts";
import { TRANSFORMERS_DTYPES } from "../engine/model/save.ts";
import { elementCount } from "../engine/model/weights.ts";

export interface ModelInfo {
  readonly folder: string;
  readonly architecture: string;
  readonly layers: number;
  readonly hiddenSize: number;
  readonly heads: number;
  readonly keyValueHeads: number;
  readonly headSize: number;
  readonly vocabulary: number;
  readonly positions: number;
  readonly rope: string;
  readonly tied: boolean;
  readonly eosIds: readonly number[];
  readonly parameters: number;
  /** of the weights in their files; also what is memory-mapped by logprobs and generate, once for all processes */
  readonly bytes: number;
  readonly files: number;
  /** parameters by dtype */
  readonly dtypes: Readonly<Record<string, number>>;
  readonly memory: {
    /** weights in float32, as training holds them */
    readonly float32Bytes: number;
    /** weights, gradient and two moments in float32: full fine-tuning, without activations, reference and critic */
    readonly trainingBytes: number;
    /** keys and values of one token of one sequence */
    readonly cacheBytesPerToken: number;
  };
}

export function modelInfo(weights: MappedWeights): ModelInfo {
  const { config, tensors, folder } = weights;
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
  return {
    folder,
    architecture: config.modelType,
    layers: config.layers,
    hiddenSize: config.hiddenSize,
    heads: config.heads,
    keyValueHeads: config.keyValueHeads,
    headSize: config.headSize,
    vocabulary: config.vocabSize,
    positions: config.maxPositions,
    rope: config.rope?.type ?? "default",
    tied: config.tied,
    eosIds: readEosIds(folder),
    parameters,
    bytes,
    files: new Set(tensors.map(({ file }) => file)).size,
    dtypes,
    memory: {
      float32Bytes: 4 * parameters,
      trainingBytes: 16 * parameters,
      cacheBytesPerToken: 8 * config.layers * config.keyValueHeads * config.headSize,
    },
  };
}

export function printInfo(info: ModelInfo): void {
  const { memory } = info;
  const rows: [string, string][] = [
    ["architecture", `${info.architecture}, ${info.layers} layers of ${info.hiddenSize}`],
    ["attention", `${info.heads} heads of ${info.headSize}, ${info.keyValueHeads} of keys and values`],
    ["vocabulary", `${info.vocabulary}, ${info.tied ? "tied" : "untied"}`],
    ["positions", `${info.positions}, rope ${info.rope}`],
    ["end of text", info.eosIds.length > 0 ? info.eosIds.join(", ") : "none"],
    ["parameters", String(info.parameters)],
    ["weights", `${size(info.bytes)} in ${info.files} file${info.files === 1 ? "" : "s"}`],
    [
      "dtypes",
      Object.entries(info.dtypes)
        .map(([dtype, count]) => `${dtype} (${count})`)
        .join(", "),
    ],
    ["memory", `${size(info.bytes)} mapped to read them, ${size(memory.float32Bytes)} in float32`],
    ["", `${size(memory.trainingBytes)} to train all of them, activations not counted`],
    ["", `${size(memory.cacheBytesPerToken)} of keys and values per token`],
  ];
  for (const [name, value] of rows) process.stdout.write(`${name.padEnd(14)}${value}\n`);
}
