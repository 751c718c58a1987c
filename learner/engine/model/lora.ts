/**
 * Low-rank adapters beside frozen linear layers (LoRA, Hu et al. 2021): y = x W^T + (alpha / rank) (x A^T) B^T.
 *
 * Names are PEFT's without its prefix `base_model.model.`: `model.layers.0.self_attn.q_proj.lora_A.weight`, A [rank, in] and
 * B [out, rank].
 */
import { custom, stopGradient } from "../graph/emit.ts";
import { fusedDowns, fusedDownsInput, fusedDownsMatrices, fusesDowns } from "../graph/fused.ts";
import type { Graph, TapeEntry, Value } from "../graph/graph.ts";
import { add, expand } from "../graph/primitives.ts";
import { half, matmul } from "../graph/products.ts";
import type { ModelConfig } from "./config.ts";
import { parameterInput } from "./halved.ts";
import { uniforms } from "./random.ts";
import { parameters } from "./weights.ts";

/** The linear layers of the decoder that can have an adapter, as PEFT's `target_modules` calls them. */
export const PROJECTIONS = ["q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj"] as const;
export type Projection = (typeof PROJECTIONS)[number];

export interface LoraConfig {
  readonly rank: number;
  readonly alpha: number;
  readonly targets: readonly Projection[];
}

/** An adapter's numbers, by the names of `adapterParameters`. */
export interface Adapter {
  readonly lora: LoraConfig;
  readonly weights: ReadonlyMap<string, Float32Array>;
}

const A = "lora_A.weight";
const B = "lora_B.weight";

export const adapterScale = ({ rank, alpha }: LoraConfig): number => alpha / rank;

/** Names of the two matrices beside the linear layer `path`, such as `model.layers.0.mlp.up_proj`. */
export const adapterNames = (path: string) => ({ a: `${path}.${A}`, b: `${path}.${B}` });

/** The linear layers that `lora` adapts, with the shape of their weights [out, in], in canonical order. */
function adaptedLayers(config: ModelConfig, lora: LoraConfig): { path: string; shape: readonly number[] }[] {
  return parameters(config).flatMap(({ name, shape, kind }) => {
    const path = name.replace(/\.weight$/, "");
    const module = path.slice(path.lastIndexOf(".") + 1);
    return kind === "matrix" && lora.targets.some((target) => target === module) ? [{ path, shape }] : [];
  });
}

export function adapterParameters(config: ModelConfig, lora: LoraConfig): { name: string; shape: number[] }[] {
  return adaptedLayers(config, lora).flatMap(({ path, shape: [out, size] }) => [
    { name: adapterNames(path).a, shape: [lora.rank, size] },
    { name: adapterNames(path).b, shape: [out, lora.rank] },
  ]);
}

/**
 * A fresh adapter as PEFT makes it: A Kaiming-uniform with a = sqrt(5), which is uniform within 1 / sqrt(in), and B zero, so
 * that the model is its base. Every matrix has a random stream of its own.
 */
export function initialAdapter(config: ModelConfig, lora: LoraConfig, seed: number): Map<string, Float32Array> {
  return new Map(
    adapterParameters(config, lora).map(({ name, shape: [rows, columns] }) => {
      const data = new Float32Array(rows * columns);
      if (name.endsWith(A)) {
        const next = uniforms(seed, "adapter", name);
        const bound = 1 / Math.sqrt(columns);
        for (let i = 0; i < data.length; i++) data[i] = bound * (2 * next() - 1);
      }
      return [name, data];
    }),
  );
}

/** An adapter in a graph. */
export interface GraphAdapter {
  readonly scale: number;
  readonly values: ReadonlyMap<string, Value>;
}

/** The matrices of an adapter as graph inputs (halved.ts), by their names. */
export function adapterInputs(
  g: Graph,
  config: ModelConfig,
  lora: LoraConfig,
  options: { requiresGrad: boolean },
): GraphAdapter {
  const inputs = adapterParameters(config, lora).map(({ name, shape }): [string, Value] => [
    name,
    parameterInput(g, name, shape, options),
  ]);
  return { scale: adapterScale(lora), values: new Map(inputs) };
}

/** y, the output [rows, out] of the frozen layer `path` for x [rows, in], plus the adapter's output. */
export function adapted(y: Value, x: Value, path: string, { scale, values }: GraphAdapter): Value {
  const added = adapterProduct(x, path, { scale, values });
  return added ? add(y, added) : y;
}

/** The adapter's addition to the output of the layer `path`, [rows, out]; undefined if the adapter does not change this layer. */
export function adapterProduct(
  x: Value,
  path: string,
  { scale, values }: Pick<GraphAdapter, "scale"> & { values: Pick<GraphAdapter["values"], "get"> },
): Value | undefined {
  const { a, b } = adapterNames(path);
  const [down, up] = [values.get(a), values.get(b)];
  if (down === undefined || up === undefined) return undefined;
  return matmul(matmul(x, down, { transB: true }), up, { transB: true, alpha: scale });
}

/**
 * As `adapterProduct`; where a kernel serves, the A of adapted layers that share an input are one product. @param groups the names of such layers,
 * within a layer of the decoder
 */
export function joinedAdapters(
  { scale, values }: GraphAdapter,
  groups: readonly (readonly string[])[],
): (x: Value, path: string) => Value | undefined {
  /** of an input, and of one pass over it: a pass that computes it again has a tape of its own */
  const known = new WeakMap<TapeEntry[], Map<string, Value>>();
  return (x, path) => {
    const group = groups.find((names) => names.some((name) => path.endsWith(`.${name}`))) ?? [];
    const layer = path.slice(0, path.length - (group.find((name) => path.endsWith(name)) ?? "").length);
    const paths = group.map((name) => layer + name).filter((each) => values.has(adapterNames(each).a));
    const matrices = paths.map((each) => values.get(adapterNames(each).a)!);
    if (!paths.includes(path) || !fusesDowns(x, matrices)) return adapterProduct(x, path, { scale, values });
    const { tape } = x.graph.model;
    const ofPass = known.get(tape) ?? new Map<string, Value>();
    known.set(tape, ofPass);
    const place = (each: string) => `${x.name} ${each}`;
    if (!ofPass.has(place(path)))
      for (const [i, down] of joinedDowns(x, matrices).entries()) ofPass.set(place(paths[i]!), down);
    return matmul(ofPass.get(place(path))!, values.get(adapterNames(path).b)!, { transB: true, alpha: scale });
  };
}

/** x A^T of several A [rank, in], by one kernel. */
function joinedDowns(x: Value, matrices: readonly Value[]): Value[] {
  const inputs = [half(x), ...matrices.map(half)];
  const trained = matrices.some(({ requiresGrad }) => requiresGrad);
  return custom(
    "joinedDowns",
    inputs,
    ([input, ...given]) => fusedDowns(input!, given),
    (cotangents, outputs) => {
      const zeros = (i: number) => expand(x.graph.constant(0, outputs[i]!.dtype), outputs[i]!.shape);
      const each = cotangents.map((cotangent, i) => (cotangent ? half(cotangent) : zeros(i)));
      const [input, ...given] = inputs.map(stopGradient);
      const dx = x.requiresGrad ? fusedDownsInput(each, given) : undefined;
      return [dx, ...(trained ? fusedDownsMatrices(each, input!) : matrices.map(() => undefined))];
    },
  );
}
