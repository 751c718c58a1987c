/**
 * Parts of files on a device, each once for all graphs that point into it (external initializers). A frozen model is read when the first
 * graph needs it, and a session makes no copy.
 */
import path from "node:path";
import { GraphError } from "../graph/errors.ts";
import type { Graph } from "../graph/graph.ts";
import { type DeviceTensor, DTYPES, type DType } from "../graph/tensor.ts";
import type { DeviceBuffer } from "./buffer.ts";
import type { FilePart, Runtime } from "./runtime.ts";

/** Parts that lie one after the other on the device. */
export interface JoinedParts {
  readonly parts: readonly FilePart[];
  /** bytes after the parts, zeros, that others write: `DeviceFiles.view` */
  readonly room: number;
}

/** Fills `bytes` from a position of a file on. */
type ReadFile = (file: string, bytes: Uint8Array, position: number) => void;

const NUMBER = DTYPES.float32.bytes;

export class DeviceFiles {
  readonly #runtime: Runtime;
  readonly #parts: readonly FilePart[];
  readonly #read: ReadFile;
  /** for each part: the group of adjacent parts that contains it */
  readonly #groups: ReadonlyMap<FilePart, JoinedParts>;
  readonly #there = new Map<FilePart, { buffer: DeviceBuffer; begin: number }>();

  /**
   * @param parts parts that graphs may point to, or into
   * @param joined a graph may point to all parts of a group, by the place of the first in its file and the length of all
   */
  constructor(runtime: Runtime, parts: readonly FilePart[], read: ReadFile, joined: readonly JoinedParts[] = []) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#read = read;
    this.#groups = new Map(joined.flatMap((group) => group.parts.map((part) => [part, group] as const)));
  }

  /** A graph's external initializers by name, where they are on the device. */
  async initializers(graph: Graph, directory = ""): Promise<Record<string, DeviceTensor>> {
    const found: Record<string, DeviceTensor> = {};
    for (const initializer of graph.initializers) {
      if (!("external" in initializer)) continue;
      const { name, dtype, shape } = initializer.value;
      const { location, offset, length } = initializer.external;
      const file = path.join(directory, location);
      const part = this.#parts.find(
        (it) =>
          it.file === file &&
          it.offset <= offset &&
          (offset + length <= it.offset + it.length || (it.offset === offset && length === this.#lengthFrom(it))),
      );
      if (!part) throw new GraphError("session", `'${name}' is not in the files that are kept on the device`);
      const { buffer, begin } = await this.#sent(part);
      found[name] = buffer.viewOfBytes(begin + offset - part.offset, dtype, shape as readonly number[]);
    }
    return found;
  }

  /** Returns numbers of the group that begins with a part, from the group's byte `from` on, its room included. */
  async view(part: FilePart, from: number, dtype: DType, shape: readonly number[]): Promise<DeviceTensor> {
    const { buffer, begin } = await this.#sent(part);
    return buffer.viewOfBytes(begin + from, dtype, shape);
  }

  async #sent(part: FilePart) {
    if (!this.#there.has(part)) await this.#send(this.#groups.get(part) ?? { parts: [part], room: 0 });
    return this.#there.get(part)!;
  }

  /** Bytes of a group of adjacent parts, by its first part. */
  #lengthFrom(part: FilePart): number | undefined {
    const group = this.#groups.get(part);
    return group?.parts[0] === part ? group.parts.reduce((sum, { length }) => sum + length, 0) : undefined;
  }

  get #buffers(): DeviceBuffer[] {
    return [...new Set([...this.#there.values()].map(({ buffer }) => buffer))];
  }

  /** Bytes on the device. */
  get bytes(): number {
    return this.#buffers.reduce((total, { length }) => total + NUMBER * length, 0);
  }

  async #send({ parts, room }: JoinedParts): Promise<void> {
    const ends = parts.map((_, i) => parts.slice(0, i + 1).reduce((sum, { length }) => sum + length, 0));
    const buffer = this.#runtime.reserve(Math.ceil((ends.at(-1)! + room) / NUMBER));
    await this.#runtime.writeBlocks(buffer, buffer.length, (start, end) => {
      const numbers = new Float32Array(end - start);
      for (const [i, { file, offset, length }] of parts.entries()) {
        const begin = ends[i]! - length;
        const [from, to] = [Math.max(begin, NUMBER * start), Math.min(ends[i]!, NUMBER * end)];
        if (from < to)
          this.#read(file, new Uint8Array(numbers.buffer, from - NUMBER * start, to - from), offset + from - begin);
      }
      return numbers;
    });
    for (const [i, part] of parts.entries()) this.#there.set(part, { buffer, begin: ends[i]! - part.length });
  }

  /** Call it after the sessions were released. */
  release(): void {
    for (const buffer of this.#buffers) buffer.release();
    this.#there.clear();
  }
}
