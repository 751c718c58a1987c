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
 * | constants | `g.constant(number or numbers, dtype?, shape?)`: equal constants are one initializer |
 * | any operator | `g.op('TopK', [x, k], { axis: 1 }, [{ dtype, shape }, { dtype, shape }], domain?)` -> values; an input that is left out is `null`; attributes: number = int, `float(x)`, string, number[] = ints, Tensor, Graph |
 * | size of a named dim | `g.dim('rows')` -> int64 [1]; `g.shapeOf(['rows', 3])` -> int64 [rank] |
 * | loop | `g.loop({ tripCount?, condition?, carried, body })`: body gets (graph, iteration, condition, carried), returns { condition, carried, scans? } |
 *
 * Where an operation goes: a primitive is emitted into the innermost graph that one of its inputs belongs to, so what a loop
 * body computes from outer values alone is hoisted out of the loop; `g.op` emits into `g` itself. Values of an outer graph
 * are captured by name (ONNX allows it), never copied. All names are unique over the whole model.
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

export interface FloatAttribute {
  float: number;
}
export type Attribute = number | string | boolean | readonly number[] | FloatAttribute | Tensor | Graph;
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

/** One differentiable step: cotangents of `outputs` (undefined: zero) to those of `inputs` (undefined: none). */
export interface TapeEntry {
  /** of the rule, as the table in README.md has it */
  name: string;
  inputs: readonly Value[];
  outputs: readonly Value[];
  vjp: (cotangents: (Value | undefined)[]) => (Value | undefined)[];
}

export type OutputSpec = { dtype: DType; shape: Shape };

export interface LoopOptions {
  tripCount?: Value;
  condition?: Value;
  carried: readonly Value[];
  /** shapes of the carried values inside the body when they change from one iteration to the next */
  carriedShapes?: readonly Shape[];
  body: (
    graph: Graph,
    iteration: Value,
    condition: Value,
    carried: Value[],
  ) => { condition?: Value; carried: readonly Value[]; scans?: readonly Value[] };
}

/**
 * What matrices are multiplied in. `bfloat16`: operands and products are bfloat16, and so is what is computed of products alone
 * (README.md); ONNX Runtime has such products on CUDA only.
 */
export type Compute = "float32" | "bfloat16";

/** What all graphs of one model share. */
interface Model {
  opset: number;
  compute: Compute;
  counter: number;
  names: Set<string>;
  constants: Map<string, Value>;
  /** by the name of a value: what it was cast from without loss, and its bfloat16 */
  castFrom: Map<string, Value>;
  halves: Map<string, { value: Value; tape: TapeEntry[] }>;
  /** by the name of a value: it, added to a total (sums.ts) */
  addedTo: Map<string, (total: Value) => Value>;
  tape: TapeEntry[];
  /** something is computed a second time to save memory: the session must not merge it with the first (checkpoint.ts) */
  recomputes: boolean;
  /** false while the inside of a custom operator is emitted */
  recording: boolean;
}

export class Graph {
  readonly name: string;
  readonly parent: Graph | undefined;
  readonly depth: number;
  readonly nodes: OpNode[] = [];
  readonly inputs: Value[] = [];
  readonly outputs: { name: string; value: Value }[] = [];
  readonly initializers: Initializer[] = [];
  readonly model: Model;
  /** sizes and shapes that this graph has computed already */
  readonly #sizes = new Map<string, Value>();

  /** `opset`: 21 for generation (random operators, smaller kernels), 23 for Attention and RMSNormalization. */
  constructor(name: string, options: { opset?: number; compute?: Compute; parent?: Graph } = {}) {
    this.name = name;
    this.parent = options.parent;
    this.depth = options.parent ? options.parent.depth + 1 : 0;
    this.model = options.parent?.model ?? {
      opset: options.opset ?? 23,
      compute: options.compute ?? "float32",
      counter: 0,
      names: new Set(),
      constants: new Map(),
      castFrom: new Map(),
      halves: new Map(),
      addedTo: new Map(),
      tape: [],
      recomputes: false,
      recording: true,
    };
  }

  get root(): Graph {
    return this.parent ? this.parent.root : this;
  }

  input(name: string, dtype: DType, shape: Shape, options: { requiresGrad?: boolean } = {}): Value {
    const value = this.#value(this.#claim(name), dtype, shape, options.requiresGrad ?? false);
    this.inputs.push(value);
    return value;
  }

  /** Makes `value` an output called `name`. */
  output(name: string, value: Value): void {
    this.#checkVisible(value, `output ${name}`);
    // the name of an output is the name of the value that makes it, so a copy gives it one of its own; ORT removes the copy
    const named = this.#value(this.#claim(name), value.dtype, value.shape, false);
    this.nodes.push({
      name: `output_${name}`,
      type: "Identity",
      domain: "",
      inputs: [value.name],
      outputs: [named],
      attributes: {},
    });
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
    const value = this.root.initializer(this.#fresh("constant"), tensorOf(dtype, list, dims));
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
    for (const input of inputs) if (input) this.#checkVisible(input, type);
    const name = this.#fresh(type);
    const values = outputs.map((output, i) =>
      this.#value(outputs.length === 1 ? `${name}_out` : `${name}_out${i}`, output.dtype, output.shape, false),
    );
    this.nodes.push({
      name,
      type,
      domain,
      inputs: inputs.map((input) => input?.name ?? ""),
      outputs: values,
      attributes,
    });
    return values;
  }

  /** The size of a named dim (or of a product such as `rows*time`) when it runs, int64 [1]. */
  dim(dim: Dim): Value {
    if (typeof dim === "number") return this.constant([dim], "int64");
    const factors = dim.split("*");
    if (factors.length > 1) {
      return factors
        .map((factor) => this.dim(/^\d+$/.test(factor) ? Number(factor) : factor))
        .reduce((a, b) => {
          const graph = innermost([a, b]);
          return graph.#sized(
            `${a.name}*${b.name}`,
            () => graph.op("Mul", [a, b], {}, [{ dtype: "int64", shape: [1] }])[0]!,
          );
        });
    }
    for (let graph: Graph | undefined = this; graph; graph = graph.parent) {
      const owner = graph;
      const source = owner.inputs.find((input) => input.shape.includes(dim));
      if (!source) continue;
      const start = source.shape.indexOf(dim);
      return owner.#sized(
        dim,
        () => owner.op("Shape", [source], { start, end: start + 1 }, [{ dtype: "int64", shape: [1] }])[0]!,
      );
    }
    throw new GraphError(
      "shape",
      `graph ${this.name}: no input has the dim '${dim}', so its size is unknown; add it to an input's shape`,
    );
  }

  /** A shape as a value, int64 [rank]. */
  shapeOf(shape: Shape): Value {
    if (shape.every((dim) => typeof dim === "number")) return this.constant(shape as number[], "int64");
    const dims = shape.map((dim) => this.dim(dim));
    const graph = innermost(dims);
    return graph.#sized(
      `[${shape}]`,
      () => graph.op("Concat", dims, { axis: 0 }, [{ dtype: "int64", shape: [shape.length] }])[0]!,
    );
  }

  #sized(key: string, make: () => Value): Value {
    const value = this.#sizes.get(key) ?? make();
    this.#sizes.set(key, value);
    return value;
  }

  /** ONNX Loop. Returns the final carried values, then each scan value stacked along a new first axis. */
  loop(options: LoopOptions): Value[] {
    const body = new Graph(this.#fresh("loop_body"), { parent: this });
    const iteration = body.input(`${body.name}_iteration`, "int64", []);
    const condition = body.input(`${body.name}_condition`, "bool", []);
    const shapes = options.carried.map((value, i) => options.carriedShapes?.[i] ?? value.shape);
    const carried = options.carried.map((value, i) => body.input(`${body.name}_in${i}`, value.dtype, shapes[i]!));
    const result = options.body(body, iteration, condition, carried);
    if (result.carried.length !== carried.length) {
      throw new GraphError(
        "graph",
        `loop: the body returned ${result.carried.length} carried values instead of ${carried.length}`,
      );
    }
    const scans = result.scans ?? [];
    body.output(`${body.name}_go`, result.condition ?? condition);
    for (const [i, value] of [...result.carried, ...scans].entries()) body.output(`${body.name}_out${i}`, value);
    const count = this.#fresh("iterations");
    return this.op("Loop", [options.tripCount ?? null, options.condition ?? null, ...options.carried], { body }, [
      ...carried.map((value, i) => ({ dtype: value.dtype, shape: shapes[i]! })),
      ...scans.map((value) => ({ dtype: value.dtype, shape: [count, ...value.shape] })),
    ]);
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
      throw new GraphError(
        "graph",
        `graph ${this.name}: the name '${name}' is taken; names are unique over the whole model`,
      );
    this.model.names.add(name);
    return name;
  }

  #fresh(prefix: string): string {
    return `${prefix}_${this.model.counter++}`;
  }

  #checkVisible(value: Value, user: string): void {
    for (let graph: Graph | undefined = this; graph; graph = graph.parent) if (graph === value.graph) return;
    throw new GraphError(
      "graph",
      `${user}: the value '${value.name}' belongs to graph ${value.graph.name}, which ${this.name} cannot see`,
    );
  }
}

export function isFloat(dtype: DType): boolean {
  return dtype.includes("float");
}

/** The innermost of the graphs of `values`: where an operator on them is emitted. */
export function innermost(values: readonly Value[]): Graph {
  return values.reduce((graph, value) => (value.graph.depth > graph.depth ? value.graph : graph), values[0]!.graph);
}
