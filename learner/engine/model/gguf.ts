/** Reads GGUF files: their fields and where their tensors are. The format is ggml's docs/gguf.md, versions 2 and 3, little-endian. */
import fs from "node:fs";
import { ModelError } from "./errors.ts";
import { GGUF_TYPES } from "./gguf-blocks.ts";
import { elementCount } from "./weights.ts";

type Value = number | boolean | string | Value[];

export interface GgufTensor {
  /** [rows, columns], or [numbers] */
  shape: number[];
  /** as in GGUF_TYPES */
  type: number;
  /** bytes from the start of the file */
  offset: number;
}

export interface Gguf {
  file: string;
  fields: Map<string, Value>;
  tensors: Map<string, GgufTensor>;
}

const NUMBERS: Record<number, (view: DataView, at: number) => [value: number | boolean, bytes: number]> = {
  0: (view, at) => [view.getUint8(at), 1],
  1: (view, at) => [view.getInt8(at), 1],
  2: (view, at) => [view.getUint16(at, true), 2],
  3: (view, at) => [view.getInt16(at, true), 2],
  4: (view, at) => [view.getUint32(at, true), 4],
  5: (view, at) => [view.getInt32(at, true), 4],
  6: (view, at) => [view.getFloat32(at, true), 4],
  7: (view, at) => [view.getUint8(at) !== 0, 1],
  10: (view, at) => [Number(view.getBigUint64(at, true)), 8],
  11: (view, at) => [Number(view.getBigInt64(at, true)), 8],
  12: (view, at) => [view.getFloat64(at, true), 8],
};
const [TEXT, LIST, UINT64, UINT32] = [8, 9, 10, 4];
/** Where a file does not say how its tensors are aligned. */
const ALIGNMENT = 32;
const MOST_DIMENSIONS = 4;
/** Bytes that are read at first; a header that is longer is read again. A vocabulary of 150,000 tokens takes 6 MB. */
const HEADER_BYTES = 2 ** 24;

/** @throws ModelError `weights` for a file that is no GGUF file, or ends early */
export function readGguf(file: string): Gguf {
  const size = fs.statSync(file).size;
  for (let bytes = Math.min(HEADER_BYTES, size); ; bytes = Math.min(2 * bytes, size))
    try {
      return checked(parseHeader(file, bytes), size);
    } catch (cause) {
      if (!(cause instanceof RangeError)) throw cause;
      if (bytes === size) throw new ModelError("weights", `${file} ends within its header; fetch it again`, { cause });
    }
}

function parseHeader(file: string, bytes: number): Gguf {
  const buffer = Buffer.alloc(bytes);
  readAt(file, buffer, 0);
  const view = new DataView(buffer.buffer, buffer.byteOffset, bytes);
  let at = 0;
  const value = (type: number): Value => {
    if (type === TEXT) {
      const length = value(UINT64) as number;
      at += length;
      if (at > bytes) throw new RangeError("a text ends after the file");
      return buffer.toString("utf8", at - length, at);
    }
    if (type === LIST) {
      const [of, count] = [value(UINT32) as number, value(UINT64) as number];
      if (at + count > bytes) throw new RangeError("a list ends after the file");
      return Array.from({ length: count }, () => value(of));
    }
    const read = NUMBERS[type];
    if (!read) throw new ModelError("weights", `${file}: a field has the type ${type}, which GGUF does not have`);
    const [found, length] = read(view, at);
    at += length;
    return found;
  };
  const magic = buffer.toString("latin1", 0, 4);
  at = 4;
  const version = value(UINT32);
  if (magic !== "GGUF" || (version !== 2 && version !== 3))
    throw new ModelError("weights", `${file} is no GGUF file of version 2 or 3`);
  const [tensorCount, fieldCount] = [value(UINT64) as number, value(UINT64) as number];
  const fields = new Map<string, Value>();
  for (let i = 0; i < fieldCount; i++) {
    const name = value(TEXT) as string;
    fields.set(name, value(value(UINT32) as number));
  }
  const tensors = new Map<string, GgufTensor>();
  for (let i = 0; i < tensorCount; i++) {
    const name = value(TEXT) as string;
    const dimensions = value(UINT32) as number;
    if (dimensions > MOST_DIMENSIONS)
      throw new ModelError("weights", `${file}: ${name} has ${dimensions} dimensions, more than GGUF has`);
    const shape = Array.from({ length: dimensions }, () => value(UINT64) as number).reverse();
    tensors.set(name, { shape, type: value(UINT32) as number, offset: value(UINT64) as number });
  }
  const alignment = (fields.get("general.alignment") as number | undefined) ?? ALIGNMENT;
  const start = Math.ceil(at / alignment) * alignment;
  for (const tensor of tensors.values()) tensor.offset += start;
  return { file, fields, tensors };
}

/** @throws ModelError naming a tensor that cannot be read */
function checked(gguf: Gguf, size: number): Gguf {
  for (const [name, { shape, type, offset }] of gguf.tensors) {
    const format = GGUF_TYPES[type];
    if (!format) {
      const known = Object.values(GGUF_TYPES).map(({ name }) => name);
      throw new ModelError(
        "weights",
        `${gguf.file}: ${name} has the type ${type} of ggml; known are ${known.join(", ")}; take a file of one of these`,
      );
    }
    if (shape.length === 0 || shape.at(-1)! % format.numbers !== 0)
      throw new ModelError(
        "weights",
        `${gguf.file}: ${name} [${shape}] has rows that are no whole blocks of ${format.name}`,
      );
    if (offset + bytesOf(format, elementCount(shape)) > size)
      throw new ModelError("weights", `${gguf.file} ends within ${name}; fetch it again`);
  }
  return gguf;
}

const bytesOf = ({ bytes, numbers }: { bytes: number; numbers: number }, count: number) => (count / numbers) * bytes;

/** Returns rows of a tensor as float32 [count, columns]. @param first row, from 0 */
export function readRows(
  { file }: Gguf,
  { shape, type, offset }: GgufTensor,
  first: number,
  count: number,
): Float32Array {
  const format = GGUF_TYPES[type]!;
  const columns = elementCount(shape.length === 1 ? shape : shape.slice(1));
  const row = bytesOf(format, columns);
  const buffer = Buffer.alloc(count * row);
  readAt(file, buffer, offset + first * row);
  const view = new DataView(buffer.buffer, buffer.byteOffset, buffer.length);
  const numbers = new Float32Array(count * columns);
  for (let i = 0, at = 0; i < numbers.length; i += format.numbers, at += format.bytes)
    format.read(view, at, numbers, i);
  return numbers;
}

function readAt(file: string, target: Uint8Array, position: number): void {
  const descriptor = fs.openSync(file, "r");
  try {
    for (let done = 0; done < target.length; ) {
      const read = fs.readSync(descriptor, target, done, target.length - done, position + done);
      if (read === 0) throw new ModelError("weights", `${file} became shorter while it was read`);
      done += read;
    }
  } finally {
    fs.closeSync(descriptor);
  }
}
