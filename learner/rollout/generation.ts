import { setImmediate as nextTurn } from "node:timers/promises";
import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import { type Engine, instrumenterShape, seedFor } from "../engine/index.ts";
import { samplesPerPrompt } from "../rl/groups.ts";
import type { NewSample } from "../store/types.ts";
import { type Row, type Source, sampleId, sampleOf, type Written, type WrittenResponse } from "./drawn.ts";
import { instrumentAll, instrumenterLengths } from "./instrument-policy.ts";
import { type Launched, nothingLaunched } from "./launched.ts";
import { wholeAnswer } from "./prompt-encoder.ts";
import type { EncodeChat } from "./prompts.ts";
import { parseSolution } from "./solution.ts";
import { mapInTurns } from "./turns.ts";

/**
 * Rows that are begun beyond `model.generationBatchSize`. They wait inside the engine, so that a slot that becomes free has
 * its next row at once; until they have begun too, the main thread has time to draw prompts.
 */
const LOOK_AHEAD_ROWS = 8;

/** Time for which ended rows are read before one commit stores them, because a commit waits for the disk. */
const READING_MILLISECONDS = 10;

/** The run's generators, which write responses in the engine's place. */
export interface Writers {
  /** Rows that they generate side by side. */
  readonly slots: number;
  /** Like `Engine.generate`; each response says which policy version wrote it. */
  generate(
    prompts: readonly Int32Array[],
    options: Pick<GenerateOptions, "seeds" | "temperature" | "topP" | "maxNewTokens">,
    listener?: (index: number, response: WrittenResponse) => void,
  ): Promise<WrittenResponse[]>;
}

type GenerateOptions = Parameters<Engine["generate"]>[1];
export interface GenerationOptions {
  engine: Pick<Engine, "generate">;
  /** Absent if the engine writes. */
  writers?: Writers | undefined;
  store: { readonly lineage: number };
  /** Stores samples and queues their executions. */
  addSamples: (samples: readonly NewSample[]) => Promise<void>;
  spec: TrainingRunSpec;
  encode: EncodeChat;
  /** Response tokens to text, special tokens left out. */
  decode: (tokens: Int32Array) => string;
}

/**
 * Prompts of one policy version that are generated side by side. A row whose response has ended is read, instrumented and
 * stored at once, and its execution queued, while other rows continue.
 *
 * With `instrumenter: StaticPolicy` rows are generated in turns instead. The engine runs the policy or its frozen copy, never both. All
 * rows of a turn end, the copy instruments their programs together, and the next turn begins when they are stored.
 */
export class Generation {
  readonly #o: GenerationOptions;
  #source: Source;
  readonly #nextNumbers: (count: number) => number;
  /** Samples that are begun and not stored yet, of each group, by its id; and the policy version that it was begun with. */
  readonly underway = new Map<string, { left: number; iteration: number }>();
  /** Counts of samples stored since `takeLaunched`. */
  launched = nothingLaunched();
  /** Number of samples that were begun, stored or not, without the samples that `takeLaunched` returned. */
  begun = 0;
  readonly #ended: (Row & WrittenResponse)[] = [];
  #reading = false;
  readonly #work = new Set<Promise<void>>();
  #change = newChange();
  #failure: { cause: unknown } | undefined;

  /** @param nextNumbers reserves this many sample numbers for good. @returns the first */
  constructor(o: GenerationOptions, source: Source, nextNumbers: (count: number) => number) {
    this.#o = o;
    this.#source = source;
    this.#nextNumbers = nextNumbers;
  }

  /** Returns the number of prompts that may be begun now. */
  get room(): number {
    const { generationBatchSize } = this.#o.spec.model;
    const { perPrompt } = this.#source;
    const rows = this.begun - this.launched.samples;
    if (this.#failure) return 0;
    if (this.#inTurns) return rows > 0 ? 0 : Math.floor(generationBatchSize / perPrompt);
    if (this.#o.writers) return Math.ceil(this.rowsToWriteAhead / perPrompt);
    return Math.max(0, Math.ceil((generationBatchSize + LOOK_AHEAD_ROWS - rows) / perPrompt));
  }

  /** Rows that generators can have beside the begun ones: rows that fill their slots, and a batch that waits while the learner trains. */
  get rowsToWriteAhead(): number {
    const { spec, writers } = this.#o;
    const slots = Math.max(writers?.slots ?? 0, spec.model.generationBatchSize);
    return Math.max(0, slots + spec.algorithm.batchSize - (this.begun - this.launched.samples));
  }

  /** Starts further samples with another policy version. Generations under way continue; the writer of a row reports its version. */
  goOn(source: Source): void {
    this.#source = source;
  }

  /** Returns the samples that were stored since the last call. */
  takeLaunched(): Launched {
    const { launched } = this;
    this.begun -= launched.samples;
    this.launched = nothingLaunched();
    return launched;
  }

  /** Whether a sample is begun and not stored yet, or `changed` will throw an error. */
  get isUnderWay(): boolean {
    return this.underway.size > 0 || this.#failure !== undefined;
  }

  get #inTurns(): boolean {
    return this.#o.spec.model.instrumenter === "StaticPolicy";
  }

  /** Begins this many prompts, in the background. Errors come from `changed` and `end`. */
  begin(prompts: number): void {
    if (prompts === 0) return;
    const { perPrompt, iteration } = this.#source;
    const count = prompts * perPrompt;
    const from = this.#nextNumbers(count);
    const numbers = Array.from({ length: count }, (_, i) => from + i);
    for (let first = from; first < from + count; first += perPrompt)
      this.underway.set(sampleId(first), { left: perPrompt, iteration });
    this.begun += count;
    this.#inBackground(this.#generate(numbers));
  }

  /** Resolves when further samples have been stored. @throws the first error of a begun sample */
  async changed(): Promise<void> {
    await this.#change.promise;
  }

  /** Resolves when all samples that were begun are stored. @throws the first error of a begun sample */
  async end(): Promise<void> {
    while (this.#work.size > 0) await Promise.all(this.#work);
    if (this.#failure) throw this.#failure.cause;
  }

  #inBackground(work: Promise<void>): void {
    const done = work
      .catch((cause: unknown) => {
        this.#failure ??= { cause };
        this.#change.reject(this.#failure.cause);
      })
      .finally(() => this.#work.delete(done));
    this.#work.add(done);
  }

  async #generate(numbers: number[]): Promise<void> {
    const { engine, writers = engine, spec } = this.#o;
    const source = this.#source;
    const { draw, nameOf, perPrompt } = source;
    const leading = numbers.filter((_, i) => i % perPrompt === 0);
    const drawn = await mapInTurns(leading, draw);
    for (const { improvement, debugging } of drawn) {
      if (improvement) this.launched.improvePrompts[improvement]++;
      if (debugging) this.launched.debugPrompts[debugging]++;
    }
    const rows = numbers.map((number, i): Row => {
      const group = Math.floor(i / perPrompt);
      return { source, number, first: leading[group], ...drawn[group] };
    });
    const responses: WrittenResponse[] = await writers.generate(
      rows.map(({ prompt }) => prompt.tokens),
      {
        seeds: numbers.map((number) => seedFor(spec.seed, "solution", ...nameOf(number))),
        temperature: spec.model.temperature,
        topP: spec.model.topP,
        maxNewTokens: spec.model.maxResponseTokens,
      },
      this.#inTurns ? undefined : (index, response) => this.#onEnded({ ...rows[index], ...response }),
    );
    if (this.#inTurns) await this.#store(await this.#read(rows.map((row, i) => ({ ...row, ...responses[i] }))));
  }

  #onEnded(row: Row & WrittenResponse): void {
    this.#ended.push(row);
    if (!this.#reading) this.#inBackground(this.#storeEnded());
  }

  async #storeEnded(): Promise<void> {
    this.#reading = true;
    while (this.#ended.length > 0 && !this.#failure) {
      await nextTurn(); // the engine reports all rows that ended with one token in one turn
      const since = performance.now();
      const written: Written[] = [];
      do written.push(...(await this.#read([this.#ended.shift()!])));
      while (this.#ended.length > 0 && performance.now() - since < READING_MILLISECONDS);
      await this.#store(written);
    }
    this.#reading = false;
  }

  async #store(rows: Written[]): Promise<void> {
    const { spec, store, addSamples } = this.#o;
    const samples = rows.map((row) => sampleOf(row, spec.seed, store.lineage));
    await addSamples(samples);
    for (const { first, response, verificationFailures, fault } of rows) {
      this.launched.samples++;
      this.launched.tokens += response.length;
      this.launched.verificationFailures += verificationFailures;
      if (fault !== undefined) this.launched.instrumenterFaults.push(fault);
      const group = this.underway.get(sampleId(first))!;
      group.left--;
      if (group.left === 0) this.underway.delete(sampleId(first));
    }
    this.#change.resolve();
    this.#change = newChange();
  }

  /** Adds plan, program and instrumented program of each response, or the facts of one that is never executed. */
  async #read(rows: (Row & WrittenResponse)[]): Promise<Written[]> {
    const { decode, spec } = this.#o;
    const solutions = await mapInTurns(rows, ({ prompt, response }) =>
      wholeAnswer(decode, spec.prompts?.answerPrefix, prompt.tokens, response),
    );
    const parsed = solutions.map(parseSolution);
    const started = performance.now();
    const instrumented = await this.#instrument(parsed.flatMap((each) => ("program" in each ? each.program : [])));
    const seconds = (performance.now() - started) / 1000;
    this.launched.instrumentSeconds.push(...instrumented.map((_, __, { length }) => seconds / length));
    return parsed.map((each, i) => {
      const solution = solutions[i];
      if ("fault" in each) {
        const facts = { solution, plan: "", insertedMarkers: [], instrumenter: "None", state: "notExecuted" as const };
        return { ...rows[i], facts, verificationFailures: 0 };
      }
      const { program, markers: insertedMarkers, instrumenter, ...faults } = instrumented.shift()!;
      const inserted = { instrumented: program, insertedMarkers, instrumenter, state: "queued" as const };
      return { ...rows[i], facts: { solution, ...each, ...inserted }, ...faults };
    });
  }

  #instrument(programs: string[]) {
    const { engine, spec, encode, decode } = this.#o;
    const lengths = instrumenterLengths(spec.model);
    const limits = { ...spec.model, samplesPerPrompt: samplesPerPrompt(spec.algorithm) };
    const { rows } = instrumenterShape(limits, lengths); // as many rows as memory was planned for
    return instrumentAll(programs, spec.model.instrumenter, {
      encode,
      decode,
      maxPromptTokens: lengths.promptTokens,
      maxResponseTokens: lengths.responseTokens,
      generate: async (prompts, maxNewTokens) => {
        // greedy: a program is always instrumented in the same way
        const how = { temperature: 0, topP: 1, maxNewTokens, weights: "reference" } as const;
        const answers = [];
        for (let first = 0; first < prompts.length; first += rows) {
          const batch = prompts.slice(first, first + rows);
          answers.push(...(await engine.generate(batch, { ...how, seeds: batch.map(() => 0) })));
        }
        return answers;
      },
    });
  }
}

/** `end` throws an error that nobody waits for. */
function newChange(): PromiseWithResolvers<void> {
  const change = Promise.withResolvers<void>();
  change.promise.catch(() => {});
  return change;
}
