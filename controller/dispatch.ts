/** A program of several commands: chooses the command, shows help, and turns errors into messages and exit statuses. */
import { helpOf, section } from "../proto/command-help.ts";
import { type Command, type Options, parse, refusal, UsageError, type Values } from "../proto/command-line.ts";
import { nearest } from "../proto/nearest.ts";
import { type ControllerError, EXIT, exitStatusOf } from "./errors.ts";
import { harmless } from "./harmless.ts";
import type { Screen } from "./local/terminal/terminal.ts";

/** A command with what it does. */
export interface Runnable {
  command: Command;
  /** @returns the exit status, or nothing */
  run(args: readonly string[]): unknown;
  /** Reads its arguments itself, `--help` included. */
  isProgram?: true;
}

export interface Program {
  name: string;
  description: string;
  version: string;
  commands: readonly Runnable[];
  /** Options of every command, which may stand before its name. */
  options?: Options;
}

const EXIT_STATUSES = "\nExit status: 0 done, 1 failed, 2 bad input, 130 interrupted.\n";

/** @param run gets the values of the options and the arguments; returns the exit status, or nothing */
export const bind = <const O extends Options>(
  command: Command<O>,
  run: (values: Values<O>, ...words: string[]) => unknown,
): Runnable => ({
  command,
  run: (args) => {
    const { values, words } = parse(command, args);
    return run(values, ...words);
  },
});

/** Runs the command that the arguments name. @returns the exit status */
export async function dispatch(program: Program, args: readonly string[], out: Screen, err: Screen): Promise<number> {
  try {
    const status = await choose(program, args, out, err);
    return typeof status === "number" ? status : EXIT.done;
  } catch (error) {
    const { message, code } = error as ControllerError;
    if (code !== "interrupted") err.write(`${error instanceof UsageError ? message : harmless(message)}\n`);
    return exitStatusOf(error);
  }
}

async function choose(program: Program, args: readonly string[], out: Screen, err: Screen): Promise<unknown> {
  const { name, commands, options = {} } = program;
  const at = placeOfWord(args, options);
  const [word, rest] = [args[at], args.toSpliced(at, at < 0 ? 0 : 1)];
  const isAsked = (long: string, short: string) => rest.some((arg) => arg === long || arg === short);
  if (word === undefined || (word === "help" && rest.length === 0)) {
    if (isAsked("--version", "-V")) return out.write(`${program.version}\n`) as undefined;
    const asks = word === "help" || isAsked("--help", "-h");
    if (!asks) parse({ name, options }, rest);
    (asks ? out : err).write(overview(program));
    return asks ? EXIT.done : EXIT.badInput;
  }
  if (word === "help") return choose(program, [rest[0]!, "--help"], out, err);
  const chosen = commands.find(({ command }) => wordOf(command) === word);
  if (!chosen) {
    const known = commands.map(({ command }) => wordOf(command));
    throw refusal(`unknown command '${word}'`, name, nearest(word, known));
  }
  if (!chosen.isProgram && isAsked("--help", "-h")) return out.write(helpOf(chosen.command)) as undefined;
  return chosen.run(rest);
}

/** Returns the index of the first argument that is neither an option of the program nor its value; -1 without one. */
function placeOfWord(args: readonly string[], options: Options): number {
  const takesValue = new Set(Object.entries(options).flatMap(([name, { short }]) => [`--${name}`, `-${short}`]));
  return args.findIndex((arg, at) => !arg.startsWith("-") && !takesValue.has(args[at - 1]!));
}

/** Returns the command's word, such as `run`. */
export const wordOf = ({ name }: Command): string => name.split(" ").at(-1)!;

function overview({ name, description, commands }: Program): string {
  const rows = commands.map(({ command }): [string, string] => [wordOf(command), command.description.split("\n")[0]!]);
  const help: [string, string] = ["help", "show the options of a command, with examples"];
  return `Usage: ${name} COMMAND …\n\n${description}\n${section("Commands", [...rows, help])}${EXIT_STATUSES}`;
}
