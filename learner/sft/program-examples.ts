/** A folder of programs that solve a task as examples: the prompt is the task's. */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { Message } from "../engine/index.ts";
import { formatSolution, parseSolution } from "../rollout/solution.ts";
import { DataError, type Example } from "./examples.ts";

const EXTENSION = ".py";
/** The plan of a program that begins with no comment and no docstring. */
const PLAN = "Train a model on the training data, predict the test data, and write the submission.";

export const holdsPrograms = (folder: string): boolean => readdirSync(folder).some((name) => name.endsWith(EXTENSION));

/**
 * Returns an example for each program, in the order of their names. Its plan is the comment or docstring that the program begins with.
 *
 * @param prompt the task's prompt @throws DataError for a program that is no solution, such as an empty file
 */
export function examplesOfPrograms(folder: string, prompt: readonly Message[]): Example[] {
  const names = readdirSync(folder).filter((name) => name.endsWith(EXTENSION));
  return names.sort().map((name) => {
    const place = join(folder, name);
    const program = readFileSync(place, "utf8");
    const response = formatSolution(planOf(program), program);
    const parsed = parseSolution(response);
    if ("fault" in parsed)
      throw new DataError(`${place}: as an answer it is refused: ${parsed.fault}; mend the program`);
    return { prompt, response, place };
  });
}

/** Returns the first comment or docstring in one line; a plan needs a letter. */
export function planOf(program: string): string {
  const docstring = /^\s*[rR]?("""|''')([\s\S]*?)\1/.exec(program)?.[2];
  const comment = /^(?:\s*#(?!!).*(?:\n|$))+/.exec(program)?.[0].replace(/^\s*#+ ?/gm, "");
  const plan = (docstring ?? comment ?? "").replace(/\s+/g, " ").replaceAll("`", "'").trim();
  return /\p{L}/u.test(plan) ? plan : PLAN;
}
