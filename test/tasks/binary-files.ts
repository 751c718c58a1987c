/** Makes small valid files of kinds that tasks have besides tables: grey JPEG images and ZIP archives. */
import { crc32 } from "node:zlib";

const bytes = (...values: number[]) => Buffer.from(values);

function segment(marker: number, ...content: Buffer[]): Buffer {
  const length = content.reduce((sum, part) => sum + part.length, 2);
  return Buffer.concat([bytes(0xff, marker, length >> 8, length & 255), ...content]);
}

/**
 * Returns a baseline JPEG of blocks of 8 x 8 pixels, each of one grey level (ITU-T T.81): every block only has its DC coefficient.
 * @param levels 0..255 [row][column] of the blocks
 */
export function greyJpeg(levels: readonly (readonly number[])[]): Buffer {
  const [height, width] = [levels.length * 8, levels[0]!.length * 8];
  // All steps of the quantisation table are 8, so a DC coefficient is the level's distance from 128.
  const quantisation = segment(0xdb, bytes(0), Buffer.alloc(64, 8));
  const frame = segment(0xc0, bytes(8, height >> 8, height & 255, width >> 8, width & 255, 1, 1, 0x11, 0));
  // DC sizes 0..9 have codes of four bits, in order; the only AC code, of one bit, ends the block.
  const counts = (length: number, codes: number) => Buffer.alloc(16).fill(codes, length - 1, length);
  const dcTable = segment(0xc4, bytes(0x00), counts(4, 10), bytes(0, 1, 2, 3, 4, 5, 6, 7, 8, 9));
  const acTable = segment(0xc4, bytes(0x10), counts(1, 1), bytes(0));
  const scan = segment(0xda, bytes(1, 1, 0x00, 0, 63, 0));
  let bits = "";
  let before = 0;
  for (const level of levels.flat()) {
    const difference = level - 128 - before;
    before += difference;
    const size = difference === 0 ? 0 : 32 - Math.clz32(Math.abs(difference));
    const value = difference < 0 ? difference + 2 ** size - 1 : difference;
    bits += `${size.toString(2).padStart(4, "0")}${size > 0 ? value.toString(2).padStart(size, "0") : ""}0`;
  }
  const data = (bits.padEnd(Math.ceil(bits.length / 8) * 8, "1").match(/.{8}/g) ?? []).flatMap((byte) => {
    const value = Number.parseInt(byte, 2);
    return value === 0xff ? [0xff, 0] : [value];
  });
  const start = segment(0xe0, Buffer.from("JFIF\0"), bytes(1, 1, 0, 0, 1, 0, 1, 0, 0));
  return Buffer.concat([
    bytes(0xff, 0xd8),
    start,
    quantisation,
    frame,
    dcTable,
    acTable,
    scan,
    bytes(...data, 0xff, 0xd9),
  ]);
}

/** Returns a ZIP archive with one uncompressed file (APPNOTE.TXT 6.3). */
export function zip(name: string, content: Buffer): Buffer {
  const path = Buffer.from(name);
  const common = Buffer.alloc(26);
  common.writeUInt16LE(20, 0);
  common.writeUInt16LE(0x21, 8); // 1 January 1980
  common.writeUInt32LE(crc32(content), 10);
  common.writeUInt32LE(content.length, 14);
  common.writeUInt32LE(content.length, 18);
  common.writeUInt16LE(path.length, 22);
  const local = Buffer.concat([Buffer.from("PK\x03\x04"), common, path, content]);
  const central = Buffer.concat([Buffer.from("PK\x01\x02"), bytes(20, 0), common, Buffer.alloc(14), path]);
  const end = Buffer.alloc(22);
  end.write("PK\x05\x06", "latin1");
  end.writeUInt16LE(1, 8);
  end.writeUInt16LE(1, 10);
  end.writeUInt32LE(central.length, 12);
  end.writeUInt32LE(local.length, 16);
  return Buffer.concat([local, central, end]);
}
