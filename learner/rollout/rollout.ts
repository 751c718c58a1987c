import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import type { Engine } from "../engine/engine.ts";
import { seedFor, uniforms } from "../engine/model/random.ts";
import { instrumenterShape } from "../engine/plan-generation.ts";
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

export interface RolloutOptions {
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
}

/** Samples of one kind of an evaluation by their index, from 0; `to` is not one of them. */
export interface Range {
  from: number;
  to: number;
}

/** What the random choices for a sample are named by, besides the seed. */
type Name = readonly (string | number)[];

/**
 * The first half of the way of a sample: draws a prompt, samples a solution, stores it with its behaviour log-probs and
 * policy version, inserts markers, queues the execution.
 *
 * Every random choice is a function of `spec.seed` and the sample's number, or, of an evaluation, its index in that: two
 * policies are asked with the same random numbers, whatever was sampled before.
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
    return this.#generate(prompts * perPrompt, iteration, "training", draw, perPrompt);
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
    return this.#generate(Math.max(0, to - from), iteration, purpose, (number) => ({
      drawn: drawnFor(number - first),
      refused: 0,
      name: ["evaluation", kind, number - first],
    }));
  }

  /** With probability `improveProbability` a uniformly drawn previous solution, once there are any. */
  #draw(number: number, previous: PreviousSolution[]): { drawn: Drawn; refused: number } {
    const { spec } = this.#o;
    const next = uniforms(spec.seed, "prompt", number);
    if (previous.length > 0 && next() < spec.prompts.improveProbability) {
      const chosen = previous[Math.floor(next() * previous.length)];
      const { plan, program, terminalOutput: output } = chosen;
      const prompt = this.#improve({ plan, program, output });
      if (prompt !== undefined) return { drawn: { prompt, previous: chosen.id }, refused: 0 };
      return { drawn: { prompt: this.#scratch }, refused: 1 };
    }
    return { drawn: { prompt: this.#scratch }, refused: 0 };
  }

  #improve(previous: { plan: string; program: string; output: string }): Prompt | undefined {
    return improvePrompt(previous, {
      ...this.#promptLimits(),
      outputTailBytes: this.#o.spec.prompts.outputTailBytes,
    });
  }

  #promptLimits() {
    const { spec, encode } = this.#o;
    return { style: spec.prompts.style, maxPromptTokens: spec.model.maxPromptTokens, encode };
  }

  /**
   * In batches of `generationBatchSize`, each stored before the next is sampled, so that actors start at once. `perPrompt`
   * samples in a row are a group: they share the prompt that is drawn for the first, and one batch.
   */
  async #generate(
    count: number,
    iteration: number,
    purpose: string,
    draw: (number: number) => { drawn: Drawn; refused: number; name?: Name },
    perPrompt = 1,
  ): Promise<Launched> {
    const { engine, spec, store, signal } = this.#o;
    const total = nothingLaunched();
    const most = Math.floor(spec.model.generationBatchSize / perPrompt) * perPrompt;
    while (total.samples < count && !signal?.aborted) {
      const size = Math.min(most, count - total.samples);
      const numbers = Array.from({ length: size }, (_, i) => this.#number + i);
      const leading = numbers.filter((_, i) => i % perPrompt === 0);
      const firsts = await mapInTurns(leading, (number) => ({ number, ...draw(number) }));
      const draws = numbers.map((number, i) => {
        const drawn = firsts[Math.floor(i / perPrompt)];
        return { ...drawn, name: drawn.name ?? [number] };
      });
      total.refusedPrevious += firsts.reduce((sum, { refused }) => sum + refused, 0);
      const generated = await engine.generate(
        draws.map(({ drawn }) => drawn.prompt.tokens),
        {
          seeds: draws.map(({ name }) => seedFor(spec.seed, "solution", ...name)),
          temperature: spec.model.temperature,
          topP: spec.model.topP,
          maxNewTokens: spec.model.maxResponseTokens,
        },
      );
      const { written, instrumentSeconds } = await this.#read(generated.map(({ response }) => response));
      total.instrumentSeconds.push(...instrumentSeconds);
      const samples = generated.map(({ response, logProbs, finished }, i): NewSample => {
        const { drawn, number: first } = draws[i];
        total.tokens += response.length;
        total.verificationFailures += written[i].verificationFailures;
        if (written[i].fault !== undefined) total.instrumenterFaults.push(written[i].fault);
        return {
          ...written[i].facts,
          id: sampleId(numbers[i]),
          purpose,
          iteration,
          lineage: store.lineage,
          task: this.#o.task.name,
          kind: drawn.prompt.kind,
          previous: drawn.previous,
          group: perPrompt > 1 ? sampleId(first) : undefined,
          promptTokens: drawn.prompt.tokens,
          responseTokens: response,
          truncated: !finished,
          behaviourLogProbs: logProbs,
          executionSeed: seedFor(spec.seed, "execution", ...draws[i].name) % 2 ** 32,
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
        const state = "notExecuted" as const;
        const facts = { solution, plan: "", insertedMarkers: [], instrumenter: "None", state };
        return { facts, verificationFailures: 0, fault: undefined };
      }
      const { program, markers, instrumenter, verificationFailures, fault } = instrumented.shift()!;
      const facts = {
        ...{ solution, ...each, instrumented: program, insertedMarkers: markers, instrumenter },
        state: "queued" as const,
      };
      return { facts, verificationFailures, fault };
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
