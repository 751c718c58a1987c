/** Model folders of real sizes that take no room: the weights are a hole in their file, which reads as zeros. */
import fs from "node:fs";
import path from "node:path";
import { configJson, type ModelConfig } from "./config.ts";
import { elementCount, parameters } from "./weights.ts";

const QWEN2 = {
  ...({ modelType: "qwen2", normEpsilon: 1e-6, ropeTheta: 1e6, tied: true, queryKeyValueBias: true } as const),
  ...{ maxPositions: 32768, initializerRange: 0.02, vocabSize: 151936 },
};

/** Qwen2.5's shapes. */
export const SHAPES = {
  "0.5b": {
    ...{ ...QWEN2, hiddenSize: 896, intermediateSize: 4864, layers: 24 },
    ...{ heads: 14, keyValueHeads: 2, headSize: 64 },
  },
  "1.5b": {
    ...{ ...QWEN2, hiddenSize: 1536, intermediateSize: 8960, layers: 28 },
    ...{ heads: 12, keyValueHeads: 2, headSize: 128 },
  },
  "3b": {
    ...{ ...QWEN2, hiddenSize: 2048, intermediateSize: 11008, layers: 36 },
    ...{ heads: 16, keyValueHeads: 2, headSize: 128 },
  },
  "7b": {
    ...{ ...QWEN2, vocabSize: 152064, tied: false, hiddenSize: 3584, intermediateSize: 18944, layers: 28 },
    ...{ heads: 28, keyValueHeads: 4, headSize: 128 },
  },
  "14b": {
    ...{ ...QWEN2, vocabSize: 152064, tied: false, hiddenSize: 5120, intermediateSize: 13824, layers: 48 },
    ...{ heads: 40, keyValueHeads: 8, headSize: 128 },
  },
} satisfies Record<string, ModelConfig>;

/** @returns the size of the weights' file, bytes */
export function writeHollowModel(folder: string, config: ModelConfig, dtype: "F32" | "F16" | "BF16" = "BF16"): number {
  const width = dtype === "F32" ? 4 : 2;
  let end = 0;
  const tensors = parameters(config).map(({ name, shape }) => {
    const begin = end;
    end += width * elementCount(shape);
    return [name, { dtype, shape, data_offsets: [begin, end] }];
  });
  const text = JSON.stringify(Object.fromEntries(tensors));
  const header = Buffer.from(text.padEnd(Math.ceil(text.length / 8) * 8));
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(header.length));
  fs.mkdirSync(folder, { recursive: true });
  fs.writeFileSync(path.join(folder, "config.json"), JSON.stringify(configJson(config, { eos_token_id: 0 })));
  const file = path.join(folder, "model.safetensors");
  fs.writeFileSync(file, Buffer.concat([length, header]));
  fs.truncateSync(file, 8 + header.length + end);
  return 8 + header.length + end;
}
