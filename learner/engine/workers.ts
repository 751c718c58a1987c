/**
 * The engine's pool of equal workers, each a thread: one for each GPU, or one for each core or group of cores of a CPU. Matrices of a small
 * model are too small to be divided among threads, so each core takes whole micro-batches or whole rows of a generation: two workers on two
 * cores do 1.4 times the work of one. They also divide the loops over all weights of an optimiser step. The division of a step
 * depends on the batch alone: the same number of workers gives the same bits. GPUs exchange gradients and weights: exchange.ts.
 */

import { adamwScalars, clipScale, newMoments } from "./adamw.ts";
import type { Role } from "./adaptation.ts";
import { type Remote, WorkerThread } from "./calls.ts";
import { Dealing } from "./dealing.ts";
import type { EngineOptions, Step, StepResult } from "./engine.ts";
import type { EngineWorker, Feeds, GraphName, Outputs } from "./engine-worker.ts";
import type { EngineError } from "./errors.ts";
import { Exchange, type Stepping } from "./exchange.ts";
import { balanced, isResident, workerCount, workerThreads } from "./microbatches.ts";
import { DEFAULT_SLOTS, type GenerateOptions, type Listener, type Response } from "./model/generate.ts";
import type { Range } from "./model-memory.ts";
import type { ModelState } from "./model-state.ts";

/** 16 bytes, the most that one thread of a GPU reads at once. */
const ALIGNED_NUMBERS = 4;

type Calls = Remote<EngineWorker>;
type StepDone = Pick<StepResult, "gradientNorm" | "skipped">;

export type StartWorker = (options: EngineOptions, name: string, onFailure?: (failure: EngineError) => void) => Calls;

const startWorker: StartWorker = (options, name, onFailure) =>
  new WorkerThread<EngineWorker>(new URL("./worker.ts", import.meta.url), options, name, onFailure).calls;

export class Workers {
  readonly #workers: Calls[];
  /** weights, gradients and moments are in this process's memory */
  readonly #share: boolean;
  /** the newest weights and moments are in this process's memory */
  readonly #masters: boolean;
  /** present if several workers have a device each */
  readonly #exchange: Exchange | undefined;
  readonly #dealing: Dealing;
  /** Resolves when weights and moments in shared memory are no longer read: until then no step changes them. */
  reading: Promise<unknown> | undefined;
  /** calls of `attach` and `changed` that workers have not answered yet */
  readonly #attached: Promise<unknown>[] = [];
  #packs: Promise<boolean> | undefined;

  /** @param onFailure called if a worker has failed or ended by itself: it takes no more calls */
  constructor(options: EngineOptions, onFailure?: (failure: EngineError) => void, start = startWorker) {
    const size = workerCount(options);
    this.#share = !isResident(options);
    this.#masters = this.#share || (options.offloads ?? false);
    const slots = Math.ceil((options.slots ?? DEFAULT_SLOTS) / size);
    const { device, devices } = options;
    this.#workers = Array.from({ length: size }, (_, i) => {
      const own = { ...options, device: devices?.[i] ?? device, threads: workerThreads(options, size), slots };
      return start(own, `worker ${i + 1} of the engine`, onFailure);
    });
    this.#exchange = size > 1 && !this.#share ? new Exchange() : undefined;
    this.#dealing = new Dealing(this.#workers, slots);
  }

  get size(): number {
    return this.#workers.length;
  }

  /** Shares these weights, and their later changes, with all workers. */
  attach(role: Role, { weights }: ModelState): void {
    this.#broadcast((worker) => worker.attach(role, weights.data));
  }

  /** Call it after this thread has written weights and moments of a role. */
  changed(role: Role): void {
    this.#broadcast((worker) => worker.changed(role));
  }

  /** Waits until every worker has started and has all weights. @throws the first error of a worker */
  async ready(): Promise<void> {
    await Promise.all(this.#attached.splice(0));
  }

  /** Returns whether rows stand one after the other in the graphs of every worker. */
  packs(): Promise<boolean> {
    this.#packs ??= this.ready()
      .then(() => Promise.all(this.#workers.map((worker) => worker.packs())))
      .then((each) => each.every((packs) => packs));
    return this.#packs;
  }

  /** Copies the newest weights and moments of a role into shared memory if they are trained on a device. */
  async fetch(role: Role, model: ModelState): Promise<void> {
    await this.ready();
    if (this.#masters) return;
    if (model.steps > 0) model.moments ??= newMoments(model.weights.data.length);
    await this.#ofNumbers(model, (worker, range) => worker.fetch(role, range, model.moments));
  }

  /** Returns the outputs of a graph that does not train, by micro-batch. */
  async evaluate(name: GraphName, microBatches: Feeds[]): Promise<Outputs[]> {
    return (await this.#run(name, microBatches)).outputs;
  }

  /**
   * An optimiser step of the model that `name` trains, over all micro-batches: the gradient is clipped, and one that is not finite
   * changes nothing. @returns the graph's outputs for each micro-batch, too
   */
  async step(
    name: GraphName,
    role: Role,
    model: ModelState,
    microBatches: Feeds[],
    { learningRate, gradientClip, adam }: Step,
  ): Promise<{ outputs: Outputs[]; done: StepDone }> {
    const { outputs, gradients, ran } = await this.#run(name, microBatches);
    model.gradient = gradients[0] && model.weights.over(gradients[0]);
    if (microBatches.length === 0) return { outputs, done: { gradientNorm: 0, skipped: true } };
    const size = model.weights.data.length;
    if (this.#exchange) {
      const sum = await this.#exchange.gradient(role, size, ran, this.#stepping(model), model.moments);
      model.gradient = model.weights.over(sum);
    }
    const squares = await this.#ofNumbers(model, (worker, range) => worker.squares(role, range, gradients));
    const gradientNorm = Math.sqrt(squares.reduce((total, each) => total + each, 0));
    if (!Number.isFinite(gradientNorm)) return { outputs, done: { gradientNorm, skipped: true } };
    await this.reading;
    if (this.#masters) model.moments ??= newMoments(size);
    const scale = clipScale(gradientNorm, gradientClip);
    const scalars = adamwScalars(model.steps + 1, { ...adam, learningRate, scale });
    const shared = { gradient: gradients[0], moments: model.moments };
    await this.#ofNumbers(model, (worker, range) => worker.adamw(role, range, scalars, shared));
    await this.#exchange?.weights(role, this.#stepping(model));
    model.steps++;
    return { outputs, done: { gradientNorm, skipped: false } };
  }

  /** Gives prompts to the workers with the fewest rows. Equal prompts stay together, so that few workers compute the same prompt. */
  async generate(
    role: Role,
    prompts: Int32Array[],
    options: GenerateOptions,
    listener?: Listener,
  ): Promise<Response[]> {
    await this.ready();
    return this.#dealing.generate(role, prompts, options, listener);
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.close()));
  }

  #broadcast(what: (worker: Calls) => Promise<void>): void {
    for (const worker of this.#workers) {
      const told = what(worker);
      told.catch(() => {}); // `ready` throws it
      this.#attached.push(told);
    }
  }

  /** Returns outputs by micro-batch, the sums of gradients in shared memory, and the workers that computed a gradient. */
  async #run(name: GraphName, microBatches: Feeds[]) {
    const sizes = microBatches.map(({ ids }) => ids.data.length);
    const parts = balanced(sizes, this.size);
    const found = await this.#each(parts, (worker, part) => {
      const own = part.map((i) => microBatches[i]);
      return worker.run(name, own);
    });
    const outputs = found.map((done) => done?.outputs);
    const ran = this.#workers.filter((_, i) => parts[i].length > 0);
    return { outputs: inOrder(parts, outputs), gradients: found.flatMap((done) => done?.gradient ?? []), ran };
  }

  /** Divides a model's numbers equally among the workers. @returns the workers' results, in the numbers' order */
  async #ofNumbers<T>(model: ModelState, work: (worker: Calls, range: Range) => Promise<T>): Promise<T[]> {
    return Promise.all(this.#stepping(model).map(({ worker, range }) => work(worker, range)));
  }

  /** The part of a model's numbers that each worker steps; each begins where a GPU can read several numbers at once. */
  #stepping({ weights }: ModelState): Stepping<Calls>[] {
    const border = (i: number) => {
      const end = Math.floor((i * weights.data.length) / this.size);
      return i < this.size ? end - (end % ALIGNED_NUMBERS) : end;
    };
    return this.#workers.map((worker, i) => ({ worker, range: { from: border(i), to: border(i + 1) } }));
  }

  /** Skips workers without a part. */
  async #each<T>(parts: number[][], work: (worker: Calls, part: number[]) => Promise<T>): Promise<(T | undefined)[]> {
    await this.ready();
    return Promise.all(
      this.#workers.map(async (worker, i) => (parts[i].length > 0 ? work(worker, parts[i]) : undefined)),
    );
  }
}

/** Returns the workers' results in the order of the indices: `found[worker][i]` goes to index `parts[worker][i]`. */
function inOrder<T>(parts: number[][], found: (T[] | undefined)[]): T[] {
  const all: T[] = [];
  for (const [worker, part] of parts.entries())
    for (const [i, index] of part.entries()) all[index] = found[worker]![i]!;
  return all;
}
