/** Command lines. One table describes a command; its parsing, its errors, its help and its completion come from the table. */
import { parseArgs } from "node:util";
import { nearest } from "./nearest.ts";

/** An option; without `value` a flag. */
export interface Option {
  /** Placeholder of the value in the help. TASK, MODEL and RUN also choose what a shell completes, FILE and DIR complete files. */
  value?: string;
  help: string;
  /** The letter of the short form. */
  short?: string;
  multiple?: true;
  /** What the user must give, for the error. */
  required?: string;
  default?: string | undefined;
  choices?: readonly string[];
  /** Accepted, but neither in the help nor completed. */
  hidden?: true;
  /** Converts the text; throws for a wrong one. @param option the option with its dashes */
  as?: (text: string, option: string) => unknown;
}
export type Options = Readonly<Record<string, Option>>;

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
type One<O> = O extends { as: (...given: never[]) => infer R }
  ? R
  : O extends { choices: readonly (infer C)[] }
    ? C
    : string;
type Given<O> = O extends { multiple: true }
  ? One<O>[]
  : O extends { required: string } | { default: string }
    ? One<O>
    : One<O> | undefined;
type IsOptional<O> = O extends { value: string } ? (undefined extends Given<O> ? true : false) : false;
/** Values by the option's name in camel case. A flag is a boolean; an option that may be repeated is a list. */
export type Values<O> = {
  -readonly [N in keyof O as IsOptional<O[N]> extends true ? never : Camel<N>]: O[N] extends { value: string }
    ? Given<O[N]>
    : boolean;
} & { -readonly [N in keyof O as IsOptional<O[N]> extends true ? Camel<N> : never]?: Given<O[N]> };

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
  const entries = Object.entries(command.options).map(([option, about]) => {
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

type Split = { values: Record<string, string | string[] | true | undefined>; positionals: string[] };

function split({ name, options }: Pick<Command, "name" | "options">, args: readonly string[]): Split {
  const config = Object.fromEntries(
    Object.entries(options).map(([option, { value, short, multiple = false }]) => [
      option,
      { type: value === undefined ? "boolean" : "string", multiple, ...(short && { short }) } as const,
    ]),
  );
  try {
    return parseArgs({ args, options: config, allowPositionals: true }) as Split;
  } catch (cause) {
    const { message } = cause as Error;
    const problem = message.split(/\. |\.?\n/)[0]!;
    const unknown = /^Unknown option '--([^']+)'/.exec(message)?.[1];
    const guess = unknown && nearest(unknown, Object.keys(options));
    throw refusal(problem.charAt(0).toLowerCase() + problem.slice(1), name, guess && `--${guess}`);
  }
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
    throw refusal(`argument '${last}' is invalid. Allowed choices are ${choices.join(", ")}`, name);
}
