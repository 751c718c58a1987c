/**
 * The weights of a model folder as initializers that point into its files. Nothing is read before it is used and nothing
 * is copied: the files are memory-mapped, once for all sessions of all processes. Half precision is cast in the graph.
 */
import { createHash } from "node:crypto";
import fs from "node:fs";
import path from "node:path";
import type { Graph, Value } from "../graph/graph.ts";
import { cast } from "../graph/primitives.ts";
import type { DType } from "../graph/tensor.ts";
import type { SessionOptions } from "../runtime/session.ts";
import type { ModelConfig } from "./config.ts";
import { ModelError } from "./errors.ts";
import { expectedWeights, hasWeights, locateWeights } from "./files.ts";
import { readConfig } from "./folder.ts";
import { areFinite, storedBytes, TRANSFORMERS_DTYPES } from "./halves.ts";
import { readPart, readTensor, type StoredTensor } from "./safetensors.ts";
import type { VocabularyChunk } from "./token-log-probs.ts";
import { checkFinite, EMBEDDING, elementCount, OUTPUT_LAYER } from "./weights.ts";

/** Groups of linear layers of the decoder with the same input. */
export const JOINED_PROJECTIONS = [
  ["self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"],
  ["self_attn.o_proj"],
  ["mlp.gate_proj", "mlp.up_proj"],
  ["mlp.down_proj"],
] as const;

/** Matrices that are used row by row or in chunks, and cast then. */
const LARGE = new Set([EMBEDDING, OUTPUT_LAYER]);
const CHECKED_NUMBERS = 2 ** 22;
/** Bytes of each tensor that its identity reads, at the beginning and at the end. Further training changes all matrices of a model. */
const SAMPLE_BYTES = 4096;

export class MappedWeights {
  readonly folder: string;
  readonly config: ModelConfig;
  /** all weights, in canonical order */
  readonly tensors: readonly StoredTensor[];
  readonly #directory: string;
  readonly #byName: ReadonlyMap<string, StoredTensor>;

  /**
   * @param located in canonical order; default: the weights in the folder's files
   * @throws ModelError `config` or `weights` naming the file that is missing or wrong
   */
  constructor(folder: string, located?: readonly StoredTensor[]) {
    this.folder = folder;
    this.config = readConfig(folder);
    // Links are followed here (a cache of Hugging Face's consists of them): ONNX Runtime refuses links that lead out of the folder.
    const found = () =>
      locateWeights(folder, this.config).map((tensor) => ({ ...tensor, file: fs.realpathSync(tensor.file) }));
    this.tensors = located ?? found();
    this.#byName = new Map(this.tensors.map((tensor) => [tensor.name, tensor]));
    this.#directory = commonFolder(this.tensors.map(({ file }) => file));
  }

  /** The weights to plan with: the folder's, or the shapes of its config.json if it has no files of weights. */
  static planned(folder: string): MappedWeights {
    return new MappedWeights(folder, hasWeights(folder) ? undefined : expectedWeights(folder, readConfig(folder)));
  }

  /** Weights by transformers' names, in the dtype of the file. */
  stored(graph: Graph, wanted: (tensor: StoredTensor) => boolean = () => true): Map<string, Value> {
    return new Map(
      this.tensors.filter(wanted).map((tensor) => [tensor.name, this.#initializer(graph, tensor, tensor.name)]),
    );
  }

  /**
   * Weights by transformers' names: the embedding and the output layer in the dtype of the file, the others in float32.
   *
   * Call this before other nodes are added: casts must come first in the graph. ONNX Runtime computes the inputs of a node
   * from the last added to the first, so that an early cast runs right before its use. Otherwise all casts run at the
   * start, and the float32 copies of all layers are held at once (260 MB instead of 110 for 88M parameters).
   */
  initializers(graph: Graph, stored = this.stored(graph)): Map<string, Value> {
    return new Map([...stored].map(([name, value]) => [name, LARGE.has(name) ? value : cast(value, "float32")]));
  }

  /** The output layer by rows of at most `size`; like `initializers`, call it early. */
  outputChunks(graph: Graph, size: number): VocabularyChunk[] {
    const chunks = this.rowChunks(graph, this.outputName, size);
    return chunks.map((stored) => ({ forward: cast(stored, "float32"), backward: cast(stored, "float32") }));
  }

  /** A matrix by rows of at most `size`, in the dtype of the file. */
  rowChunks(graph: Graph, name: string, size: number): Value[] {
    const whole = this.tensors.find((tensor) => tensor.name === name)!;
    const [count, width] = whole.shape;
    const rowBytes = whole.length / count;
    const chunks: Value[] = [];
    for (let begin = 0; begin < count; begin += size) {
      const rows = Math.min(size, count - begin);
      const part = { ...whole, shape: [rows, width], offset: whole.offset + begin * rowBytes, length: rows * rowBytes };
      chunks.push(this.#initializer(graph, part, `${name} from ${begin}`));
    }
    return chunks;
  }

  /** Returns several matrices as one; the device has them one after the other (generate-joined.ts). */
  joinedRows(graph: Graph, paths: readonly string[]): Value {
    const parts = this.matrices(paths);
    const total = (of: (part: StoredTensor) => number) => parts.reduce((sum, part) => sum + of(part), 0);
    const shape = [total((part) => part.shape[0]!), parts[0]!.shape[1]!];
    const whole = { ...parts[0]!, shape, length: total(({ length }) => length) };
    return this.#initializer(graph, whole, `${paths.join()}.weight`);
  }

  /** The matrices of some linear layers. */
  matrices(paths: readonly string[]): StoredTensor[] {
    return paths.map((path) => this.#byName.get(`${path}.weight`)!);
  }

  /** Returns the output layer's name: the embedding's if they are tied. */
  get outputName(): string {
    return this.config.tied ? EMBEDDING : OUTPUT_LAYER;
  }

  #initializer(graph: Graph, { file, dtype, shape, offset, length }: StoredTensor, name: string): Value {
    const external = { location: path.relative(this.#directory, file), offset, length };
    return graph.externalInitializer(name, TRANSFORMERS_DTYPES[dtype], shape, external);
  }

  /** Session options with which ONNX Runtime maps the files and makes no copy. */
  get sessionOptions(): SessionOptions {
    return {
      externalDirectory: this.#directory,
      prepacking: false,
      // both would keep a float32 copy of half-precision matrices, and the second breaks on values that a loop captures
      disabledOptimizers: ["ConstantFolding", "FuseFp16InitializerToFp32NodeTransformer"],
    };
  }

  /**
   * Reads all weights once, no more than CHECKED_NUMBERS at a time.
   *
   * @throws ModelError `weights` naming the first that is not finite
   */
  checkFinite(): void {
    const room = new Uint32Array(CHECKED_NUMBERS);
    for (const tensor of this.tensors) {
      const numbers = elementCount(tensor.shape);
      for (let begin = 0; begin < numbers; begin += CHECKED_NUMBERS) {
        const shape = [Math.min(CHECKED_NUMBERS, numbers - begin)];
        const [offset, bytes] = [tensor.offset + storedBytes(tensor.dtype, [begin]), storedBytes(tensor.dtype, shape)];
        const words = room.subarray(0, Math.ceil(bytes / room.BYTES_PER_ELEMENT));
        words.fill(0, -1); // an odd number of halves leaves a half of the last word free
        readPart(tensor.file, new Uint8Array(words.buffer, 0, bytes), offset);
        if (areFinite(tensor.dtype, words)) continue;
        checkFinite(tensor.name, readTensor({ ...tensor, shape, offset }), this.folder, begin); // names the number
      }
    }
  }

  /** The error for results that are not finite. It names the weight that is not finite, if there is one. */
  notFinite(): ModelError {
    try {
      this.checkFinite();
    } catch (error) {
      return error as ModelError;
    }
    return new ModelError("generation", `${this.folder}: the model's logits are not finite, though its weights are`);
  }
}

/** `weight` in another dtype, by the graph's first node, so that it runs right before the product: see `MappedWeights.initializers`. */
export function castFirst(weight: Value, dtype: DType): Value {
  if (weight.dtype === dtype) return weight;
  const copy = cast(weight, dtype);
  weight.graph.nodes.unshift(weight.graph.nodes.pop()!);
  return copy;
}

function commonFolder(files: readonly string[]): string {
  let common = path.dirname(files[0]);
  for (const file of files)
    while (!`${file}`.startsWith(common === "/" ? "/" : `${common}/`)) common = path.dirname(common);
  return common;
}

/**
 * Identifies the weights of a model folder without reading them all: SHA-256, hex, over the configuration, every
 * tensor's name, dtype and shape, and a sample of its numbers. The same model in other files or shards has the same identity. 3B
 * parameters take 3.5 MB of reading.
 */
export function modelIdentity({ config, tensors }: MappedWeights): string {
  const hash = createHash("sha256").update(JSON.stringify(config));
  for (const { name, file, dtype, shape, offset, length } of tensors) {
    hash.update(`\n${name} ${dtype} ${shape}\n`);
    const sample = new Uint8Array(Math.min(SAMPLE_BYTES, length));
    for (const position of [offset, offset + length - sample.length]) {
      readPart(file, sample, position);
      hash.update(sample);
    }
  }
  return hash.digest("hex");
}
