/**
 * Parts of files on a device, each once for all graphs that point into it (external initializers): a frozen model is read
 * when the first of them needs it, and a session costs no copy.
 */
import path from "node:path";
import { GraphError } from "../graph/errors.ts";
import type { Graph } from "../graph/graph.ts";
import { type DeviceTensor, DTYPES } from "../graph/tensor.ts";
import type { DeviceBuffer } from "./buffer.ts";
import type { Runtime } from "./runtime.ts";

export interface FilePart {
  readonly file: string;
  /** bytes */
  readonly offset: number;
  /** bytes */
  readonly length: number;
}

/** Fills `bytes` from a position of a file on. */
type ReadFile = (file: string, bytes: Uint8Array, position: number) => void;

const NUMBER = DTYPES.float32.bytes;

export class DeviceFiles {
  readonly #runtime: Runtime;
  readonly #parts: readonly FilePart[];
  readonly #read: ReadFile;
  readonly #there = new Map<FilePart, DeviceBuffer>();

  /** @param parts that graphs may point to, or into */
  constructor(runtime: Runtime, parts: readonly FilePart[], read: ReadFile) {
    this.#runtime = runtime;
    this.#parts = parts;
    this.#read = read;
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
        (it) => it.file === file && it.offset <= offset && offset + length <= it.offset + it.length,
      );
      if (!part) throw new GraphError("session", `'${name}' is not in the files that are kept on the device`);
      const buffer = this.#there.get(part) ?? (await this.#send(part));
      found[name] = buffer.viewOfBytes(offset - part.offset, dtype, shape as readonly number[]);
    }
    return found;
  }

  /** Bytes on the device. */
  get bytes(): number {
    return [...this.#there.values()].reduce((total, { length }) => total + NUMBER * length, 0);
  }

  async #send(part: FilePart): Promise<DeviceBuffer> {
    const buffer = this.#runtime.reserve(Math.ceil(part.length / NUMBER));
    await this.#runtime.writeBlocks(buffer, buffer.length, (start, end) => {
      const numbers = new Float32Array(end - start);
      const bytes = Math.min(numbers.byteLength, part.length - NUMBER * start);
      this.#read(part.file, new Uint8Array(numbers.buffer, 0, bytes), part.offset + NUMBER * start);
      return numbers;
    });
    this.#there.set(part, buffer);
    return buffer;
  }

  /** After the sessions. */
  release(): void {
    for (const buffer of this.#there.values()) buffer.release();
    this.#there.clear();
  }
}
