/** Finds the commonest errors of invalid programs, with one program each. */
import type { Sample } from "../store/types.ts";

export interface CommonError {
  /** Error of the example; others of its kind differ in names and numbers. */
  error: string;
  samples: number;
  example: { id: string; program: string };
}

type Failed = Pick<Sample, "id" | "solution" | "program" | "grade" | "result">;

/** Most kinds of errors that are reported. */
const mostErrors = 5;
/** Most characters of an error that are kept. */
const errorCharacters = 300;

/** Returns one line about the fault of an invalid sample: the last line of its program's output, if the program failed. */
export function errorOf({ grade, result }: Pick<Failed, "grade" | "result">): string {
  const lastLine = result?.terminalOutput.trimEnd().split("\n").at(-1)?.trim();
  const text = (grade?.reason === "failed" && lastLine) || (grade?.reason ?? result?.outcome ?? "not graded");
  return text.slice(0, errorCharacters);
}

/** Errors that only differ in names and numbers are of one kind. */
export const errorKind = (error: string) => error.replaceAll(/\[.*\]|"[^"]*"|'[^']*'/g, "…").replaceAll(/\d+/g, "0");

/** Returns the commonest errors of invalid samples, the commonest first. The newest sample of each is its example. */
export function commonErrors(failed: readonly Failed[]): CommonError[] {
  const errors = new Map<string, CommonError>();
  for (const sample of failed) {
    const error = errorOf(sample);
    const { samples = 0 } = errors.get(errorKind(error)) ?? {};
    const example = { id: sample.id, program: sample.program ?? sample.solution };
    errors.set(errorKind(error), { error, example, samples: samples + 1 });
  }
  return [...errors.values()].sort((a, b) => b.samples - a.samples).slice(0, mostErrors);
}
