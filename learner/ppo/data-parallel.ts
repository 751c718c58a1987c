/**
 * Data parallelism over the cores of a CPU. Matrices of a small model are too small to be divided among threads, so that
 * each core takes whole micro-batches, or whole rows of a generation, instead: 2 of 2 cores do 1.4 times the work.
 *
 * Rank 0 works in the calling thread, the others in worker threads, all on the same weights in shared memory. They also divide
 * the loops over all weights of an optimiser step. Who does what and the order in which gradients are summed depend on the
 * batch alone, so that the same number of ranks gives the same bits.
 */
import { Worker } from "node:worker_threads";
import type { OnDevice } from "../graph/session.ts";
import type { GenerateOptions, Response } from "../model/generate.ts";
import type { AdamWNumbers, AdamWScalars } from "./adamw.ts";
import type { Adaptation, Role } from "./adaptation.ts";
import { Caller } from "./calls.ts";
import type { EngineOptions, Step } from "./engine.ts";
import { balanced, evenParts, rankThreads } from "./microbatches.ts";
import { type Feeds, type GraphName, type Outputs, Rank } from "./rank.ts";
import type { Loops, StepDone, Trainable } from "./trainable.ts";

type AnyRank = Rank | Caller;
/** A rank's work on its part of a model's numbers. */
type Part<T> = (rank: AnyRank, part: (numbers: Float32Array) => Float32Array) => Promise<T>;

export class DataParallel implements Loops {
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

  /** An optimiser step of what `name` trains, over all micro-batches, and the graph's outputs for each. */
  async step(
    name: GraphName,
    trainable: Trainable,
    microBatches: Feeds[],
    o: Step,
  ): Promise<{ outputs: Outputs[]; done: StepDone }> {
    const {
      outputs,
      gradients: [total, ...others],
    } = await this.#run(name, microBatches);
    if (!total || others.length === 0) return { outputs, done: await trainable.step(o, this) };
    const add: Part<number> = (rank, part) => this.#ask(rank, "add", part(total), others.map(part));
    const squares = sum(await this.#ofNumbers(total.length, add));
    const adamw: Loops["adamw"] = (numbers, scalars) => this.adamw(numbers, scalars);
    return { outputs, done: await trainable.step(o, { squares: () => squares, adamw }) };
  }

  /** The sum of the squares of numbers in shared memory, in float64. */
  async squares(numbers: Float32Array): Promise<number> {
    return sum(await this.#ofNumbers(numbers.length, (rank, part) => this.#ask(rank, "squares", part(numbers))));
  }

  /** The loop of an AdamW step on numbers in shared memory. */
  async adamw({ weights, gradient, first, second }: AdamWNumbers, scalars: AdamWScalars): Promise<void> {
    await this.#ofNumbers(weights.length, (rank, part) => {
      const own = { weights: part(weights), gradient: part(gradient), first: part(first), second: part(second) };
      return this.#ask(rank, "adamw", own, scalars);
    });
  }

  /** Solutions of equal prompts stay together, so that a prompt is read by as few ranks as possible. */
  async generate(role: Role, prompts: Int32Array[], options: GenerateOptions): Promise<Response[]> {
    const parts = evenParts(prompts, this.size);
    const found = await this.#each(parts, (rank, part) => {
      const seeds = part.map((i) => options.seeds[i]!);
      const own = part.map((i) => prompts[i]!);
      return this.#ask(rank, "generate", role, own, { ...options, seeds });
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
    const found = await this.#each(parts, (rank, part) =>
      this.#ask(
        rank,
        "run",
        name,
        part.map((i) => microBatches[i]!),
      ),
    );
    return {
      outputs: inOrder(
        parts,
        found.map((done) => done?.outputs),
      ),
      gradients: found.flatMap((done) => done?.gradient ?? []),
    };
  }

  /** Each rank does as large a part of `size` numbers; what they return, in the numbers' order. */
  async #ofNumbers<T>(size: number, work: Part<T>): Promise<T[]> {
    const ranges = Array.from({ length: this.size }, (_, rank) =>
      [rank, rank + 1].map((n) => Math.floor((n * size) / this.size)),
    );
    const found = await this.#each(ranges, (rank, [from, to]) => work(rank, (numbers) => numbers.subarray(from, to)));
    return found as T[];
  }

  async #ask<M extends "generate" | "run" | "add" | "squares" | "adamw">(
    rank: AnyRank,
    method: M,
    ...parameters: Parameters<Rank[M]>
  ): Promise<Awaited<ReturnType<Rank[M]>>> {
    if (rank instanceof Caller) return (await rank.call(method, ...parameters)) as Awaited<ReturnType<Rank[M]>>;
    const own = rank as unknown as Record<M, (...p: Parameters<Rank[M]>) => unknown>;
    return (await own[method](...parameters)) as Awaited<ReturnType<Rank[M]>>;
  }

  /** The other threads have their work before this one begins with its own. Nothing is asked of a rank without a part. */
  async #each<T>(parts: number[][], work: (rank: AnyRank, part: number[]) => Promise<T>): Promise<(T | undefined)[]> {
    await this.ready();
    const others = this.#others.map((rank, i) => (parts[i + 1]!.length > 0 ? work(rank, parts[i + 1]!) : undefined));
    return Promise.all([work(this.#own, parts[0]!), ...others]);
  }
}

const sum = (numbers: readonly number[]) => numbers.reduce((total, each) => total + each, 0);

/** What belongs to index `parts[rank][i]` is `found[rank][i]`. */
function inOrder<T>(parts: number[][], found: (T[] | undefined)[]): T[] {
  const all: T[] = [];
  for (const [rank, part] of parts.entries()) for (const [i, index] of part.entries()) all[index] = found[rank]![i]!;
  return all;
}
