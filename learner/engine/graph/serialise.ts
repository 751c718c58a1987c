/** Graph -> the bytes of an ONNX model (protobuf, IR version 10). */
import { fileURLToPath } from "node:url";
import protobuf from "protobufjs";
import {
  type Attribute,
  type FloatAttribute,
  type Graph,
  type Initializer,
  type OpNode,
  perGraph,
  type Shape,
  type Value,
} from "./graph.ts";
import { DOMAIN } from "./operators.ts";
import { DTYPES, type DType, type Tensor, type TypedArray } from "./tensor.ts";

const IR_VERSION = 10;
/**
 * ONNX Runtime reuses the memory of a dead value for a later value of the same shape, and holds that memory in between. All layers have
 * the same shapes, so it would hold the memory of every large value from the first layer to the last. In a graph that recomputes values
 * in order to save memory, named dims therefore change their names after a stretch of nodes. A stretch has at least STRETCH
 * nodes, and a graph has at most STRETCHES of them: ONNX Runtime searches the dead values of all stretches, so that the time to make a
 * session grows with the square of their number.
 */
const STRETCH = 100;
const STRETCHES = 80;
/** Read when the first graph needs it: commands without a graph start faster. */
let modelProto: protobuf.Type | undefined;

export function serialise(graph: Graph): Uint8Array {
  modelProto ??= protobuf.loadSync(fileURLToPath(new URL("onnx.proto", import.meta.url))).lookupType("onnx.ModelProto");
  const opsets = { "": graph.model.opset, "com.microsoft": 1, ...(usesDomain(graph, DOMAIN) && { [DOMAIN]: 1 }) };
  const opsetImport = Object.entries(opsets).map(([domain, version]) => ({ domain, version }));
  const model = { irVersion: IR_VERSION, producerName: "longrun", opsetImport, graph: graphProto(graph) };
  return modelProto.encode(modelProto.fromObject(model)).finish();
}

export const usesDomain = (graph: Graph, wanted: string): boolean =>
  graph.nodes.some(({ domain }) => domain === wanted);

/** Returns the nodes that an output depends on; ONNX Runtime would also run the others. */
export const liveNodes = perGraph((graph: Graph): readonly OpNode[] => {
  const needed = new Set(graph.outputs.map(({ value }) => value.name));
  const live = graph.nodes.toReversed().filter(({ outputs, inputs }) => {
    if (!outputs.some(({ name }) => needed.has(name))) return false;
    for (const name of inputs) needed.add(name);
    return true;
  });
  return live.reverse();
});

function graphProto(graph: Graph): object {
  const outputs = new Set(graph.outputs.map((output) => output.value.name));
  const nodes = liveNodes(graph);
  return {
    name: graph.name,
    node: nodes.map((node) => ({
      name: node.name,
      opType: node.type,
      domain: node.domain,
      input: node.inputs,
      output: node.outputs.map((value) => value.name),
      attribute: Object.entries(node.attributes).map(([name, value]) => attributeProto(name, value)),
    })),
    initializer: graph.initializers.map(initializerProto),
    input: graph.inputs.map((input) => valueInfo(input)),
    output: graph.outputs.map((output) => valueInfo(output.value)),
    // written for every value: where ORT cannot infer a shape, creating a session takes quadratic time
    valueInfo: nodes.flatMap((node, i) => {
      const where = stretchOf(graph, nodes.length, i);
      return node.outputs.filter((value) => !outputs.has(value.name)).map((value) => valueInfo(value, where));
    }),
  };
}

/** @param where a part of the names of dims */
function valueInfo({ name, dtype, shape }: Value, where = ""): object {
  const dim = shape.map((size) => (typeof size === "number" ? { dimValue: size } : { dimParam: size + where }));
  return { name, type: { tensorType: { elemType: DTYPES[dtype].code, shape: { dim } } } };
}

/** The dims of a value by the names that ONNX Runtime is given. @param place of the node that makes it, among the `nodes` live ones */
export function dimNames(graph: Graph, { shape }: Value, nodes: number, place: number): (number | string)[] {
  return shape.map((dim) => (typeof dim === "number" ? dim : dim + stretchOf(graph, nodes, place)));
}

function stretchOf(graph: Graph, nodes: number, place: number): string {
  return graph.model.recomputes ? `@${Math.floor(place / Math.max(STRETCH, Math.ceil(nodes / STRETCHES)))}` : "";
}

function tensorProto({ shape, dtype, data }: { shape: Shape; dtype: DType; data: TypedArray }): object {
  const rawData = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  return { dims: shape, dataType: DTYPES[dtype].code, rawData };
}

function initializerProto(initializer: Initializer): object {
  const { value } = initializer;
  if ("data" in initializer) return { name: value.name, ...tensorProto({ ...value, data: initializer.data }) };
  const { location, offset, length } = initializer.external;
  return {
    name: value.name,
    dims: value.shape,
    dataType: DTYPES[value.dtype].code,
    dataLocation: 1,
    externalData: Object.entries({ location, offset, length }).map(([key, entry]) => ({ key, value: String(entry) })),
  };
}

function attributeProto(name: string, value: Attribute): object {
  if (typeof value === "boolean") return { name, type: 2, i: value ? 1 : 0 };
  if (typeof value === "number") return { name, type: 2, i: value };
  if (typeof value === "string") return { name, type: 3, s: Buffer.from(value) };
  if (Array.isArray(value)) return { name, type: 7, ints: value };
  if ("data" in value) return { name, type: 4, t: tensorProto(value as Tensor) };
  return { name, type: 1, f: (value as FloatAttribute).float };
}
