/**
 * Runs of a session as CUDA graphs. ONNX Runtime records the GPU work of a binding's first run, and each later run is one launch
 * of that record, which reads and writes the same addresses.
 */
import type { OrtApi, Pointer } from "./api.ts";
import { CudaStream } from "./cuda.ts";
import { notice } from "./notices.ts";

/** `off`: runs are not captured, for measurements and to find faults. */
export const CUDA_GRAPHS = "LONGRUN_CUDA_GRAPHS";
/** ONNX Runtime frees captured graphs only with their session: a session with so many is made anew. */
export const MOST_GRAPHS = 128;
const NOT_CAPTURED = "-1"; // kCudaGraphAnnotationSkip

export class Capture {
  readonly stream: CudaStream;
  readonly #api: OrtApi;
  readonly #name: string;
  /** graphs by their binding */
  readonly #options = new Map<string, Pointer>();
  #on = true;

  /** @param name the graph's name in the log */
  constructor(api: OrtApi, device: number, name: string) {
    this.#api = api;
    this.#name = name;
    this.stream = new CudaStream(device);
    if (process.env[CUDA_GRAPHS] === "off") this.stop(`${CUDA_GRAPHS} is off`);
  }

  get on(): boolean {
    return this.#on;
  }

  get full(): boolean {
    return this.#options.size >= MOST_GRAPHS;
  }

  /** Runs are not captured from now on. */
  stop(reason: string): void {
    this.#on = false;
    const said = /CUDA failure \d+: [^;\n]+/.exec(reason)?.[0] ?? reason.split("\n")[0]!;
    notice(`'${this.#name}' is not captured as a CUDA graph, and takes longer: ${said.trim()}`);
  }

  /** Runs `act` without capture. Later runs are captured again only if it throws. */
  without(act: () => void): void {
    this.#on = false;
    try {
      act();
    } catch (cause) {
      this.#on = true;
      throw cause;
    }
  }

  /** The CUDA provider's options for a session. */
  get entries(): Record<string, string> {
    const stream = { has_user_compute_stream: "1", user_compute_stream: String(this.stream.address) };
    return this.#on ? { ...stream, enable_cuda_graph: "1" } : stream;
  }

  /** OrtRunOptions of a run that does not wait for the GPU. @param bound identifies the run's memory */
  options(bound: string): Pointer {
    if (!this.#on) return this.uncaptured;
    const entries = { gpu_graph_id: String(1 + this.#options.size), disable_synchronize_execution_providers: "1" };
    return this.#known(bound, entries);
  }

  /** OrtRunOptions of a run that waits, and is not captured. */
  get uncaptured(): Pointer {
    return this.#known("", { gpu_graph_id: NOT_CAPTURED });
  }

  /** Call it after the session was released, which freed all captured graphs. */
  forget(): void {
    for (const options of this.#options.values()) this.#api.ReleaseRunOptions(options);
    this.#options.clear();
  }

  release(): void {
    this.forget();
    this.stream.release();
  }

  #known(key: string, entries: Record<string, string>): Pointer {
    const known = this.#options.get(key);
    if (known) return known;
    const options = this.#api.created((out) => this.#api.CreateRunOptions(out));
    for (const [name, value] of Object.entries(entries)) this.#api.AddRunConfigEntry(options, name, value);
    this.#options.set(key, options);
    return options;
  }
}
