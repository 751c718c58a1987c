import { randomBytes } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import { ModelError } from "./errors.ts";
import { elementCount, type Tensor } from "./weights.ts";

/**
 * The safetensors format: 8 bytes little-endian header length, a JSON header of `name -> {dtype, shape, data_offsets}`,
 * then the tensors' bytes without gaps. A file comes from outside, so nothing in the header is believed before it was
 * checked against the file's size; memory is only taken for what the file really holds.
 */

const MAX_HEADER_BYTES = 100_000_000; // the limit of the reference implementation
const MAX_READ_BYTES = 1 << 30; // one read() returns at most 2 GiB
const BYTES_PER_ELEMENT = { F32: 4, F16: 2, BF16: 2 } as const;

type DType = keyof typeof BYTES_PER_ELEMENT;

interface Entry {
  readonly name: string;
  readonly dtype: DType;
  readonly shape: number[];
  readonly begin: number; // offset in the file, bytes
  readonly end: number;
}

/**
 * Reads all tensors as float32 (F32, BF16 and F16 are exact).
 *
 * @throws ModelError `weights` when the file is truncated, lies about itself or holds another dtype
 */
export function readSafetensors(file: string): Map<string, Tensor> {
  const descriptor = open(file);
  try {
    const tensors = new Map<string, Tensor>();
    for (const entry of readHeader(descriptor, file).entries) {
      tensors.set(entry.name, { shape: entry.shape, data: readTensor(descriptor, entry, file) });
    }
    return tensors;
  } finally {
    fs.closeSync(descriptor);
  }
}

/** The `__metadata__` of a file: free text by key. */
export function readMetadata(file: string): Record<string, string> {
  const descriptor = open(file);
  try {
    return readHeader(descriptor, file).metadata;
  } finally {
    fs.closeSync(descriptor);
  }
}

/**
 * Writes float32 tensors in the map's order; the same tensors give the same bytes. The file appears whole or not at
 * all: it is written and synced beside its final name, then renamed.
 */
export function writeSafetensors(
  file: string,
  tensors: ReadonlyMap<string, Tensor>,
  metadata: Record<string, string> = { format: "pt" }, // transformers refuses files without it
): void {
  const header: Record<string, unknown> = { __metadata__: metadata };
  let offset = 0;
  for (const [name, { shape, data }] of tensors) {
    if (name === "__metadata__") throw new ModelError("weights", `${file}: a tensor may not be called ${name}`);
    if (elementCount(shape) !== data.length) {
      throw new ModelError("weights", `${file}: ${name} is [${shape}] but has ${data.length} numbers`);
    }
    header[name] = { dtype: "F32", shape, data_offsets: [offset, offset + data.byteLength] };
    offset += data.byteLength;
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
      for (const { data } of tensors.values()) {
        writeAll(descriptor, new Uint8Array(data.buffer, data.byteOffset, data.byteLength));
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

function open(file: string): number {
  try {
    return fs.openSync(file, "r");
  } catch (cause) {
    throw new ModelError("weights", `cannot open ${file}: ${(cause as Error).message}`, { cause });
  }
}

function readHeader(descriptor: number, file: string): { entries: Entry[]; metadata: Record<string, string> } {
  const bad = (problem: string): never => {
    throw new ModelError("weights", `${file} is not a usable safetensors file: ${problem}`);
  };
  const fileBytes = fs.fstatSync(descriptor).size;
  if (fileBytes < 8) bad(`it has ${fileBytes} bytes`);
  const prefix = new Uint8Array(8);
  readAll(descriptor, prefix, 0, file);
  const headerBytes = Number(new DataView(prefix.buffer).getBigUint64(0, true));
  if (headerBytes > MAX_HEADER_BYTES || headerBytes > fileBytes - 8) {
    bad(`its header claims ${headerBytes} bytes, the file has ${fileBytes}`);
  }
  const headerText = new Uint8Array(headerBytes);
  readAll(descriptor, headerText, 8, file);
  let header: Record<string, unknown>;
  try {
    const parsed: unknown = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(headerText));
    if (typeof parsed !== "object" || parsed === null || Array.isArray(parsed)) throw new Error("not a JSON object");
    header = parsed as Record<string, unknown>;
  } catch (cause) {
    const problem = `its header is not JSON (${(cause as Error).message.slice(0, 100)})`;
    throw new ModelError("weights", `${file} is not a usable safetensors file: ${problem}`, { cause });
  }

  const metadata = header.__metadata__ ?? {};
  if (typeof metadata !== "object" || !Object.values(metadata as object).every((value) => typeof value === "string")) {
    bad("its __metadata__ is not a map of texts");
  }
  const start = 8 + headerBytes;
  const entries = Object.entries(header)
    .filter(([name]) => name !== "__metadata__")
    .map(([name, value]) => parseEntry(name, value, start, bad))
    .sort((a, b) => a.begin - b.begin || a.end - b.end);
  let expected = start;
  for (const { name, begin, end } of entries) {
    if (begin !== expected) bad(`${name} begins at byte ${begin}, but ${expected} is where the tensor before it ends`);
    expected = end;
  }
  if (expected !== fileBytes) bad(`its tensors end at byte ${expected}, the file at ${fileBytes}; it may be cut off`);
  return { entries, metadata: metadata as Record<string, string> };
}

function parseEntry(name: string, value: unknown, start: number, bad: (problem: string) => never): Entry {
  const { dtype, shape, data_offsets: offsets } = (value ?? {}) as Record<string, unknown>;
  if (typeof dtype !== "string" || !Object.hasOwn(BYTES_PER_ELEMENT, dtype)) {
    bad(`${name} has dtype ${JSON.stringify(dtype)}; supported are ${Object.keys(BYTES_PER_ELEMENT).join(", ")}`);
  }
  if (!isNaturals(shape)) return bad(`${name} has shape ${JSON.stringify(shape)}`);
  if (!isNaturals(offsets) || offsets.length !== 2 || offsets[0] > offsets[1]) {
    return bad(`${name} has data_offsets ${JSON.stringify(offsets)}`);
  }
  const bytes = elementCount(shape) * BYTES_PER_ELEMENT[dtype as DType];
  if (bytes !== offsets[1] - offsets[0]) {
    bad(
      `${name} is ${dtype} [${shape}], which is ${bytes} bytes, but its data_offsets span ${offsets[1] - offsets[0]}`,
    );
  }
  return { name, dtype: dtype as DType, shape, begin: start + offsets[0], end: start + offsets[1] };
}

function isNaturals(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((item) => Number.isSafeInteger(item) && item >= 0);
}

function readTensor(descriptor: number, { dtype, shape, begin }: Entry, file: string): Float32Array {
  const count = elementCount(shape);
  if (dtype === "F32") {
    const data = new Float32Array(count);
    readAll(descriptor, new Uint8Array(data.buffer), begin, file);
    return data;
  }
  const bits = new Uint16Array(count);
  readAll(descriptor, new Uint8Array(bits.buffer), begin, file);
  if (dtype === "F16") return Float32Array.from(new Float16Array(bits.buffer));
  const data = new Float32Array(count);
  const words = new Uint32Array(data.buffer);
  for (let i = 0; i < count; i++) words[i] = bits[i] << 16; // bfloat16 is the upper half of a float32
  return data;
}

function readAll(descriptor: number, target: Uint8Array, position: number, file: string): void {
  for (let done = 0; done < target.length; ) {
    const wanted = Math.min(target.length - done, MAX_READ_BYTES);
    const read = fs.readSync(descriptor, target, done, wanted, position + done);
    if (read === 0) throw new ModelError("weights", `${file} ended at byte ${position + done} while it was being read`);
    done += read;
  }
}

function writeAll(descriptor: number, source: Uint8Array): void {
  for (let done = 0; done < source.length; ) {
    done += fs.writeSync(descriptor, source, done, Math.min(source.length - done, MAX_READ_BYTES));
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
