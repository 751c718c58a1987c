import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import { type Engine, instrumenterShape, seedFor, uniforms } from "../engine/index.ts";
import { samplesPerPrompt } from "../rl/groups.ts";
import type { NewSample, PreviousSolution, Sample } from "../store/types.ts";
import { instrumentAll, instrumenterLengths, type StaticPolicyFault } from "./instrument-policy.ts";
import type { PromptTask } from "./prompt-task.ts";
import { type EncodeChat, improvePrompt, type Prompt, scratchPrompt } from "./prompts.ts";
import { parseSolution } from "./solution.ts";
import { mapInTurns } from "./turns.ts";

/** What the rollout needs of the store. */
interface SampleStore {
  readonly lineage: number;
  addSamples(samples: readonly NewSample[]): void;
  previousSolutions(task: string, limit: number): PreviousSolution[];
}

interface RolloutOptions {
  engine: Engine;
  store: SampleStore;
  task: PromptTask;
  spec: TrainingRunSpec;
  encode: EncodeChat;
  /** Response tokens to text, special tokens left out. */
  decode: (tokens: Int32Array) => string;
  /** Number of the next sample of this store; numbers are never used twice. */
  nextNumber: number;
  /** No further batch of samples is generated once it fires. */
  signal?: AbortSignal;
}

export interface Launched {
  samples: number;
  tokens: number;
  /** Previous solutions that were drawn and did not fit in a prompt. */
  refusedPrevious: number;
  verificationFailures: number;
  /** Why the static policy did not instrument, of each program where it did not. */
  instrumenterFaults: StaticPolicyFault[];
  /** How long it took to insert markers into each program, its share of those that were instrumented together. */
  instrumentSeconds: number[];
}

interface Drawn {
  prompt: Prompt;
  previous?: string;
  /** A previous solution was drawn and did not fit. */
  isRefused?: boolean;
}

/** Samples of one kind of an evaluation by their index, from 0; `to` is not one of them. */
interface Range {
  from: number;
  to: number;
}

/**
 * Draws a prompt, samples a solution, inserts markers and stores the sample with its behaviour log-probs and policy
 * version, its execution queued.
 *
 * Every random choice is a function of `spec.seed` and the sample's number, or its index in an evaluation: two policies are
 * asked with the same random numbers, whatever was sampled before.
 */
export class Rollout {
  readonly #o: RolloutOptions;
  #number: number;
  readonly #scratch: Prompt;

  constructor(o: RolloutOptions) {
    this.#o = o;
    this.#number = o.nextNumber;
    this.#scratch = scratchPrompt(o.task, this.#promptLimits());
  }

  /**
   * Launches training samples of the policy version (lineage, `iteration`): for each of `prompts` prompts, drawn from D
   * and D_prev, the group of samples that the baseline compares, or one.
   */
  launch(prompts: number, iteration: number): Promise<Launched> {
    const { store, spec, task } = this.#o;
    const previous = store.previousSolutions(task.name, spec.prompts.previousSolutions);
    const perPrompt = samplesPerPrompt(spec.algorithm);
    const draw = (number: number) => this.#draw(number, previous);
    return this.#generate(prompts * perPrompt, iteration, "training", draw, (number) => [number], perPrompt);
  }

  /** Launches scratch samples for an evaluation. */
  launchScratch(range: Range, iteration: number, purpose: string): Promise<Launched> {
    return this.#launchRange(range, iteration, purpose, "scratch", () => ({ prompt: this.#scratch }));
  }

  /**
   * Launches improve samples for an evaluation: the sample of index i improves `samples[i mod n]`, where `samples` are those
   * n whose solution fits in a prompt. None if there is no such sample.
   */
  async launchImprovements(
    range: Range,
    samples: readonly Sample[],
    iteration: number,
    purpose: string,
  ): Promise<Launched> {
    const prompts = await mapInTurns(samples, (sample): Drawn | undefined => {
      const output = sample.result?.terminalOutput ?? "";
      const prompt = this.#improve({ plan: sample.plan, program: sample.program ?? "", output });
      return prompt && { prompt, previous: sample.id };
    });
    const fitting = prompts.filter((drawn) => drawn !== undefined);
    const refusedPrevious = prompts.length - fitting.length;
    if (fitting.length === 0) return { ...nothingLaunched(), refusedPrevious };
    const drawnFor = (index: number) => fitting[index % fitting.length]!;
    const launched = await this.#launchRange(range, iteration, purpose, "improve", drawnFor);
    return { ...launched, refusedPrevious };
  }

  #launchRange(
    { from, to }: Range,
    iteration: number,
    purpose: string,
    kind: string,
    drawnFor: (index: number) => Drawn,
  ) {
    const first = this.#number - from;
    const draw = (number: number) => drawnFor(number - first);
    return this.#generate(to - from, iteration, purpose, draw, (number) => ["evaluation", kind, number - first]);
  }

  /** With probability `improveProbability` a uniformly drawn previous solution, once there are any. */
  #draw(number: number, previous: PreviousSolution[]): Drawn {
    const { spec } = this.#o;
    const next = uniforms(spec.seed, "prompt", number);
    if (previous.length === 0 || next() >= spec.prompts.improveProbability) return { prompt: this.#scratch };
    const { id, plan, program, terminalOutput: output } = previous[Math.floor(next() * previous.length)];
    const prompt = this.#improve({ plan, program, output });
    return prompt ? { prompt, previous: id } : { prompt: this.#scratch, isRefused: true };
  }

  #improve(previous: { plan: string; program: string; output: string }): Prompt | undefined {
    const { outputTailBytes } = this.#o.spec.prompts;
    return improvePrompt(previous, { ...this.#promptLimits(), outputTailBytes });
  }

  #promptLimits() {
    const { spec, encode } = this.#o;
    return { style: spec.prompts.style, maxPromptTokens: spec.model.maxPromptTokens, encode };
  }

  /**
   * In batches of `generationBatchSize`, each stored before the next is sampled, so that actors start at once. `perPrompt`
   * samples in a row are a group: they share the prompt that is drawn for the first, and one batch.
   * @param nameOf what the random choices for a sample are named by, besides the seed
   */
  async #generate(
    count: number,
    iteration: number,
    purpose: string,
    draw: (number: number) => Drawn,
    nameOf: (number: number) => (string | number)[],
    perPrompt = 1,
  ): Promise<Launched> {
    const { engine, spec, store, signal } = this.#o;
    const total = nothingLaunched();
    const most = Math.floor(spec.model.generationBatchSize / perPrompt) * perPrompt;
    while (total.samples < count && !signal?.aborted) {
      const size = Math.min(most, count - total.samples);
      const numbers = Array.from({ length: size }, (_, i) => this.#number + i);
      const leading = numbers.filter((_, i) => i % perPrompt === 0);
      const drawn = await mapInTurns(leading, draw);
      const drawnFor = (i: number) => drawn[Math.floor(i / perPrompt)];
      total.refusedPrevious += drawn.filter(({ isRefused }) => isRefused).length;
      const generated = await engine.generate(
        numbers.map((_, i) => drawnFor(i).prompt.tokens),
        {
          seeds: numbers.map((number) => seedFor(spec.seed, "solution", ...nameOf(number))),
          temperature: spec.model.temperature,
          topP: spec.model.topP,
          maxNewTokens: spec.model.maxResponseTokens,
        },
      );
      const { written, instrumentSeconds } = await this.#read(generated.map(({ response }) => response));
      total.instrumentSeconds.push(...instrumentSeconds);
      const samples = generated.map(({ response, logProbs, finished }, i): NewSample => {
        const { prompt, previous } = drawnFor(i);
        const { facts, verificationFailures, fault } = written[i];
        total.tokens += response.length;
        total.verificationFailures += verificationFailures;
        if (fault !== undefined) total.instrumenterFaults.push(fault);
        return {
          ...facts,
          id: sampleId(numbers[i]),
          purpose,
          iteration,
          lineage: store.lineage,
          task: this.#o.task.name,
          kind: prompt.kind,
          previous,
          group: perPrompt > 1 ? sampleId(numbers[i - (i % perPrompt)]) : undefined,
          promptTokens: prompt.tokens,
          responseTokens: response,
          truncated: !finished,
          behaviourLogProbs: logProbs,
          executionSeed: seedFor(spec.seed, "execution", ...nameOf(numbers[i])) % 2 ** 32,
        };
      });
      store.addSamples(samples);
      this.#number += size;
      total.samples += size;
    }
    return total;
  }

  /** Plan, program and instrumented program of each response, or the facts of one that is never executed. */
  async #read(responses: Int32Array[]) {
    const solutions = await mapInTurns(responses, (response) => this.#o.decode(response));
    const parsed = solutions.map(parseSolution);
    const started = performance.now();
    const instrumented = await this.#instrument(parsed.flatMap((each) => ("program" in each ? each.program : [])));
    const seconds = (performance.now() - started) / 1000;
    const instrumentSeconds = instrumented.map((_, __, { length }) => seconds / length);
    const written = parsed.map((each, i) => {
      const solution = solutions[i];
      if ("fault" in each) {
        const facts = { solution, plan: "", insertedMarkers: [], instrumenter: "None", state: "notExecuted" as const };
        return { facts, verificationFailures: 0, fault: undefined };
      }
      const { program, markers: insertedMarkers, instrumenter, ...faults } = instrumented.shift()!;
      const inserted = { instrumented: program, insertedMarkers, instrumenter, state: "queued" as const };
      return { facts: { solution, ...each, ...inserted }, ...faults };
    });
    return { written, instrumentSeconds };
  }

  #instrument(programs: string[]) {
    const { engine, spec, encode, decode } = this.#o;
    const lengths = instrumenterLengths(spec.model);
    const limits = { ...spec.model, samplesPerPrompt: samplesPerPrompt(spec.algorithm) };
    const { rows } = instrumenterShape(limits, lengths); // what memory was planned for
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

/** Before anything is. */
export function nothingLaunched(): Launched {
  return {
    ...{ samples: 0, tokens: 0, refusedPrevious: 0, verificationFailures: 0 },
    ...{ instrumenterFaults: [], instrumentSeconds: [] },
  };
}

const sampleId = (number: number) => `s${String(number).padStart(6, "0")}`;
