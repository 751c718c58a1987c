import { setTimeout as sleep } from "node:timers/promises";
import type { Listener, Response } from "../../learner/engine/index.ts";
import { uniforms } from "../../learner/engine/model/random.ts";
import type { BenchEngine } from "./overlap-run.ts";

/** Simulated seconds that pass in one second. */
export const SCALE = 60;

/** Settings of a simulated engine: seconds, slots and tokens. */
export interface EngineTimes {
  slots: number;
  tokenSeconds: number;
  shortestTokens: number;
  longestTokens: number;
  updateSeconds: number;
}

/** An engine whose rows and updates only take time. */
export class SimulatedEngine implements BenchEngine {
  readonly #times: EngineTimes;
  #free: number;
  readonly #waiting: (() => void)[] = [];
  #open = 0;
  #busySince = 0;
  /** Seconds of the machine's clock since `count`; slot-seconds with a row. */
  busySeconds = 0;
  rowSeconds = 0;
  generatingSeconds = 0;

  constructor(times: EngineTimes) {
    this.#times = times;
    this.#free = times.slots;
  }

  count(): void {
    this.busySeconds = this.rowSeconds = this.generatingSeconds = 0;
    this.#busySince = performance.now();
  }

  async generate(prompts: Int32Array[], options: { readonly seeds: readonly number[] }, listener?: Listener) {
    if (this.#open++ === 0) this.#busySince = performance.now();
    const responses = await Promise.all(
      prompts.map(async (_, i): Promise<Response> => {
        if (this.#free > 0) this.#free--;
        else await new Promise<void>((resolve) => this.#waiting.push(resolve));
        const { shortestTokens, longestTokens, tokenSeconds } = this.#times;
        const share = uniforms(options.seeds[i]!, "bench", "tokens")();
        const tokens = Math.round(shortestTokens + share * (longestTokens - shortestTokens));
        const from = performance.now();
        await sleep((1000 * tokens * tokenSeconds) / SCALE);
        this.rowSeconds += (performance.now() - from) / 1000;
        const next = this.#waiting.shift();
        if (next) next();
        else this.#free++;
        const response = { response: Int32Array.of(1), logProbs: Float32Array.of(-1), finished: true };
        listener?.(i, { ...response, ended: true });
        return response;
      }),
    );
    if (--this.#open === 0) {
      const seconds = (performance.now() - this.#busySince) / 1000;
      this.busySeconds += seconds;
      this.generatingSeconds += seconds;
    }
    return responses;
  }

  async update(): Promise<void> {
    const from = performance.now();
    await sleep((1000 * this.#times.updateSeconds) / SCALE);
    this.busySeconds += (performance.now() - from) / 1000;
  }
}
