/**
 * The engine's pool of equal workers, each a thread: one for a GPU, or one for each core or group of cores of a CPU. Matrices of a small
 * model are too small to be divided among threads, so that each core takes whole micro-batches or whole rows of a generation: two workers
 * on two cores do 1.4 times the work of one. They also divide the loops over all weights of an optimiser step. Who does what depends on
 * the batch alone: the same number of workers gives the same bits.
 */

import { adamwScalars, clipScale, newMoments } from "./adamw.ts";
import type { Role } from "./adaptation.ts";
import { type Remote, WorkerThread } from "./calls.ts";
import type { EngineOptions, Step, StepResult } from "./engine.ts";
import type { EngineWorker, Feeds, GraphName, Outputs } from "./engine-worker.ts";
import type { EngineError } from "./errors.ts";
import { balanced, dealtPrompts, isResident, workerCount, workerThreads } from "./microbatches.ts";
import { DEFAULT_SLOTS, type GenerateOptions, type Listener, type Response } from "./model/generate.ts";
import type { Range } from "./model-memory.ts";
import type { ModelState } from "./model-state.ts";

type Calls = Remote<EngineWorker>;
export type StepDone = Pick<StepResult, "gradientNorm" | "skipped">;

export type StartWorker = (options: EngineOptions, name: string, onFailure?: (failure: EngineError) => void) => Calls;

const startWorker: StartWorker = (options, name, onFailure) =>
  new WorkerThread<EngineWorker>(new URL("./worker.ts", import.meta.url), options, name, onFailure).calls;

export class Workers {
  readonly #workers: Calls[];
  /** weights, gradients and moments are in this process's memory */
  readonly #share: boolean;
  /** rows that each worker generates */
  readonly #rows: number[];
  /** calls of `attach` and `changed` that workers have not answered yet */
  readonly #attached: Promise<unknown>[] = [];

  /** @param onFailure called where a worker has failed or ended by itself: nothing more can be asked of it */
  constructor(options: EngineOptions, onFailure?: (failure: EngineError) => void, start = startWorker) {
    const size = workerCount(options);
    this.#share = !isResident(options);
    const slots = Math.ceil((options.slots ?? DEFAULT_SLOTS) / size);
    const own = { ...options, threads: workerThreads(options, size), slots };
    this.#rows = new Array(size).fill(0);
    this.#workers = Array.from({ length: size }, (_, i) => start(own, `worker ${i + 1} of the engine`, onFailure));
  }

  get size(): number {
    return this.#workers.length;
  }

  /** All workers use these weights from now on, and see how they change. */
  attach(role: Role, { weights }: ModelState): void {
    this.#tell((worker) => worker.attach(role, weights.data));
  }

  /** This thread has written weights and moments of a role. */
  changed(role: Role): void {
    this.#tell((worker) => worker.changed(role));
  }

  /** Waits until every worker has started and has all weights. @throws the first error of a worker */
  async ready(): Promise<void> {
    await Promise.all(this.#attached.splice(0));
  }

  /** Copies the newest weights and moments of a role into shared memory, where they are trained on a device. */
  async fetch(role: Role, model: ModelState): Promise<void> {
    await this.ready();
    if (this.#share) return;
    if (model.steps > 0) model.moments ??= newMoments(model.weights.data.length);
    await this.#workers[0].fetch(role, model.moments);
  }

  /** Outputs of a graph that does not train, by micro-batch. */
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
    const { outputs, gradients } = await this.#run(name, microBatches);
    model.gradient = gradients[0] && model.weights.over(gradients[0]);
    if (microBatches.length === 0) return { outputs, done: { gradientNorm: 0, skipped: true } };
    const size = model.weights.data.length;
    const squares = await this.#ofNumbers(size, (worker, range) => worker.squares(role, range, gradients));
    const gradientNorm = Math.sqrt(squares.reduce((total, each) => total + each, 0));
    if (!Number.isFinite(gradientNorm)) return { outputs, done: { gradientNorm, skipped: true } };
    if (this.#share) model.moments ??= newMoments(size);
    const scale = clipScale(gradientNorm, gradientClip);
    const scalars = adamwScalars(model.steps + 1, { ...adam, learningRate, scale });
    const shared = { gradient: gradients[0], moments: model.moments };
    await this.#ofNumbers(size, (worker, range) => worker.adamw(role, range, scalars, shared));
    model.steps++;
    return { outputs, done: { gradientNorm, skipped: false } };
  }

  /** Prompts go to the workers that have the fewest. Equal ones stay together, so that a prompt is read by as few workers as possible. */
  async generate(
    role: Role,
    prompts: Int32Array[],
    options: GenerateOptions,
    listener?: Listener,
  ): Promise<Response[]> {
    await this.ready();
    const parts = dealtPrompts(prompts, this.#rows);
    for (const [worker, { length }] of parts.entries()) this.#rows[worker] += length;
    const found = await this.#each(parts, async (worker, part) => {
      const seeds = part.map((i) => options.seeds[i]);
      const own = part.map((i) => prompts[i]);
      const told: [Listener?] = listener ? [(i, response) => listener(part[i], response)] : [];
      return worker.generate(role, own, { ...options, seeds }, ...told).finally(() => {
        this.#rows[this.#workers.indexOf(worker)] -= part.length;
      });
    });
    return inOrder(parts, found);
  }

  async close(): Promise<void> {
    await Promise.all(this.#workers.map((worker) => worker.close()));
  }

  #tell(what: (worker: Calls) => Promise<void>): void {
    for (const worker of this.#workers) {
      const told = what(worker);
      told.catch(() => {}); // `ready` throws it
      this.#attached.push(told);
    }
  }

  async #run(name: GraphName, microBatches: Feeds[]): Promise<{ outputs: Outputs[]; gradients: Float32Array[] }> {
    const sizes = microBatches.map(({ ids }) => ids.data.length);
    const parts = balanced(sizes, this.size);
    const found = await this.#each(parts, (worker, part) => {
      const own = part.map((i) => microBatches[i]);
      return worker.run(name, own);
    });
    const outputs = found.map((done) => done?.outputs);
    return { outputs: inOrder(parts, outputs), gradients: found.flatMap((done) => done?.gradient ?? []) };
  }

  /** Each worker does as large a part of `size` numbers; what they return, in the numbers' order. */
  async #ofNumbers<T>(size: number, work: (worker: Calls, range: Range) => Promise<T>): Promise<T[]> {
    const border = (i: number) => Math.floor((i * size) / this.size);
    return Promise.all(this.#workers.map((worker, i) => work(worker, { from: border(i), to: border(i + 1) })));
  }

  /** Nothing is asked of a worker without a part. */
  async #each<T>(parts: number[][], work: (worker: Calls, part: number[]) => Promise<T>): Promise<(T | undefined)[]> {
    await this.ready();
    return Promise.all(
      this.#workers.map(async (worker, i) => (parts[i].length > 0 ? work(worker, parts[i]) : undefined)),
    );
  }
}

/** What belongs to index `parts[worker][i]` is `found[worker][i]`. */
function inOrder<T>(parts: number[][], found: (T[] | undefined)[]): T[] {
  const all: T[] = [];
  for (const [worker, part] of parts.entries())
    for (const [i, index] of part.entries()) all[index] = found[worker]![i]!;
  return all;
}
