/** What the prompts of an iteration are drawn from: the tasks D, their previous solutions D_prev and their failed programs. */
import type { TrainingRunSpec } from "../../crds/trainingrun.ts";
import { uniforms } from "../engine/index.ts";
import type { Store } from "../store/store.ts";
import type { PreviousSolution } from "../store/types.ts";
import { debugPrompt } from "./debug-prompt.ts";
import { drawTask } from "./draw-task.ts";
import type { Drawn } from "./drawn.ts";
import { distinctFailures, drawFailure, type Failure } from "./failures.ts";
import { drawingWeights, type TaskLines } from "./learnability.ts";
import type { PromptTask } from "./prompt-task.ts";
import { improvePrompt, type Prompt, type PromptLimits } from "./prompts.ts";

/** A task and the parts that its prompts show. */
export interface Shown {
  task: PromptTask;
  weight: number;
  scratch: Prompt;
}

interface DrawsOptions {
  store: Pick<Store, "previousSolutions" | "failedSolutions">;
  spec: Pick<TrainingRunSpec, "seed" | "prompts">;
  shown: readonly Shown[];
  /** Of the iterations so far, oldest first. */
  lines: readonly TaskLines[];
  limits: PromptLimits & { outputTailBytes: number };
}

export class Draws {
  readonly #o: DrawsOptions;
  readonly #tasks: readonly Shown[];
  readonly #previousOf: ReadonlyMap<string, PreviousSolution[]>;
  /** Empty if debug prompts are off. */
  readonly #failedOf: ReadonlyMap<string, Failure[]>;

  constructor(o: DrawsOptions) {
    this.#o = o;
    this.#tasks = drawingWeights(o.shown, o.lines, o.spec.prompts);
    const { debugProbability, maxDepth, previousSolutions: limit } = o.spec.prompts;
    const names = o.shown.map(({ task }) => task.name);
    const failuresOf = (name: string) => distinctFailures(o.store.failedSolutions(name, { limit, maxDepth }));
    this.#previousOf = new Map(names.map((name) => [name, o.store.previousSolutions(name, limit)]));
    this.#failedOf = new Map(debugProbability > 0 ? names.map((name) => [name, failuresOf(name)]) : []);
  }

  /**
   * Draws a task by its weight, which `taskSampling` may change; with probability `debugProbability` a failed program of it, otherwise with
   * probability `improveProbability` a uniformly drawn previous solution, or from scratch where there is none that fits. If debug prompts
   * are on, a failed program takes the place of a previous solution while there is none.
   *
   * @param number of the sample, which alone decides
   */
  draw(number: number): Drawn {
    const { spec, limits } = this.#o;
    const { task: about, scratch } = drawTask(this.#tasks, spec.seed, number);
    const task = about.name;
    const debug = this.#debug(number, about);
    if (debug?.isDrawn && debug.drawn) return debug.drawn;
    const debugging = debug?.isDrawn ? debug.fault : undefined;
    const previous = this.#previousOf.get(task)!;
    const next = uniforms(spec.seed, "prompt", number);
    if (next() >= spec.prompts.improveProbability) return { task, prompt: scratch, debugging };
    if (previous.length === 0) {
      const improvement = "noPrevious";
      return debug?.drawn
        ? { ...debug.drawn, improvement }
        : { task, prompt: scratch, improvement, debugging: debug?.fault };
    }
    const { id, plan, program, terminalOutput: output } = previous[Math.floor(next() * previous.length)]!;
    const prompt = improvePrompt({ plan, program, output }, limits);
    if (!prompt) return { task, prompt: scratch, improvement: "tooLong", debugging };
    return { task, prompt, previous: id, improvement: "shown", debugging };
  }

  /** Returns whether the sample has a debug prompt, and the prompt or why there is none; undefined if debug prompts are off. */
  #debug(number: number, about: PromptTask) {
    const { spec, limits } = this.#o;
    const failures = this.#failedOf.get(about.name);
    if (failures === undefined) return undefined;
    const next = uniforms(spec.seed, "debug", number);
    const isDrawn = next() < spec.prompts.debugProbability;
    const failure = drawFailure(failures, next);
    if (failure === undefined) return { isDrawn, fault: "noFailure" as const };
    const prompt = debugPrompt(about, failure, limits);
    if (prompt === undefined) return { isDrawn, fault: "tooLong" as const };
    const { id: previous, depth, step: previousStep } = failure;
    const drawn: Drawn = { task: about.name, prompt, previous, depth: depth + 1, previousStep, debugging: "shown" };
    return { isDrawn, drawn };
  }
}
