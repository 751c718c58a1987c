/**
 * Data parallelism over the cores of a CPU. Matrices of a small model are too small to be divided among threads, so that
 * each core takes whole micro-batches, or whole rows of a generation, instead: 2 of 2 cores do 1.4 times the work.
 *
 * Rank 0 works in the calling thread, the others in worker threads, all on the same weights in shared memory. Who does what
 * and the order in which gradients are summed depend on the batch alone, so that the same number of ranks gives the same bits.
 */
import { Worker } from "node:worker_threads";
import type { OnDevice } from "../graph/session.ts";
import type { GenerateOptions, Response } from "../model/generate.ts";
import type { Adaptation, Role } from "./adaptation.ts";
import { Caller } from "./calls.ts";
import type { EngineOptions } from "./engine.ts";
import { balanced, evenParts, rankThreads } from "./microbatches.ts";
import { type Done, type Feeds, type GraphName, type Outputs, Rank } from "./rank.ts";
import type { Trainable } from "./trainable.ts";

export class DataParallel {
  readonly #own: Rank;
  readonly #others: Caller[];
  /** weights that are on their way to the others */
  readonly #shared: Promise<unknown>[] = [];

  /** @param size ranks. @throws EngineError for options that cannot be used */
  constructor(options: EngineOptions, model: Adaptation, size: number, onDevice?: OnDevice) {
    const rank = { ...options, threads: rankThreads(options, size) };
    this.#own = new Rank(rank, model, onDevice);
    this.#others = Array.from({ length: size - 1 }, (_, i) => {
      const worker = new Worker(new URL("./rank-worker.ts", import.meta.url), { workerData: rank });
      return new Caller(worker, `rank ${i + 1} of the engine`);
    });
  }

  get size(): number {
    return 1 + this.#others.length;
  }

  /** All ranks use these weights from now on, and see how they change. */
  attach(role: Role, trainable: Trainable): void {
    this.#own.attach(role, trainable);
    for (const rank of this.#others) {
      const shared = rank.call("share", role, trainable.weights.data);
      shared.catch(() => {}); // it is thrown by what needs it
      this.#shared.push(shared);
    }
  }

  /** The others have begun and see the weights. */
  async ready(): Promise<void> {
    await Promise.all(this.#shared.splice(0));
  }

  /** Outputs of a graph that does not train, by micro-batch. */
  async evaluate(name: GraphName, microBatches: Feeds[]): Promise<Outputs[]> {
    const { outputs } = await this.#run(name, microBatches);
    return outputs;
  }

  /** Outputs of a step's graph by micro-batch; the gradient of `trainable` is that of all of them. */
  async step(name: GraphName, trainable: Trainable, microBatches: Feeds[]): Promise<Outputs[]> {
    const { outputs, gradients } = await this.#run(name, microBatches);
    for (const gradient of gradients) trainable.add(gradient);
    return outputs;
  }

  /** Solutions of equal prompts stay together, so that a prompt is read by as few ranks as possible. */
  async generate(role: Role, prompts: Int32Array[], options: GenerateOptions): Promise<Response[]> {
    const parts = evenParts(prompts, this.size);
    const found = await this.#each(parts, (rank, part) => {
      const seeds = part.map((i) => options.seeds[i]!);
      const own = part.map((i) => prompts[i]!);
      return rank === this.#own
        ? this.#own.generate(role, own, { ...options, seeds })
        : ((rank as Caller).call("generate", role, own, { ...options, seeds }) as Promise<Response[]>);
    });
    return inOrder(parts, found);
  }

  async close(): Promise<void> {
    await Promise.all([this.#own.close(), ...this.#others.map((rank) => rank.call("close"))]);
  }

  async #run(name: GraphName, microBatches: Feeds[]): Promise<{ outputs: Outputs[]; gradients: Float32Array[] }> {
    const parts = balanced(
      microBatches.map(({ ids }) => ids!.data.length),
      this.size,
    );
    const found = await this.#each(parts, (rank, part) => {
      const own = part.map((i) => microBatches[i]!);
      return rank === this.#own ? this.#own.run(name, own) : ((rank as Caller).call("run", name, own) as Promise<Done>);
    });
    const [, ...others] = found;
    return {
      outputs: inOrder(
        parts,
        found.map((done) => done?.outputs),
      ),
      gradients: others.flatMap((done) => done?.gradient ?? []),
    };
  }

  /** The other threads have their work before this one begins with its own. Nothing is asked of a rank without a part. */
  async #each<T>(
    parts: number[][],
    work: (rank: Rank | Caller, part: number[]) => Promise<T>,
  ): Promise<(T | undefined)[]> {
    await this.ready();
    const others = this.#others.map((rank, i) => (parts[i + 1]!.length > 0 ? work(rank, parts[i + 1]!) : undefined));
    return Promise.all([work(this.#own, parts[0]!), ...others]);
  }
}

/** What belongs to index `parts[rank][i]` is `found[rank][i]`. */
function inOrder<T>(parts: number[][], found: (T[] | undefined)[]): T[] {
  const all: T[] = [];
  for (const [rank, part] of parts.entries()) for (const [i, index] of part.entries()) all[index] = found[rank]![i]!;
  return all;
}
