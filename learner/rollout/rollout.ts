import { samplesPerPrompt } from "../rl/groups.ts";
import type { Store } from "../store/store.ts";
import type { Sample } from "../store/types.ts";
import { type Drawn, executionSeed, type Source } from "./drawn.ts";
import { Draws, type Shown } from "./draws.ts";
import { Generation, type GenerationOptions } from "./generation.ts";
import { type Launched, nothingLaunched } from "./launched.ts";
import type { TaskLines } from "./learnability.ts";
import { promptEncoder } from "./prompt-encoder.ts";
import type { PromptTask } from "./prompt-task.ts";
import { scratchPrompt } from "./prompts.ts";
import { improvementOf, type SearchPrompts, searchPrompts } from "./search-prompts.ts";
import { mapInTurns } from "./turns.ts";

interface RolloutOptions extends GenerationOptions {
  store: GenerationOptions["store"] & Pick<Store, "previousSolutions" | "failedSolutions">;
  /** The tasks in the manifest's order, each with the weight by which prompts draw it. */
  tasks: readonly (PromptTask & { weight: number })[];
  /** Metrics of the iterations so far, oldest first; grows with each. */
  lines?: readonly TaskLines[];
  /** Number of the next sample of this store; numbers are never used twice. */
  nextNumber: number;
  /** After it fires no further prompt of an evaluation is begun. */
  signal?: AbortSignal;
}

/** Samples of one kind of an evaluation. */
interface Wanted {
  /** Required number of samples. */
  count: number;
  /** Samples that an interrupted evaluation has launched. */
  existing: readonly Pick<Sample, "executionSeed">[];
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
  readonly #shown: readonly Shown[];
  /** The training samples that generators may still write. */
  #training: Generation | undefined;

  constructor(o: RolloutOptions) {
    this.#o = o;
    this.#number = o.nextNumber;
    this.#shown = o.tasks.map(({ weight, ...task }) => {
      return { task, weight, scratch: scratchPrompt(task, this.#limits) };
    });
  }

  /** Parts that scratch prompts leave out to fit, by task; none for a task whose prompt is whole. */
  get leftOut(): { task: string; cut: readonly string[] }[] {
    return this.#shown
      .map(({ task, scratch }) => ({ task: task.name, cut: scratch.cut }))
      .filter(({ cut }) => cut.length > 0);
  }

  /** Whether generators write responses; they continue while the learner trains. */
  get writesAhead(): boolean {
    return this.#o.writers !== undefined;
  }

  /**
   * Returns what generates training samples of the policy version (lineage, `iteration`): for each prompt that is begun, drawn
   * from the tasks D and their D_prev, the group of samples that the baseline compares, or one.
   */
  generation(iteration: number): Generation {
    const { store, spec, lines = [] } = this.#o;
    const draws = new Draws({ store, spec, lines, shown: this.#shown, limits: this.#limits });
    const source: Source = {
      iteration,
      purpose: "training",
      perPrompt: samplesPerPrompt(spec.algorithm),
      draw: (number) => draws.draw(number),
      nameOf: (number) => [number],
    };
    if (this.#training?.isUnderWay) this.#training.goOn(source);
    else this.#training = this.#generation(source);
    return this.#training;
  }

  /** Launches the scratch samples of a task that an evaluation lacks. */
  launchScratch(task: string, wanted: Wanted, iteration: number, purpose: string): Promise<Launched> {
    const { scratch } = this.#shown.find((shown) => shown.task.name === task)!;
    return this.#launch(wanted, iteration, purpose, "scratch", () => ({ task, prompt: scratch }));
  }

  /**
   * Launches the improve samples of a task that an evaluation lacks: the sample of index i improves `samples[i mod n]`, where `samples` are
   * those n whose solution fits in a prompt. None if there is no such sample.
   */
  async launchImprovements(
    task: string,
    wanted: Wanted,
    samples: readonly Sample[],
    iteration: number,
    purpose: string,
  ): Promise<Launched> {
    const prompts = await mapInTurns(samples, (sample): Drawn | undefined => {
      const prompt = improvementOf(sample, this.#limits);
      return prompt && { task, prompt, previous: sample.id };
    });
    const fitting = prompts.filter((drawn) => drawn !== undefined);
    if (fitting.length === 0) return nothingLaunched();
    const drawnFor = (index: number) => fitting[index % fitting.length]!;
    return this.#launch(wanted, iteration, purpose, "improve", drawnFor);
  }

  /** Returns what generates the samples of a search for solutions of a task: `choose` chooses the prompt of a sample by its number. */
  search(
    task: string,
    { iteration, purpose }: { iteration: number; purpose: string },
    choose: (number: number, prompts: SearchPrompts) => Drawn,
  ): Generation {
    const shown = this.#shown.find((each) => each.task.name === task)!;
    const prompts = searchPrompts(shown, this.#limits);
    return this.#generation({
      iteration,
      purpose,
      perPrompt: 1,
      draw: (number) => choose(number, prompts),
      nameOf: (number) => [purpose, number],
    });
  }

  /** A sample's index, from 0, is not stored. Its execution seed, a function of the index, identifies it. */
  async #launch(
    { count, existing }: Wanted,
    iteration: number,
    purpose: string,
    kind: Sample["kind"],
    drawnFor: (index: number) => Drawn,
  ): Promise<Launched> {
    const { spec, signal } = this.#o;
    const nameOf = (index: number) => ["evaluation", kind, index];
    const seeds = new Set(existing.map((sample) => sample.executionSeed));
    const missing = Array.from({ length: count }, (_, index) => index).filter(
      (index) => !seeds.has(executionSeed(spec.seed, nameOf(index))),
    );
    const first = this.#number;
    const generation = this.#generation({
      iteration,
      purpose,
      perPrompt: 1,
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

  get #limits() {
    const { spec, encode } = this.#o;
    const { style, outputTailBytes } = spec.prompts;
    const { maxPromptTokens } = spec.model;
    return { style, outputTailBytes, maxPromptTokens, encode: promptEncoder(encode, spec.prompts) };
  }
}
