/** The types of tensors in GGUF files, and their blocks as float32: ggml-common.h and gguf's quants.py, number for number. */

interface Format {
  name: string;
  /** Numbers and bytes of a block. */
  numbers: number;
  bytes: number;
  /** Reads the block at `at` into `out` from index `i` on. */
  read(view: DataView, at: number, out: Float32Array, i: number): void;
}

/** Numbers of a small block. */
const SMALL = 32;
/** Numbers of a block of the K types, in parts of 32 or 16 with a scale each. */
const LARGE = 256;

/** Each product below is exact in float64, so that one rounding to float32 remains, as in the reference. */
export const GGUF_TYPES: Readonly<Record<number, Format>> = {
  0: { name: "F32", numbers: 1, bytes: 4, read: one((view, at) => view.getFloat32(at, true)) },
  1: { name: "F16", numbers: 1, bytes: 2, read: one((view, at) => view.getFloat16(at, true)) },
  2: {
    name: "Q4_0",
    numbers: SMALL,
    bytes: 2 + SMALL / 2,
    read(view, at, out, i) {
      const scale = view.getFloat16(at, true);
      for (let j = 0; j < SMALL / 2; j++) {
        const byte = view.getUint8(at + 2 + j);
        out[i + j] = scale * ((byte & 15) - 8);
        out[i + j + SMALL / 2] = scale * ((byte >> 4) - 8);
      }
    },
  },
  3: {
    name: "Q4_1",
    numbers: SMALL,
    bytes: 4 + SMALL / 2,
    read(view, at, out, i) {
      const [scale, least] = [view.getFloat16(at, true), view.getFloat16(at + 2, true)];
      for (let j = 0; j < SMALL / 2; j++) {
        const byte = view.getUint8(at + 4 + j);
        out[i + j] = scale * (byte & 15) + least;
        out[i + j + SMALL / 2] = scale * (byte >> 4) + least;
      }
    },
  },
  8: {
    name: "Q8_0",
    numbers: SMALL,
    bytes: 2 + SMALL,
    read(view, at, out, i) {
      const scale = view.getFloat16(at, true);
      for (let j = 0; j < SMALL; j++) out[i + j] = scale * view.getInt8(at + 2 + j);
    },
  },
  12: { name: "Q4_K", numbers: LARGE, bytes: 4 + 12 + LARGE / 2, read: readQ4K },
  14: { name: "Q6_K", numbers: LARGE, bytes: LARGE / 2 + LARGE / 4 + LARGE / 16 + 2, read: readQ6K },
  30: { name: "BF16", numbers: 1, bytes: 2, read: one(readBf16) },
};

/** Returns the reader of a block that is one number. */
function one(number: (view: DataView, at: number) => number): Format["read"] {
  return (view, at, out, i) => {
    out[i] = number(view, at);
  };
}

/** bfloat16 is the upper half of a float32. */
function readBf16(view: DataView, at: number): number {
  const bits = Uint32Array.of(view.getUint16(at, true) << 16);
  return new Float32Array(bits.buffer)[0]!;
}

/** Scale and least value, two halves; eight scales and eight least values of 6 bits each, in 12 bytes; then numbers of 4 bits. */
function readQ4K(view: DataView, at: number, out: Float32Array, i: number): void {
  const [scale, least] = [view.getFloat16(at, true), view.getFloat16(at + 2, true)];
  const packed = (k: number) => view.getUint8(at + 4 + k);
  for (let part = 0; part < 8; part++) {
    const j = part % 4;
    const [high, low] = [part < 4 ? 0 : packed(8 + j), part < 4 ? packed(j) & 63 : (packed(j) >> 2) & 48];
    const lowLeast = part < 4 ? packed(4 + j) & 63 : (packed(4 + j) >> 2) & 48;
    const [factor, offset] = [scale * (low | (high & 15)), least * (lowLeast | (high >> 4))];
    const shift = 4 * (part & 1);
    for (let k = 0; k < 32; k++) {
      const number = (view.getUint8(at + 16 + 32 * (part >> 1) + k) >> shift) & 15;
      out[i + 32 * part + k] = factor * number - offset;
    }
  }
}

/** Lower 4 bits of the numbers, upper 2 bits, sixteen scales of 8 bits, and their scale, a half. */
function readQ6K(view: DataView, at: number, out: Float32Array, i: number): void {
  const scale = view.getFloat16(at + 208, true);
  for (let n = 0; n < LARGE; n++) {
    const [half, part, k] = [n >> 7, (n >> 5) & 3, n & 31];
    const low = (view.getUint8(at + 64 * half + 32 * (part & 1) + k) >> (4 * (part >> 1))) & 15;
    const high = (view.getUint8(at + 128 + 32 * half + k) >> (2 * part)) & 3;
    out[i + n] = scale * view.getInt8(at + 192 + (n >> 4)) * ((low | (high << 4)) - 32);
  }
}
