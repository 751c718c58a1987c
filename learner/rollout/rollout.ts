import { uniforms } from "../engine/index.ts";
import { samplesPerPrompt } from "../rl/groups.ts";
import type { PreviousSolution, Sample } from "../store/types.ts";
import {
  type Drawn,
  executionSeed,
  Generation,
  type GenerationOptions,
  type Launched,
  nothingLaunched,
  type Source,
} from "./generation.ts";
import type { PromptTask } from "./prompt-task.ts";
import { improvePrompt, type Prompt, scratchPrompt } from "./prompts.ts";
import { mapInTurns } from "./turns.ts";

interface RolloutOptions extends GenerationOptions {
  store: GenerationOptions["store"] & { previousSolutions(task: string, limit: number): PreviousSolution[] };
  task: PromptTask;
  /** Number of the next sample of this store; numbers are never used twice. */
  nextNumber: number;
  /** No further prompt of an evaluation is begun once it fires. */
  signal?: AbortSignal;
}

/** Samples of one kind of an evaluation. */
interface Wanted {
  /** How many there are to be. */
  count: number;
  /** Those that an interrupted evaluation has launched. */
  there: readonly Pick<Sample, "executionSeed">[];
}

/**
 * Draws a prompt, samples a solution, inserts markers and stores the sample with its behaviour log-probs and policy
 * version, its execution queued.
 *
 * Every random choice is a function of `spec.seed` and the sample's number, or its index in an evaluation: two policies are
 * asked with the same random numbers, whatever was sampled before, and whichever response ends first.
 */
export class Rollout {
  readonly #o: RolloutOptions;
  #number: number;
  /** What generators may still be writing at. */
  #training: Generation | undefined;
  readonly #scratch: Prompt;

  constructor(o: RolloutOptions) {
    this.#o = o;
    this.#number = o.nextNumber;
    this.#scratch = scratchPrompt(o.task, this.#promptLimits());
  }

  /** Whether generators write, which go on while the learner trains. */
  get writesAhead(): boolean {
    return this.#o.writers !== undefined;
  }

  /**
   * Returns what generates training samples of the policy version (lineage, `iteration`): for each prompt that is begun, drawn
   * from D and D_prev, the group of samples that the baseline compares, or one.
   */
  generation(iteration: number): Generation {
    const { store, spec, task } = this.#o;
    const previous = store.previousSolutions(task.name, spec.prompts.previousSolutions);
    const source: Source = {
      ...{ iteration, purpose: "training", perPrompt: samplesPerPrompt(spec.algorithm) },
      draw: (number) => this.#draw(number, previous),
      nameOf: (number) => [number],
    };
    if (this.#training?.isUnderWay) this.#training.goOn(source);
    else this.#training = this.#generation(source);
    return this.#training;
  }

  /** Launches the scratch samples that an evaluation lacks. */
  launchScratch(wanted: Wanted, iteration: number, purpose: string): Promise<Launched> {
    return this.#launch(wanted, iteration, purpose, "scratch", () => ({ prompt: this.#scratch }));
  }

  /**
   * Launches the improve samples that an evaluation lacks: the sample of index i improves `samples[i mod n]`, where `samples` are
   * those n whose solution fits in a prompt. None if there is no such sample.
   */
  async launchImprovements(
    wanted: Wanted,
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
    const launched = await this.#launch(wanted, iteration, purpose, "improve", drawnFor);
    return { ...launched, refusedPrevious };
  }

  /** A sample's index, from 0, is not stored. Its execution seed tells it, which is a function of the index. */
  async #launch(
    { count, there }: Wanted,
    iteration: number,
    purpose: string,
    kind: Sample["kind"],
    drawnFor: (index: number) => Drawn,
  ): Promise<Launched> {
    const { spec, signal } = this.#o;
    const nameOf = (index: number) => ["evaluation", kind, index];
    const seeds = new Set(there.map((sample) => sample.executionSeed));
    const missing = Array.from({ length: count }, (_, index) => index).filter(
      (index) => !seeds.has(executionSeed(spec.seed, nameOf(index))),
    );
    const first = this.#number;
    const generation = this.#generation({
      ...{ iteration, purpose, perPrompt: 1 },
      draw: (number) => drawnFor(missing[number - first]!),
      nameOf: (number) => nameOf(missing[number - first]!),
    });
    try {
      while (generation.begun < missing.length && !signal?.aborted) {
        const prompts = Math.min(generation.room, missing.length - generation.begun);
        if (prompts > 0) generation.begin(prompts);
        else await generation.changed();
      }
    } finally {
      await generation.end();
    }
    return generation.launched;
  }

  #generation(source: Source): Generation {
    return new Generation(this.#o, source, (count) => {
      this.#number += count;
      return this.#number - count;
    });
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
}
