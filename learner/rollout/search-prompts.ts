/** The prompts that a search for solutions chooses from. */
import type { Sample } from "../store/types.ts";
import { debugPrompt } from "./debug-prompt.ts";
import type { Drawn } from "./drawn.ts";
import type { Shown } from "./draws.ts";
import { distinctFailures } from "./failures.ts";
import { improvePrompt, type Prompt, type PromptLimits } from "./prompts.ts";

/** The prompts of a task's search. */
export interface SearchPrompts {
  scratch: Drawn;
  /** Undefined if the solution fits in no prompt. */
  improve(sample: Sample): Drawn | undefined;
  /** Undefined if the sample holds no failed program, or it fits in no prompt. */
  debug(sample: Sample): Drawn | undefined;
}

type Limits = PromptLimits & { outputTailBytes: number };

export function searchPrompts({ task: about, scratch }: Shown, limits: Limits): SearchPrompts {
  const task = about.name;
  return {
    scratch: { task, prompt: scratch },
    improve: (sample) => {
      const prompt = improvementOf(sample, limits);
      return prompt && { task, prompt, previous: sample.id };
    },
    debug: (sample) => {
      const [failure] = distinctFailures([sample]);
      const prompt = failure && debugPrompt(about, failure, limits);
      return prompt && { task, prompt, previous: sample.id, depth: failure.depth + 1, previousStep: failure.step };
    },
  };
}

/** Returns the prompt that asks to improve a sample's solution; undefined if the solution fits in none. */
export function improvementOf({ plan, program = "", result }: Sample, limits: Limits): Prompt | undefined {
  return improvePrompt({ plan, program, output: result?.terminalOutput ?? "" }, limits);
}
