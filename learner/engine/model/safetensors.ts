/**
 * The safetensors format: 8 bytes little-endian header length, a JSON header of `name -> {dtype, shape, data_offsets}`,
 * then the tensors' bytes without gaps. A file comes from outside: nothing in its header is believed before it was checked against
 * the file's size, so no header makes the reader take more memory than the file has.
 */
import fs from "node:fs";
import { sameShape } from "../graph/shapes.ts";
import { ModelError } from "./errors.ts";
import { fromStored, type SafetensorsDType, storedBytes, TRANSFORMERS_DTYPES, toStored } from "./halves.ts";
import { type Json, LFS_POINTER_BYTES, parseObject, refuseLfsPointer, writeAll, writeWhole } from "./json.ts";
import { elementCount, type Tensor } from "./weights.ts";

const MAX_HEADER_BYTES = 100_000_000; // the limit of the reference implementation
const MAX_READ_BYTES = 1 << 30; // one read() returns at most 2 GiB
const COMPARED_NUMBERS = 2 ** 22;

/** Position of a tensor in its file. */
export interface StoredTensor {
  readonly name: string;
  readonly file: string;
  readonly dtype: SafetensorsDType;
  readonly shape: readonly number[];
  /** bytes from the start of the file */
  readonly offset: number;
  /** bytes */
  readonly length: number;
}

/** @throws ModelError `weights` when the file is truncated, lies about itself or holds another dtype */
export const readHeader = (file: string) => withFile(file, (descriptor) => parseHeader(descriptor, file));

/** Fills `target` from a position of a file on. @throws ModelError `weights` */
export const readPart = (file: string, target: Uint8Array, position: number): void =>
  withFile(file, (descriptor) => readBytes(descriptor, target, position, file));

function withFile<T>(file: string, use: (descriptor: number) => T): T {
  let descriptor: number;
  try {
    descriptor = fs.openSync(file, "r");
  } catch (cause) {
    throw new ModelError("weights", `cannot open ${file}: ${(cause as Error).message}`, { cause });
  }
  try {
    return use(descriptor);
  } finally {
    fs.closeSync(descriptor);
  }
}

function readBytes(descriptor: number, target: Uint8Array, position: number, file: string): void {
  for (let done = 0; done < target.length; ) {
    const wanted = Math.min(target.length - done, MAX_READ_BYTES);
    let read: number;
    try {
      read = fs.readSync(descriptor, target, done, wanted, position + done);
    } catch (cause) {
      throw new ModelError("weights", `cannot read ${file}: ${(cause as Error).message}`, { cause });
    }
    if (read === 0) throw new ModelError("weights", `${file} ended at byte ${position + done} while it was being read`);
    done += read;
  }
}

function parseHeader(descriptor: number, file: string) {
  const bad = (problem: string, cause?: unknown): never => {
    throw new ModelError("weights", `${file} is not a usable safetensors file: ${problem}`, { cause });
  };
  const stat = fs.fstatSync(descriptor);
  if (!stat.isFile()) bad("it is not a regular file");
  const fileBytes = stat.size;
  if (fileBytes < 8) bad(`it has ${fileBytes} bytes`);
  const prefix = new Uint8Array(8);
  readBytes(descriptor, prefix, 0, file);
  const headerBytes = Number(new DataView(prefix.buffer).getBigUint64(0, true));
  if (headerBytes > MAX_HEADER_BYTES || headerBytes > fileBytes - 8) {
    const beginning = Buffer.alloc(Math.min(LFS_POINTER_BYTES, fileBytes));
    readBytes(descriptor, beginning, 0, file);
    refuseLfsPointer(file, beginning.toString(), "weights");
    bad(`its header claims ${headerBytes} bytes, the file has ${fileBytes}`);
  }
  const bytes = new Uint8Array(headerBytes);
  readBytes(descriptor, bytes, 8, file);
  let header: Json;
  try {
    const text = new TextDecoder("utf-8", { fatal: true }).decode(bytes);
    header = parseObject(text, "not a JSON object");
    const twice = repeatedKey(text);
    if (twice !== undefined) throw new Error(`${twice} is there twice`);
  } catch (cause) {
    return bad(`its header is not JSON (${(cause as Error).message.slice(0, 100)})`, cause);
  }

  const metadata = header.__metadata__ ?? {};
  if (typeof metadata !== "object" || !Object.values(metadata as object).every((value) => typeof value === "string")) {
    bad("its __metadata__ is not a map of texts");
  }
  const start = 8 + headerBytes;
  const tensors = Object.entries(header)
    .filter(([name]) => name !== "__metadata__")
    .map(([name, value]) => parseEntry(name, value, file, start, bad))
    .sort((a, b) => a.offset - b.offset || a.length - b.length);
  let expected = start;
  for (const { name, offset, length } of tensors) {
    if (offset !== expected)
      bad(`${name} begins at byte ${offset}, but ${expected} is where the tensor before it ends`);
    expected = offset + length;
  }
  if (expected !== fileBytes) bad(`its tensors end at byte ${expected}, the file at ${fileBytes}; it may be cut off`);
  return { tensors, metadata: metadata as Readonly<Record<string, string>> };
}

function parseEntry(
  name: string,
  value: unknown,
  file: string,
  start: number,
  bad: (problem: string) => never,
): StoredTensor {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>;
  if (typeof dtype !== "string" || !Object.hasOwn(TRANSFORMERS_DTYPES, dtype)) {
    bad(`${name} has dtype ${JSON.stringify(dtype)}; supported are ${Object.keys(TRANSFORMERS_DTYPES).join(", ")}`);
  }
  if (!isNaturals(shape)) return bad(`${name} has shape ${JSON.stringify(shape)}`);
  if (!isNaturals(offsets) || offsets.length !== 2 || offsets[0] > offsets[1]) {
    return bad(`${name} has data_offsets ${JSON.stringify(offsets)}`);
  }
  const length = offsets[1] - offsets[0];
  const bytes = storedBytes(dtype as SafetensorsDType, shape);
  if (bytes !== length) {
    bad(`${name} is ${dtype} [${shape}], which is ${bytes} bytes, but its data_offsets span ${length}`);
  }
  return { name, file, dtype: dtype as SafetensorsDType, shape, offset: start + offsets[0], length };
}

function isNaturals(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

/** A key that the outermost object of a JSON text has twice; JSON.parse keeps the last without a word. */
function repeatedKey(text: string): string | undefined {
  const seen = new Set<string>();
  let depth = 0;
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"\s*:?|[{}[\]]/g)) {
    if (token === "{" || token === "[") depth++;
    else if (token === "}" || token === "]") depth--;
    else if (depth === 1 && token.endsWith(":")) {
      const key = JSON.parse(token.slice(0, -1)) as string;
      if (seen.has(key)) return key;
      seen.add(key);
    }
  }
  return undefined;
}

/** Reads all tensors as float32 (F32, BF16 and F16 are exact). @throws as `readHeader` */
export function readSafetensors(file: string): Map<string, Tensor> {
  const { tensors } = readHeader(file);
  return new Map(tensors.map((tensor) => [tensor.name, { shape: tensor.shape, data: readTensor(tensor) }]));
}

export const readTensor = (tensor: StoredTensor): Float32Array => fromStored(tensor.dtype, readStored(tensor).buffer);

function readStored({ file, dtype, shape, offset }: StoredTensor): Uint8Array<ArrayBuffer> {
  const bytes = new Uint8Array(storedBytes(dtype, shape));
  readPart(file, bytes, offset);
  return bytes;
}

/** Returns whether two tensors have one shape and equal numbers. Reads both, COMPARED_NUMBERS at a time. @throws as `readHeader` */
export function sameNumbers(a: StoredTensor, b: StoredTensor): boolean {
  if (!sameShape(a.shape, b.shape)) return false;
  const count = elementCount(a.shape);
  for (let begin = 0; begin < count; begin += COMPARED_NUMBERS) {
    const shape = [Math.min(COMPARED_NUMBERS, count - begin)];
    const part = (tensor: StoredTensor) => ({
      ...tensor,
      shape,
      offset: tensor.offset + storedBytes(tensor.dtype, [begin]),
    });
    const same =
      a.dtype === b.dtype
        ? Buffer.compare(readStored(part(a)), readStored(part(b))) === 0 // a conversion takes ten times as long
        : Buffer.from(readTensor(part(a)).buffer).equals(Buffer.from(readTensor(part(b)).buffer));
    if (!same) return false;
  }
  return true;
}

/** A tensor to write. `read` is called when its turn comes, and returns all numbers or yields them in parts, to hold few in memory. */
export interface TensorSource {
  readonly name: string;
  readonly shape: readonly number[];
  readonly read: () => Float32Array | Iterable<Float32Array>;
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

/** Writes tensors in the given order. The file appears whole or not at all. */
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
    const end = offset + storedBytes(dtype, shape);
    header[name] = { dtype, shape, data_offsets: [offset, end] };
    offset = end;
  }
  let text = Buffer.from(JSON.stringify(header));
  text = Buffer.concat([text, Buffer.alloc(-text.length & 7, " ")]); // tensors start at a multiple of 8
  const length = Buffer.alloc(8);
  length.writeBigUInt64LE(BigInt(text.length));

  writeWhole(file, (descriptor) => {
    writeAll(descriptor, length);
    writeAll(descriptor, text);
    for (const { name, shape, read } of tensors) {
      const data = read();
      let numbers = 0;
      for (const part of data instanceof Float32Array ? [data] : data) {
        writeAll(descriptor, toStored(dtype, part));
        numbers += part.length;
      }
      if (elementCount(shape) !== numbers)
        throw new ModelError("weights", `${file}: ${name} is [${shape}] but has ${numbers} numbers`);
    }
  });
}
