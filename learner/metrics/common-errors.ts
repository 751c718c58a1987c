/** Why programs were not valid: the commonest errors, with one program each. */
import type { Sample } from "../store/types.ts";

export interface CommonError {
  /** Of the example; others of its kind differ in names and numbers. */
  error: string;
  samples: number;
  example: { id: string; program: string };
}

type Failed = Pick<Sample, "id" | "solution" | "program" | "grade" | "result">;

/** Kinds of errors that are told. */
const mostErrors = 5;
/** Characters of an error that are kept. */
const errorCharacters = 300;

/** Returns in one line what was wrong with a sample that is not valid: the last line of its program's output, if the program failed. */
export function errorOf({ grade, result }: Pick<Failed, "grade" | "result">): string {
  const lastLine = result?.terminalOutput.trimEnd().split("\n").at(-1)?.trim();
  const text = (grade?.reason === "failed" && lastLine) || (grade?.reason ?? result?.outcome ?? "not graded");
  return text.slice(0, errorCharacters);
}

/** Names and numbers in an error are the program's own: errors that differ in them alone are of one kind. */
const kindOf = (error: string) => error.replaceAll(/\[.*\]|"[^"]*"|'[^']*'/g, "…").replaceAll(/\d+/g, "0");

/** Returns the commonest errors, the commonest first, of samples that are not valid. The newest sample of each is its example. */
export function commonErrors(failed: readonly Failed[]): CommonError[] {
  const errors = new Map<string, CommonError>();
  for (const sample of failed) {
    const error = errorOf(sample);
    const { samples = 0 } = errors.get(kindOf(error)) ?? {};
    const example = { id: sample.id, program: sample.program ?? sample.solution };
    errors.set(kindOf(error), { error, example, samples: samples + 1 });
  }
  return [...errors.values()].sort((a, b) => b.samples - a.samples).slice(0, mostErrors);
}
