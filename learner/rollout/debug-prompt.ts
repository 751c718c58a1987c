/** Debug prompts: a task, a program that failed on it, the end of its error, and the request to mend it. */
import type { Message } from "../engine/index.ts";
import type { PromptTask } from "./prompt-task.ts";
import {
  asked,
  fence,
  outputTail,
  type Prompt,
  type PromptLimits,
  type PromptStyle,
  paperSystem,
  paperTask,
  type ShownSolution,
  shortSystem,
  shortTask,
} from "./prompts.ts";
import { shortenings, shorterIntroductions } from "./shorten.ts";
import { formatSolution } from "./solution.ts";

export interface FailedSolution extends ShownSolution {
  /** Why it has no valid submission, one line. */
  failure: string;
}

const paperDebug =
  "You have implemented a previous solution, but it failed. Find the reason and mend the solution. First outline the " +
  "reason and your revised solution in natural language (3-5 sentences), followed by a single markdown code block " +
  `(wrapped in ${fence}) which implements the whole revised solution. Note:`;

/** Returns the prompt to mend a failed solution. Without `task` it leaves out what the task is. */
export function debugMessages(
  task: PromptTask | undefined,
  failed: FailedSolution,
  style: PromptStyle,
  outputTailBytes: number,
): Message[] {
  const solution = formatSolution(failed.plan, failed.program);
  const output = outputTail(failed.output, outputTailBytes);
  if (style === "Short") {
    const shown = output === "" ? "" : `\nOutput:\n${output}`;
    const about = task === undefined ? "" : `${shortTask(task)}\n`;
    return asked(shortSystem, `${about}Mend this solution.\n${solution}\nFailure: ${failed.failure}${shown}`);
  }
  const content = [
    paperDebug,
    ...(task === undefined ? [] : [paperTask(task)]),
    `Previous solution:\n\n${solution}`,
    `It failed: ${failed.failure}`,
    ...(output === "" ? [] : [`End of its terminal output:\n\n${fence}\n${output.replaceAll(fence, "'''")}\n${fence}`]),
  ].join("\n\n");
  return asked(paperSystem, content);
}

/**
 * Returns a debug prompt of at most `maxPromptTokens`. As much of the terminal output is shown as fits beside the shortest task, then as
 * much of the task as fits beside it; the task is left out if even then there is no room. Undefined if the whole program does not fit.
 */
export function debugPrompt(
  task: PromptTask,
  failed: FailedSolution,
  limits: PromptLimits & { outputTailBytes: number },
): Prompt | undefined {
  const { style, encode, maxPromptTokens, outputTailBytes } = limits;
  const steps = [...(style === "Paper" ? shortenings(task) : shorterIntroductions(task))];
  const taskAfter = (taken: number) => steps[taken - 1]?.task ?? task;
  const made = (shown: PromptTask | undefined, bytes: number) => {
    const messages = debugMessages(shown, failed, style, bytes);
    return { kind: "debug" as const, messages, tokens: encode(messages) };
  };
  const fits = ({ tokens }: { tokens: Int32Array }) => tokens.length <= maxPromptTokens;
  const cut: string[] = [];
  let bytes = outputTailBytes;
  const shortest = taskAfter(steps.length);
  while (!fits(made(shortest, bytes)) && bytes > 0) {
    bytes = bytes < 64 ? 0 : Math.floor(bytes / 2);
    cut.push(`terminal output over ${bytes} bytes`);
  }
  if (!fits(made(shortest, bytes))) {
    const bare = made(undefined, bytes);
    return fits(bare) ? { ...bare, cut: [...cut, "task"] } : undefined;
  }
  // Each step shortens the prompt, so bisection finds the least number of steps.
  let [least, most] = [0, steps.length];
  while (least < most) {
    const taken = Math.floor((least + most) / 2);
    if (fits(made(taskAfter(taken), bytes))) most = taken;
    else least = taken + 1;
  }
  return { ...made(taskAfter(least), bytes), cut: [...cut, ...steps.slice(0, least).map((step) => step.cut)] };
}
