/**
 * A small builder of ONNX graphs with reverse-mode gradients.
 *
 * ```ts
 * const g = new Graph('example');
 * const x = g.input('x', 'float32', ['rows', 3]);             // a dim is a number, or a name that is bound when it runs
 * const w = g.input('w', 'float32', [4, 3], { requiresGrad: true });
 * const loss = sum(square(linear(x, w)));                     // primitives.ts: functions of values, shapes are inferred
 * const [dw] = gradients(loss, [w]);                          // gradients.ts
 * g.output('loss', loss);
 * g.output('dw', dw);
 * const session = await createSession(g);                    // ../runtime/runtime.ts: blocks its thread, so use it in a worker
 * const { dw } = await session.run({ x: tensor(...), w: tensor(...) });
 * ```
 *
 * | what | how |
 * | --- | --- |
 * | weights | `g.initializer(name, tensor)`; `g.externalInitializer(name, dtype, shape, { location, offset, length })` points into a file |
 * | any operator | `g.op('TopK', [x, k], { axis: 1 }, [{ dtype, shape }, { dtype, shape }], domain?)` -> values; an input that is left out is `null`; attributes: number = int, `float(x)`, string, number[] = ints, Tensor |
 *
 * A primitive is emitted into the graph of its inputs. Names are unique within a graph.
 */
import { GraphError } from "./errors.ts";
import { type DType, type Tensor, type TypedArray, tensorOf } from "./tensor.ts";

export type Dim = number | string;
export type Shape = readonly Dim[];

export interface Value {
  readonly graph: Graph;
  readonly name: string;
  readonly dtype: DType;
  readonly shape: Shape;
  readonly requiresGrad: boolean;
}

export type FloatAttribute = { float: number };
export type Attribute = number | string | boolean | readonly number[] | FloatAttribute | Tensor;
export const float = (value: number): FloatAttribute => ({ float: value });

export interface OpNode {
  name: string;
  type: string;
  domain: string;
  inputs: string[];
  outputs: Value[];
  attributes: Record<string, Attribute>;
}

export interface ExternalData {
  /** file name, relative to the session's `externalDirectory` */
  location: string;
  /** bytes */
  offset: number;
  /** bytes */
  length: number;
}
export type Initializer = { value: Value } & ({ data: TypedArray } | { external: ExternalData });

/** One differentiable step: cotangents of `outputs` (undefined: zero) to cotangents of `inputs` (undefined: none). */
export interface TapeEntry {
  /** the rule's name in the table of README.md */
  name: string;
  inputs: readonly Value[];
  outputs: readonly Value[];
  vjp: (cotangents: (Value | undefined)[]) => (Value | undefined)[];
}

export type OutputSpec = { dtype: DType; shape: Shape };

/**
 * The dtype of matrix products. With `bfloat16` operands and products are bfloat16, and so are values that are computed from products
 * alone (README.md). ONNX Runtime has bfloat16 products on CUDA only.
 */
export type Compute = "float32" | "bfloat16" | "float16";

/** The kernels of our own that the device of a graph has (operators.ts), by their names. */
export interface KernelSource {
  has(name: string): boolean;
}

/** The state of a graph while it is built. */
const newModel = (opset: number, compute: Compute, kernels: KernelSource | undefined) => ({
  opset,
  compute,
  kernels,
  counter: 0,
  names: new Set<string>(),
  constants: new Map<string, Value>(),
  /** by the name of a value: the value that it was cast from without loss, and its bfloat16 copy */
  castFrom: new Map<string, Value>(),
  halves: new Map<string, { value: Value; tape: TapeEntry[] }>(),
  /** by the name of a value: the value added to a total (primitives.ts) */
  addedTo: new Map<string, (total: Value) => Value>(),
  tape: [] as TapeEntry[],
  /** something is computed a second time to save memory: the session must not merge it with the first (recomputation.ts) */
  recomputes: false,
  /** false while the inside of a custom operator is emitted */
  recording: true,
});

export class Graph {
  readonly name: string;
  readonly nodes: OpNode[] = [];
  readonly inputs: Value[] = [];
  readonly outputs: { name: string; value: Value }[] = [];
  readonly initializers: Initializer[] = [];
  readonly model: ReturnType<typeof newModel>;
  readonly #sizes = new Map<string, Value>();

  /**
   * `opset`: 21 for generation (random operators, smaller kernels), 23 for Attention and RMSNormalization; `kernels`: used in a graph that
   * computes in bfloat16, left out: none.
   */
  constructor(
    name: string,
    {
      opset = 23,
      compute = "float32",
      kernels,
    }: { opset?: number; compute?: Compute; kernels?: KernelSource | undefined } = {},
  ) {
    this.name = name;
    this.model = newModel(opset, compute, kernels);
  }

  input(name: string, dtype: DType, shape: Shape, options: { requiresGrad?: boolean } = {}): Value {
    const value = this.#value(this.#claim(name), dtype, shape, options.requiresGrad ?? false);
    this.inputs.push(value);
    return value;
  }

  output(name: string, value: Value): void {
    this.#checkOwn(value, `output ${name}`);
    // the name of an output is the name of the value that makes it, so a copy gives the output its own name; ORT removes the copy
    const named = this.#value(this.#claim(name), value.dtype, value.shape, false);
    const node = { name: `output_${name}`, inputs: [value.name], outputs: [named] };
    this.nodes.push({ ...node, type: "Identity", domain: "", attributes: {} });
    this.outputs.push({ name, value: named });
  }

  initializer(name: string, tensor: Tensor, options: { requiresGrad?: boolean } = {}): Value {
    const value = this.#value(this.#claim(name), tensor.dtype, tensor.shape, options.requiresGrad ?? false);
    this.initializers.push({ value, data: tensor.data });
    return value;
  }

  externalInitializer(name: string, dtype: DType, shape: readonly number[], external: ExternalData): Value {
    const value = this.#value(this.#claim(name), dtype, shape, false);
    this.initializers.push({ value, external });
    return value;
  }

  /** A constant of the model: a scalar from a number, a vector (or `shape`) from numbers. */
  constant(values: number | readonly number[], dtype: DType = "float32", shape?: readonly number[]): Value {
    const list = typeof values === "number" ? [values] : values;
    const dims = shape ?? (typeof values === "number" ? [] : [list.length]);
    const key = `${dtype}[${dims}]:${list.map((value) => (Object.is(value, -0) ? "-0" : value)).join()}`;
    const known = this.model.constants.get(key);
    if (known) return known;
    const value = this.initializer(this.#fresh("constant"), tensorOf(dtype, list, dims));
    this.model.constants.set(key, value);
    return value;
  }

  /** Emits one operator into this graph. Not differentiable by itself: primitives and `custom` record gradients. */
  op(
    type: string,
    inputs: readonly (Value | null)[],
    attributes: Record<string, Attribute>,
    outputs: readonly OutputSpec[],
    domain = "",
  ): Value[] {
    for (const input of inputs) if (input) this.#checkOwn(input, type);
    const name = this.#fresh(type);
    const values = outputs.map((output, i) =>
      this.#value(outputs.length === 1 ? `${name}_out` : `${name}_out${i}`, output.dtype, output.shape, false),
    );
    const names = inputs.map((input) => input?.name ?? "");
    this.nodes.push({ name, type, domain, inputs: names, outputs: values, attributes });
    return values;
  }

  /** The size of a named dim (or of a product such as `rows*time`) when it runs, int64 [1]. */
  dim(dim: Dim): Value {
    if (typeof dim === "number") return this.constant([dim], "int64");
    return this.#once(dim, () => {
      const factors = dim.split("*");
      if (factors.length > 1) {
        return factors
          .map((factor) => this.dim(/^\d+$/.test(factor) ? Number(factor) : factor))
          .reduce((a, b) => this.#once(`${a.name}*${b.name}`, () => this.#size("Mul", [a, b])));
      }
      const source = this.inputs.find((input) => input.shape.includes(dim));
      if (!source) {
        const remedy = "so its size is unknown; add it to an input's shape";
        throw new GraphError("shape", `graph ${this.name}: no input has the dim '${dim}', ${remedy}`);
      }
      const start = source.shape.indexOf(dim);
      return this.#size("Shape", [source], { start, end: start + 1 });
    });
  }

  /** A shape as a value, int64 [rank]. */
  shapeOf(shape: Shape): Value {
    if (shape.every((dim) => typeof dim === "number")) return this.constant(shape as number[], "int64");
    return this.#once(`[${shape}]`, () => {
      const dims = shape.map((dim) => this.dim(dim));
      return this.#size("Concat", dims, { axis: 0 }, shape.length);
    });
  }

  /** Sizes, int64 [count]. */
  #size(type: string, inputs: Value[], attributes: OpNode["attributes"] = {}, count = 1): Value {
    return this.op(type, inputs, attributes, [{ dtype: "int64", shape: [count] }])[0];
  }

  /** Returns the sizes that `emit` emitted for this key; it is called once for each key. */
  #once(key: string, emit: () => Value): Value {
    const value = this.#sizes.get(key) ?? emit();
    this.#sizes.set(key, value);
    return value;
  }

  /** Marks `outputs` as computed from `inputs` by the gradient rule `name`; returns them as values that require a gradient. */
  record(name: string, inputs: readonly Value[], outputs: readonly Value[], vjp: TapeEntry["vjp"]): Value[] {
    if (!this.model.recording || !inputs.some((input) => input.requiresGrad)) return [...outputs];
    const differentiable = outputs.map((output) =>
      isFloat(output.dtype) ? { ...output, requiresGrad: true } : output,
    );
    this.model.tape.push({ name, inputs, outputs: differentiable, vjp });
    return differentiable;
  }

  #value(name: string, dtype: DType, shape: Shape, requiresGrad: boolean): Value {
    return { graph: this, name, dtype, shape: [...shape], requiresGrad };
  }

  #claim(name: string): string {
    if (this.model.names.has(name))
      throw new GraphError("graph", `graph ${this.name}: the name '${name}' is taken; names are unique within a graph`);
    this.model.names.add(name);
    return name;
  }

  #fresh(prefix: string): string {
    return `${prefix}_${this.model.counter++}`;
  }

  #checkOwn(value: Value, user: string): void {
    if (value.graph === this) return;
    const owner = value.graph.name;
    throw new GraphError("graph", `${user}: the value '${value.name}' belongs to graph ${owner}, not to ${this.name}`);
  }
}

export function isFloat(dtype: DType): boolean {
  return dtype.includes("float");
}

/** Caches the result of `find` for each graph until nodes are added to the graph. */
export function perGraph<T>(find: (graph: Graph) => T): (graph: Graph) => T {
  const known = new WeakMap<Graph, { nodes: number; found: T }>();
  return (graph) => {
    const before = known.get(graph);
    if (before?.nodes === graph.nodes.length) return before.found;
    const found = find(graph);
    known.set(graph, { nodes: graph.nodes.length, found });
    return found;
  };
}
