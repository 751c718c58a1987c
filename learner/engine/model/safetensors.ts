import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { ModelError } from "./errors.ts";
import { fromStored, toStored } from "./halves.ts";
import {
  BYTES_PER_ELEMENT,
  readHeader,
  readPart,
  type SafetensorsDType,
  type StoredTensor,
} from "./safetensors-header.ts";
import { elementCount, type Tensor } from "./weights.ts";

/**
 * The safetensors format: 8 bytes little-endian header length, a JSON header of `name -> {dtype, shape, data_offsets}`,
 * then the tensors' bytes without gaps. A file comes from outside, so memory is only taken for what it really holds.
 */

const MAX_WRITE_BYTES = 1 << 30; // one write() takes at most 2 GiB

/**
 * Reads all tensors as float32 (F32, BF16 and F16 are exact).
 *
 * @throws ModelError `weights` when the file is truncated, lies about itself or holds another dtype
 */
export function readSafetensors(file: string): Map<string, Tensor> {
  const { tensors } = readHeader(file);
  return new Map(tensors.map((tensor) => [tensor.name, { shape: tensor.shape, data: readTensor(tensor) }]));
}

export function readTensor({ file, dtype, shape, offset }: StoredTensor): Float32Array {
  const bytes = new Uint8Array(elementCount(shape) * BYTES_PER_ELEMENT[dtype]);
  readPart(file, bytes, offset);
  return fromStored(dtype, bytes.buffer);
}

/** A tensor to write; its numbers are asked for when their turn comes, so that one at a time is in memory. */
export interface TensorSource {
  readonly name: string;
  readonly shape: readonly number[];
  read(): Float32Array;
}

/** Writes float32 tensors in the map's order; the same tensors give the same bytes. */
export function writeSafetensors(
  file: string,
  tensors: ReadonlyMap<string, Tensor>,
  metadata?: Record<string, string>,
): void {
  const sources = [...tensors].map(([name, { shape, data }]) => ({ name, shape, read: () => data }));
  writeTensors(file, sources, "F32", metadata);
}

/**
 * Writes tensors in the given order. The file appears whole or not at all: it is written and synced beside its final
 * name, then renamed.
 */
export function writeTensors(
  file: string,
  tensors: readonly TensorSource[],
  dtype: SafetensorsDType,
  metadata: Record<string, string> = { format: "pt" }, // transformers refuses files without it
): void {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let offset = 0;
  for (const { name, shape } of tensors) {
    if (name === "__metadata__") throw new ModelError("weights", `${file}: a tensor may not be called ${name}`);
    const end = offset + elementCount(shape) * BYTES_PER_ELEMENT[dtype];
    header[name] = { dtype, shape, data_offsets: [offset, end] };
    offset = end;
  }
  let text = Buffer.from(JSON.stringify(header));
  text = Buffer.concat([text, Buffer.alloc(-text.length & 7, " ")]); // tensors start at a multiple of 8
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));

  const temporary = `${file}.${process.pid}.${randomBytes(4).toString("hex")}.tmp`;
  try {
    const descriptor = fs.openSync(temporary, "wx");
    try {
      writeAll(descriptor, length);
      writeAll(descriptor, text);
      for (const tensor of tensors) {
        const data = tensor.read();
        if (elementCount(tensor.shape) !== data.length) {
          throw new ModelError(
            "weights",
            `${file}: ${tensor.name} is [${tensor.shape}] but has ${data.length} numbers`,
          );
        }
        writeAll(descriptor, toStored(dtype, data));
      }
      fs.fsyncSync(descriptor);
    } finally {
      fs.closeSync(descriptor);
    }
    fs.renameSync(temporary, file);
    syncFolder(path.dirname(file));
  } catch (cause) {
    fs.rmSync(temporary, { force: true });
    throw cause;
  }
}

function writeAll(descriptor: number, source: Uint8Array): void {
  for (let done = 0; done < source.length; ) {
    done += fs.writeSync(descriptor, source, done, Math.min(source.length - done, MAX_WRITE_BYTES));
  }
}

/** Makes a rename in this folder survive a power cut. */
function syncFolder(folder: string): void {
  const descriptor = fs.openSync(folder, "r");
  try {
    fs.fsyncSync(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}
