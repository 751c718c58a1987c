/**
 * Custom operators of ONNX Runtime whose callbacks are functions of this thread, called through koffi: OrtCustomOp is a table of addresses.
 * They run in the thread of the session (InterOpNumThreads is 1), on the stream of the session, and are recorded in its CUDA graphs.
 */
import { DOMAIN, SIGNATURES, type Signature } from "../graph/operators.ts";
import { DTYPES } from "../graph/tensor.ts";
import { API_VERSION, type OrtApi, type Pointer } from "./api.ts";
import { copyOn } from "./cuda.ts";
import type { Kernels } from "./kernels.ts";
import { koffi } from "./koffi.ts";
import { LAUNCHES, type Launch } from "./launches.ts";

/** Fields of OrtCustomOp in version 24 of the API; the first is that version. Those left out are null. */
const FIELDS = 26;
const P = "void *";
/** [field, type of the result, types of the parameters] */
const CALLBACKS = {
  GetName: [2, P, [P]],
  GetExecutionProviderType: [3, P, [P]],
  GetInputType: [4, "int", [P, "size_t"]],
  GetInputTypeCount: [5, "size_t", [P]],
  GetOutputType: [6, "int", [P, "size_t"]],
  GetOutputTypeCount: [7, "size_t", [P]],
  KernelDestroy: [9, "void", [P]],
  GetInputCharacteristic: [10, "int", [P, "size_t"]],
  GetOutputCharacteristic: [11, "int", [P, "size_t"]],
  GetInputMemoryType: [12, "int", [P, "size_t"]],
  CreateKernelV2: [17, P, [P, P, P, P]], // operator, api, OrtKernelInfo, -> kernel
  KernelComputeV2: [18, P, [P, P]], // kernel, OrtKernelContext
  GetMayInplace: [22, "size_t", [P, P]], // -> inputs, outputs
  ReleaseMayInplace: [23, "void", [P, P]],
} as const;
/** Of operators whose first output may be their first input alone. */
const IN_PLACE = ["GetMayInplace", "ReleaseMayInplace"] as const;
type Callbacks = { [Name in keyof typeof CALLBACKS]: (...given: never[]) => unknown };
const REQUIRED = 0; // INPUT_OUTPUT_REQUIRED
const DEVICE_MEMORY = 0; // OrtMemTypeDefault
/** Smaller arrays may be in V8's heap, where they move. */
const LEAST_BYTES = 128;

interface Operator {
  readonly name: Pointer;
  readonly signature: Signature;
  readonly launch: Launch;
}
/** An operator in a session. */
interface Node {
  readonly operator: Operator;
  readonly attributes: Readonly<Record<string, number>>;
}

/** Arrays and callbacks of which ONNX Runtime has the addresses, until the process ends. */
const kept: unknown[] = [];

/** Returns an OrtCustomOpDomain with all operators, for sessions of this thread on the GPU of `kernels`. */
export function customOperators(api: OrtApi, kernels: Kernels): Pointer {
  const native = koffi();
  const text = (value: string): Pointer => {
    const bytes = Buffer.alloc(LEAST_BYTES);
    bytes.write(value);
    kept.push(bytes);
    return api.addressOf(bytes);
  };
  const operators = new Map<Pointer, Operator>();
  const nodes = new Map<Pointer, Node>();
  const provider = text("CUDAExecutionProvider");
  const of = (address: Pointer) => operators.get(address)!;
  /** An exception would end the process: it becomes ONNX Runtime's error. */
  const guarded = (act: () => void): Pointer | null => {
    try {
      act();
      return null;
    } catch (cause) {
      return api.failure((cause as Error).message);
    }
  };
  const first = new Int32Array(LEAST_BYTES / Int32Array.BYTES_PER_ELEMENT); // a list of the number 0
  kept.push(first);
  let made = 0n;
  const callbacks: Callbacks = {
    GetName: (it: Pointer) => of(it).name,
    GetExecutionProviderType: () => provider,
    GetInputType: (it: Pointer, i: number) => DTYPES[of(it).signature.inputs[Number(i)]!].code,
    GetInputTypeCount: (it: Pointer) => of(it).signature.inputs.length,
    GetOutputType: (it: Pointer, i: number) => DTYPES[of(it).signature.outputs[Number(i)]!.dtype].code,
    GetOutputTypeCount: (it: Pointer) => of(it).signature.outputs.length,
    KernelDestroy: (node: Pointer) => void nodes.delete(node),
    GetInputCharacteristic: () => REQUIRED,
    GetOutputCharacteristic: () => REQUIRED,
    GetInputMemoryType: () => DEVICE_MEMORY,
    CreateKernelV2: (it: Pointer, _: Pointer, info: Pointer, out: Pointer) =>
      guarded(() => {
        const operator = of(it);
        nodes.set(++made, { operator, attributes: attributesOf(api, info, operator.signature) });
        new BigUint64Array(native.view(out, 8))[0] = made;
      }),
    KernelComputeV2: (node: Pointer, context: Pointer) =>
      guarded(() => compute(api, kernels, nodes.get(node)!, context)),
    GetMayInplace: (inputs: Pointer, outputs: Pointer) => {
      for (const out of [inputs, outputs]) new BigUint64Array(native.view(out, 8))[0] = api.addressOf(first);
      return 1;
    },
    ReleaseMayInplace: () => undefined,
  };
  const table = new BigUint64Array(FIELDS);
  table[0] = BigInt(API_VERSION);
  for (const [name, [field, result, parameters]] of Object.entries(CALLBACKS)) {
    const type = native.pointer(native.proto(result, [...parameters]));
    table[field] = native.register(callbacks[name as keyof Callbacks], type) as Pointer;
  }
  const domain = api.created((out) => api.CreateCustomOpDomain(DOMAIN, out));
  for (const [name, signature] of Object.entries(SIGNATURES)) {
    const own = table.slice(); // its address is the operator's
    if (!signature.inPlace) for (const each of IN_PLACE) own[CALLBACKS[each][0]] = 0n;
    kept.push(own);
    operators.set(api.addressOf(own), { name: text(name), signature, launch: LAUNCHES[name]! });
    api.CustomOpDomain_Add(domain, api.addressOf(own));
  }
  return domain;
}

function attributesOf(api: OrtApi, info: Pointer, { attributes }: Signature): Record<string, number> {
  const out = new BigInt64Array(LEAST_BYTES / 8);
  const read = ([name, type]: [string, "int" | "float"]): [string, number] => {
    if (type === "int") api.KernelInfoGetAttribute_int64(info, name, out);
    else api.KernelInfoGetAttribute_float(info, name, out);
    return [name, type === "int" ? Number(out[0]) : new Float32Array(out.buffer)[0]!];
  };
  return Object.fromEntries(Object.entries(attributes).map(read));
}

/** Allocates the outputs of a node and launches its kernels. */
function compute(api: OrtApi, kernels: Kernels, { operator, attributes }: Node, context: Pointer): void {
  const { signature, launch } = operator;
  const values = signature.inputs.map((_, i) => api.created((out) => api.KernelContext_GetInput(context, i, out)));
  const dataOf = (value: Pointer) => api.created((out) => api.GetTensorMutableData(value, out));
  const shapes: (readonly number[] | undefined)[] = [];
  const of = (i: number) => (shapes[i] ??= shapeOf(api, values[i]!));
  const outputs = signature.outputs.map(({ shape }, i) => {
    const dims = BigInt64Array.from(shape(of, attributes) as readonly number[], BigInt);
    return dataOf(api.created((out) => api.KernelContext_GetOutput(context, i, dims, dims.length, out)));
  });
  const stream = api.created((out) => api.KernelContext_GetGPUComputeStream(context, out));
  const run = (kernel: string, grid: readonly [number, number?], given: readonly (Pointer | number)[]) =>
    kernels.launch(kernel, stream, grid, given);
  const copy = (to: Pointer, from: Pointer, bytes: number) => copyOn(stream, to, from, bytes);
  launch({ of, attributes, inputs: values.map(dataOf), outputs, run, copy });
}

function shapeOf(api: OrtApi, value: Pointer): number[] {
  const info = api.created((out) => api.GetTensorTypeAndShape(value, out));
  const rank = Number(api.created((out) => api.GetDimensionsCount(info, out)));
  const dims = new BigInt64Array(rank);
  if (rank > 0) api.GetDimensions(info, dims, rank);
  api.ReleaseTensorTypeAndShapeInfo(info);
  return Array.from(dims, Number);
}
