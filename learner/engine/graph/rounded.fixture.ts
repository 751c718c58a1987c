import type { Graph, OpNode, Value } from "./graph.ts";
import { DTYPES } from "./tensor.ts";

/**
 * For tests: makes a bfloat16 graph one that a CPU runs. Every bfloat16 value becomes a float32 one that is rounded to bfloat16, so
 * that its numbers equal the bfloat16 graph's except for roundings within a kernel. Inputs and outputs become float32.
 */
export function rounded(graph: Graph): Graph {
  const { float32, bfloat16 } = DTYPES;
  const cast = (input: string, value: Value, to: number): OpNode => ({
    ...{ name: `${value.name}_cast`, type: "Cast", domain: "", inputs: [input], outputs: [value] },
    attributes: { to },
  });
  const widen = (value: Value) => Object.assign(value, { dtype: "float32" });
  /** nodes that make `name` of the number called `exact`, which has float32's bits */
  const round = (value: Value, exact: string): OpNode[] => {
    const half: Value = { ...value, name: `${value.name}_half`, dtype: "bfloat16" };
    return [cast(exact, half, bfloat16.code), cast(half.name, { ...value, dtype: "float32" }, float32.code)];
  };
  const nodes: OpNode[] = [];
  const renamed = new Map<string, string>();
  for (const input of graph.inputs.filter(({ dtype }) => dtype === "bfloat16")) {
    const value = { ...widen(input), name: `${input.name}_rounded` };
    nodes.push(...round(value, input.name));
    renamed.set(input.name, value.name);
  }
  for (const { value } of graph.initializers.filter(({ value: { dtype } }) => dtype === "bfloat16")) {
    const wide: Value = { ...value, name: `${value.name}_wide`, dtype: "float32" };
    nodes.push(cast(value.name, wide, float32.code));
    renamed.set(value.name, wide.name);
  }
  const outputs = new Set(graph.outputs.map(({ value }) => value.name));
  for (const node of graph.nodes) {
    const inputs = node.inputs.map((name) => renamed.get(name) ?? name);
    const narrow = node.outputs.filter(({ dtype }) => dtype === "bfloat16");
    const attributes = node.type === "Cast" && narrow.length > 0 ? { to: float32.code } : node.attributes;
    const inner = narrow.filter(({ name }) => !outputs.has(name)); // an output is a copy of a rounded value
    const exact = new Map(
      inner.map((value) => [value, { ...value, name: `${value.name}_exact`, dtype: "float32" } as Value]),
    );
    nodes.push({ ...node, inputs, attributes, outputs: node.outputs.map((value) => exact.get(value) ?? value) });
    for (const value of inner) nodes.push(...round(value, exact.get(value)!.name));
  }
  for (const { value } of graph.outputs) if (value.dtype === "bfloat16") widen(value);
  for (const node of nodes)
    for (const value of node.outputs) if (outputs.has(value.name) && value.dtype === "bfloat16") widen(value);
  graph.nodes.splice(0, graph.nodes.length, ...nodes);
  return graph;
}
