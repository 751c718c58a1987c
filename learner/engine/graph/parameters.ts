/** Named float32 tensors in one flat buffer, so that an optimiser, an accumulator or a digest needs one loop. The buffer is shared memory, which other threads can read. */
import { GraphError } from "./errors.ts";
import { elementCount, type Tensor, tensor } from "./tensor.ts";

export interface ParameterShape {
  name: string;
  shape: readonly number[];
}

const ALIGNMENT = 16; // floats: tensors begin at cache lines

/** Positions of tensors in a flat buffer, and its size, in numbers. */
export function layoutOf(shapes: readonly ParameterShape[]): { offsets: ReadonlyMap<string, number>; size: number } {
  const offsets = new Map<string, number>();
  let size = 0;
  for (const { name, shape } of shapes) {
    offsets.set(name, size);
    size += Math.ceil(elementCount(shape) / ALIGNMENT) * ALIGNMENT;
  }
  return { offsets, size };
}

export class Parameters {
  readonly shapes: readonly ParameterShape[];
  /** all tensors, with zeros between them up to the next cache line */
  readonly data: Float32Array;
  readonly #tensors = new Map<string, Tensor>();

  /** `data`: an existing buffer of the same layout, to be seen under these names */
  constructor(shapes: readonly ParameterShape[], data?: Float32Array) {
    this.shapes = shapes;
    const { offsets, size } = layoutOf(shapes);
    if (data && data.length !== size)
      throw new GraphError("shape", `parameters: the buffer has ${data.length} numbers, not ${size}`);
    this.data = data ?? new Float32Array(new SharedArrayBuffer(4 * size));
    for (const { name, shape } of shapes) {
      const offset = offsets.get(name)!;
      this.#tensors.set(name, tensor(this.data.subarray(offset, offset + elementCount(shape)), shape));
    }
  }

  get(name: string): Tensor {
    const view = this.#tensors.get(name);
    if (!view) throw new GraphError("graph", `there is no parameter '${name}'`);
    return view;
  }

  /** Views of all tensors by `prefix + name`: feeds, or targets to write gradients into. */
  views(prefix = ""): Record<string, Tensor> {
    return Object.fromEntries(this.shapes.map(({ name }) => [prefix + name, this.get(name)]));
  }

  set(name: string, values: Float32Array): void {
    const { data } = this.get(name);
    if (data.length !== values.length)
      throw new GraphError("shape", `parameter '${name}' has ${data.length} numbers, not ${values.length}`);
    data.set(values as never);
  }

  /** The same names over another flat buffer, such as a moment. */
  over(data: Float32Array): Parameters {
    return new Parameters(this.shapes, data);
  }

  copy(): Parameters {
    const copy = new Parameters(this.shapes);
    copy.data.set(this.data);
    return copy;
  }
}
