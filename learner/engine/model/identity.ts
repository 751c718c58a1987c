/** Tells the weights of one model folder from those of another without reading them all. */
import { createHash } from "node:crypto";
import fs from "node:fs";
import type { MappedWeights } from "./mapped.ts";
import { openFile, readBytes } from "./safetensors-header.ts";

/** Read of each tensor: its first bytes and its last ones. A model that was trained on differs in all of its matrices. */
const SAMPLE_BYTES = 4096;

/**
 * SHA-256, hex, over the configuration, every tensor's name, dtype and shape, and a sample of its numbers. The same model in
 * other files or shards has the same identity. 3B parameters take 3.5 MB of reading.
 */
export function modelIdentity({ config, tensors }: MappedWeights): string {
  const hash = createHash("sha256").update(JSON.stringify(config));
  const files = new Map<string, number>();
  try {
    for (const { name, file, dtype, shape, offset, length } of tensors) {
      hash.update(`\n${name} ${dtype} ${shape}\n`);
      const descriptor = files.get(file) ?? openFile(file);
      files.set(file, descriptor);
      const sample = new Uint8Array(Math.min(SAMPLE_BYTES, length));
      for (const position of [offset, offset + length - sample.length]) {
        readBytes(descriptor, sample, position, file);
        hash.update(sample);
      }
    }
  } finally {
    for (const descriptor of files.values()) fs.closeSync(descriptor);
  }
  return hash.digest("hex");
}
