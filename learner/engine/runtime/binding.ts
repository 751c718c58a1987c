/** Inputs and outputs of a session that stay where they are from run to run. */
import { GraphError } from "../graph/errors.ts";
import { type DeviceTensor, DTYPES, type Tensor } from "../graph/tensor.ts";
import type { OrtApi, Pointer } from "./api.ts";
import type { DeviceBuffer } from "./buffer.ts";
import type { Capture } from "./capture.ts";
import { type Pinned, pin, unpin } from "./cuda.ts";
import { ALIGNMENT_BYTES } from "./staging.ts";

type Given = Readonly<Record<string, Tensor | DeviceTensor>>;

export interface Bound {
  readonly feeds: Given;
  /** typed arrays in which the caller changes numbers between runs */
  readonly changing: Readonly<Record<string, Tensor>>;
  readonly outputs: Given;
}

/** The session as a binding sees it. Its OrtSession may be made anew. */
export interface BoundSession {
  readonly api: OrtApi;
  readonly inputNames: readonly string[];
  readonly outputNames: readonly string[];
  readonly address: Pointer;
  /** set on a GPU */
  readonly capture: Capture | undefined;
  readonly stageable: ReadonlySet<string>;
  /** Returns an OrtValue over the numbers of a tensor of this process. */
  wrap(tensor: Tensor): Pointer;
  reserve(length: number): DeviceBuffer;
  fault(cause: unknown): unknown;
  /** Runs the session as a CUDA graph, or without one if it cannot be captured. */
  captured(run: () => void): void;
  forget(binding: Binding): void;
}

const isHere = (value: Tensor | DeviceTensor): value is Tensor => !("address" in value);

export class Binding {
  readonly #session: BoundSession;
  /** native code has their addresses: they must not be collected */
  readonly held: Bound;
  /** OrtValues of inputs and of outputs by name */
  readonly #inputs: ReadonlyMap<string, Pointer>;
  readonly #outputs: ReadonlyMap<string, Pointer>;
  readonly #wrapped: Pointer[] = [];
  readonly #exchange: Exchange | undefined;
  /** identifies this binding's memory, and the numbers that a capture keeps */
  readonly #key: string;
  #binding: Pointer = 0n;

  constructor(session: BoundSession, held: Bound) {
    this.#session = session;
    this.held = held;
    const { inputNames, outputNames, capture } = session;
    const given = new Map(inputNames.map((name) => [name, found(name, held.changing[name] ?? held.feeds[name])]));
    const wanted = new Map(outputNames.map((name) => [name, found(name, held.outputs[name])]));
    const fixed = inputNames.find((name) => name in held.changing && !session.stageable.has(name));
    if (capture && fixed)
      throw new GraphError("feed", `bind: '${fixed}' is read in this process's memory and cannot change; feed it`);
    const results = Object.fromEntries([...wanted].filter((output): output is [string, Tensor] => isHere(output[1])));
    this.#exchange = capture && new Exchange(session, capture, held.changing, results);
    const ortValue = (value: Tensor | DeviceTensor): Pointer => {
      const placed = this.#exchange?.views.get(value as Tensor) ?? value;
      if ("address" in placed) return placed.address;
      this.#wrapped.push(session.wrap(placed));
      return this.#wrapped.at(-1)!;
    };
    this.#inputs = new Map([...given].map(([name, value]) => [name, ortValue(value)]));
    this.#outputs = new Map([...wanted].map(([name, value]) => [name, ortValue(value)]));
    this.#key = capture ? this.#keyOf([...given.values(), ...wanted.values()]) : "";
  }

  /** Returns a key of everything that a captured CUDA graph keeps: shapes, addresses, and the numbers in host memory. */
  #keyOf(values: readonly (Tensor | DeviceTensor)[]): string {
    const { api } = this.#session;
    const addresses = [...this.#inputs.values(), ...this.#outputs.values()];
    const at = addresses.map((value) => api.created((out) => api.GetTensorMutableData(value, out)));
    const known = values.map((value) =>
      isHere(value) && !this.#exchange!.views.has(value) ? value.data.join() : value.shape.join("x"),
    );
    return [...at, ...known].join();
  }

  /** Runs the session; the outputs are complete when it returns. */
  async run(): Promise<void> {
    const { api, capture } = this.#session;
    try {
      this.#exchange?.send();
      this.#session.captured(() => {
        const binding = this.#bound();
        if (capture && !capture.on) this.#sendAgain(binding);
        api.RunWithBinding(this.#session.address, capture?.options(this.#key) ?? null, binding);
      });
      this.#exchange?.receive();
    } catch (cause) {
      throw this.#session.fault(cause);
    }
  }

  /** The session's OrtSession is released. */
  unbind(): void {
    if (this.#binding) this.#session.api.ReleaseIoBinding(this.#binding);
    this.#binding = 0n;
  }

  release(): void {
    this.unbind();
    this.#session.forget(this);
    for (const value of this.#wrapped) this.#session.api.ReleaseValue(value);
    this.#wrapped.length = 0;
    this.#exchange?.release();
  }

  /** Without a CUDA graph nodes may be on the CPU: ONNX Runtime copies their inputs when they are bound. */
  #sendAgain(binding: Pointer): void {
    this.#session.capture!.stream.synchronise();
    for (const name of Object.keys(this.held.changing))
      this.#session.api.BindInput(binding, name, this.#inputs.get(name)!);
  }

  #bound(): Pointer {
    if (this.#binding) return this.#binding;
    const { api, address } = this.#session;
    this.#binding = api.created((out) => api.CreateIoBinding(address, out));
    for (const [name, value] of this.#inputs) api.BindInput(this.#binding, name, value);
    for (const [name, value] of this.#outputs) api.BindOutput(this.#binding, name, value);
    api.SynchronizeBoundInputs(this.#binding);
    return this.#binding;
  }
}

function found(name: string, value: Tensor | DeviceTensor | undefined): Tensor | DeviceTensor {
  if (value) return value;
  throw new GraphError("feed", `bind: '${name}' is missing`);
}

/** One piece of device memory for changing inputs and for results, and its twin in pinned memory: one copy there, one back. */
class Exchange {
  readonly views = new Map<Tensor, DeviceTensor>();
  readonly #capture: Capture;
  readonly #pinned: Pinned;
  readonly #buffer: DeviceBuffer;
  readonly #there: Pointer;
  readonly #places = new Map<Tensor, number>();
  readonly #changing: readonly Tensor[];
  readonly #results: readonly Tensor[];
  readonly #sent: [begin: number, bytes: number];
  readonly #received: [begin: number, bytes: number];

  constructor(
    { reserve }: BoundSession,
    capture: Capture,
    changing: Readonly<Record<string, Tensor>>,
    results: Readonly<Record<string, Tensor>>,
  ) {
    this.#capture = capture;
    [this.#changing, this.#results] = [Object.values(changing), Object.values(results)];
    let end = 0;
    const place = (tensors: readonly Tensor[]): [begin: number, bytes: number] => {
      const begin = aligned(end);
      for (const each of tensors) {
        this.#places.set(each, aligned(end));
        end = aligned(end) + each.data.byteLength;
      }
      return [begin, Math.max(0, end - begin)];
    };
    [this.#sent, this.#received] = [place(this.#changing), place(this.#results)];
    this.#buffer = reserve(Math.ceil(Math.max(1, end) / DTYPES.float32.bytes));
    for (const [each, offset] of this.#places)
      this.views.set(each, this.#buffer.viewOfBytes(offset, each.dtype, each.shape));
    this.#there = this.#buffer.addressOf(0);
    this.#pinned = pin(Math.max(1, end));
  }

  send(): void {
    for (const each of this.#changing) this.#pinned.bytes.set(bytesOf(each), this.#places.get(each)!);
    const [, bytes] = this.#sent;
    if (bytes > 0) this.#capture.stream.copy(this.#there, this.#pinned.address, bytes);
  }

  receive(): void {
    const [begin, bytes] = this.#received;
    const [to, from] = [this.#pinned.address + BigInt(begin), this.#there + BigInt(begin)];
    if (bytes > 0) this.#capture.stream.copy(to, from, bytes);
    this.#capture.stream.synchronise();
    for (const each of this.#results) {
      const place = this.#places.get(each)!;
      bytesOf(each).set(this.#pinned.bytes.subarray(place, place + each.data.byteLength));
    }
  }

  release(): void {
    unpin(this.#pinned);
    this.#buffer.release();
  }
}

const aligned = (bytes: number): number => Math.ceil(bytes / ALIGNMENT_BYTES) * ALIGNMENT_BYTES;

const bytesOf = ({ data }: Tensor): Uint8Array => new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
