/** Parses numbers of the command line, and formats numbers for people. */
import { ControllerError } from "./errors.ts";

/** @throws ControllerError `input` */
export function positive(text: string, option: string): number {
  const value = Number(text);
  if (!(value > 0)) throw new ControllerError("input", `${option} is ${text}, must be a number above 0`);
  return value;
}

/** Formats a number with four significant digits, without zeros at the end. */
export function significant(value: number): string {
  return Number(value.toPrecision(4)).toString();
}
