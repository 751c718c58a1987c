/** Command lines. One table describes a command; its parsing, its errors, its help and its completion come from the table. */
import { parseArgs } from "node:util";
import { nearest } from "./nearest.ts";

/** What the help says of an option, or this with more. */
export type About = string | Details;
export interface Details {
  help: string;
  /** What the user must give, for the error. */
  required?: string;
  default?: string | undefined;
  choices?: readonly string[];
  /** Accepted, but neither in the help nor completed. */
  hidden?: true;
  /** Converts the text; throws for a wrong one. @param option the option with its dashes */
  as?: (text: string, option: string) => unknown;
}
/**
 * Options by name, short form and placeholder of the value: `json`, `follow -f`, `out <DIR>`, `set <PATH=VALUE...>` for one that may be
 * repeated. TASK, MODEL and RUN also choose what a shell completes; FILE and DIR complete files.
 */
export type Options = Readonly<Record<string, About>>;

export interface Command<O extends Options = Options> {
  /** All words, for example `longrun task init`. */
  name: string;
  description: string;
  /** Help by placeholder: `<FILE>`, optional `[FILE]`, several `<FILE...>`. */
  arguments?: Readonly<Record<string, string>>;
  /** What the last argument may be; absent: every text. */
  choices?: readonly string[];
  options: O;
  /** Text below the options. */
  notes?: string;
  /** Lines that can be typed as they stand. */
  examples?: readonly string[];
  /** The commands with a further word, such as `longrun task init`. Then `options` is empty. */
  commands?: readonly Command[];
}

type Camel<N> = N extends `${infer Head}-${infer Tail}` ? `${Head}${Capitalize<Camel<Tail>>}` : N;
type Name<K> = Camel<K extends `${infer N} ${string}` ? N : K>;
type One<A> = A extends { as: (...given: never[]) => infer R }
  ? R
  : A extends { choices: readonly (infer C)[] }
    ? C
    : string;
type IsGiven<A> = A extends { required: string } | { default: string } ? true : false;
type Value<K, A> = K extends `${string}...>` ? One<A>[] : K extends `${string}<${string}` ? One<A> : boolean;
type IsOptional<K, A> = K extends `${string}...>`
  ? false
  : K extends `${string}<${string}`
    ? IsGiven<A> extends true
      ? false
      : true
    : false;
/** Values by the option's name in camel case. A flag is a boolean; an option that may be repeated is a list. */
export type Values<O> = {
  -readonly [K in keyof O as IsOptional<K, O[K]> extends true ? never : Name<K>]: Value<K, O[K]>;
} & { -readonly [K in keyof O as IsOptional<K, O[K]> extends true ? Name<K> : never]?: Value<K, O[K]> | undefined };

interface Option extends Details {
  name: string;
  short?: string | undefined;
  /** Placeholder; absent: a flag. */
  value?: string | undefined;
  multiple: boolean;
}

/** Returns each option of a table. */
export function listOptions(options: Options): Option[] {
  return Object.entries(options).map(([key, about]) => {
    const [, name, short, value, dots] = /^([\w-]+)(?: -(\w))?(?: <(.+?)(\.\.\.)?>)?$/.exec(key)!;
    return {
      ...(typeof about === "string" ? { help: about } : about),
      name: name!,
      short,
      value,
      multiple: dots !== undefined,
    };
  });
}

/** The command line cannot be used. */
export class UsageError extends Error {
  readonly code = "input";
}

/** Returns the refusal of a word: the problem, and below it a guess or where help is. @param name of the command, or of the program */
export function refusal(problem: string, name: string, guess?: string): UsageError {
  const [, program, word] = /^((?:kubectl )?longrun)(?: (\S+))?/.exec(name) ?? [];
  const help = program && (word ? `${program} help ${word} says more` : `${program} help lists the commands`);
  return new UsageError([`error: ${problem}`, guess ? `(Did you mean ${guess}?)` : help].filter(Boolean).join("\n"));
}

/** Reads a command's options and arguments. @throws UsageError; whatever an option's `as` throws */
export function parse<const O extends Options>(
  command: Pick<Command<O>, "name" | "options" | "arguments" | "choices">,
  args: readonly string[],
): { values: Values<O>; words: string[] } {
  const { values, positionals } = split(command, args);
  checkWords(command, positionals);
  const entries = listOptions(command.options).map(({ name: option, ...about }) => {
    const one = (text: string): unknown => {
      if (about.choices && !about.choices.includes(text))
        throw new UsageError(`--${option} is ${text}; give ${about.choices.join(", ")}`);
      return about.as ? about.as(text, `--${option}`) : text;
    };
    const given =
      values[option] ?? about.default ?? (about.multiple ? [] : about.value === undefined ? false : undefined);
    if (about.required !== undefined && (given === undefined || String(given) === ""))
      throw new UsageError(`--${option} is missing; give ${about.required}`);
    const value = Array.isArray(given) ? given.map(one) : typeof given === "string" ? one(given) : given;
    return [option.replace(/-(.)/g, (_, letter: string) => letter.toUpperCase()), value];
  });
  return { values: Object.fromEntries(entries) as Values<O>, words: positionals };
}

/** Returns an option by the name of its value: `--batch-size` for batchSize. */
export const flagOf = (name: string): string => `--${name.replace(/[A-Z]/g, (letter) => `-${letter.toLowerCase()}`)}`;

/** A command with what it does. */
export interface Bound {
  command: Command;
  /** @returns the exit status, or nothing */
  run(args: readonly string[]): unknown;
}

/** @param run gets the values of the options and the arguments; returns the exit status, or nothing */
export const bind = <const O extends Options>(
  command: Command<O>,
  run: (values: Values<O>, ...words: string[]) => unknown,
): Bound => ({
  command,
  run: (args) => {
    const { values, words } = parse(command, args);
    return run(values, ...words);
  },
});

/** Returns a command's last word, such as `run`. */
export const wordOf = ({ name }: Pick<Command, "name">): string => name.split(" ").at(-1)!;

type Split = { values: Record<string, string | string[] | true | undefined>; positionals: string[] };

function split({ name, options }: Pick<Command, "name" | "options">, args: readonly string[]): Split {
  const config = Object.fromEntries(
    listOptions(options).map(({ name: option, value, short, multiple }) => [
      option,
      { type: value === undefined ? "boolean" : "string", multiple, ...(short && { short }) } as const,
    ]),
  );
  try {
    return parseArgs({ args, options: config, allowPositionals: true }) as Split;
  } catch (cause) {
    const { message } = cause as Error;
    const problem = message.split(/\. |\.?\n/)[0]!;
    const names = listOptions(options).map((option) => option.name);
    const dashed = /^Option '(-[^']+)' argument is ambiguous/.exec(message)?.[1];
    if (dashed) throw refusal(`option '${dashed}' has no value`, name, withDash(dashed, args, names));
    const unknown = /^Unknown option '--([^']+)'/.exec(message)?.[1];
    const guess = unknown && nearest(unknown, names);
    throw refusal(problem.charAt(0).toLowerCase() + problem.slice(1), name, guess && `--${guess}`);
  }
}

/** Returns how a value that begins with a dash is given, such as `--seed=-1`; undefined where an option of `names` follows. */
function withDash(option: string, args: readonly string[], names: readonly string[]): string | undefined {
  const value = args.find((arg, at) => args[at - 1] === option && arg.startsWith("-"));
  const isOption = value === undefined || names.includes(value.replace(/^--|=.*/gs, ""));
  return isOption ? undefined : `${option}${option.startsWith("--") ? "=" : ""}${value}`;
}

function checkWords(
  { name, arguments: expected = {}, choices }: Omit<Command, "description" | "options">,
  words: string[],
): void {
  const places = Object.keys(expected);
  const missing = places.filter((place) => place.startsWith("<"))[words.length];
  if (missing !== undefined) throw refusal(`missing required argument '${/\w+/.exec(missing)![0]}'`, name);
  const [most, last] = [places.length, words.at(-1)];
  if (words.length > most && !places.at(-1)?.includes("..."))
    throw refusal(`too many arguments: expected ${most}, got ${words.length}`, name);
  if (choices && !choices.includes(last!))
    throw new UsageError(`error: argument '${last}' is invalid. Allowed choices are ${choices.join(", ")}`);
}
