/** The help of a command, from its table. */
import { type Command, listOptions } from "./command-line.ts";

const WIDTH = 120;
const HELP: [string, string] = ["-h, --help", "show this help"];

/** Returns whether a command's arguments ask for its help; what follows `--` is text. */
export function asksForHelp(args: readonly string[]): boolean {
  const end = args.indexOf("--");
  return args.slice(0, end < 0 ? args.length : end).some((arg) => arg === "--help" || arg === "-h");
}

/** Returns the help: usage, arguments, options, notes, examples. */
export function helpOf(command: Command): string {
  const { name, description, arguments: words = {}, options, notes, examples = [], commands } = command;
  const rows = listOptions(options).filter(({ hidden }) => !hidden);
  const usage = ["Usage:", name, "[options]", ...Object.keys(words)].join(" ");
  return [
    ...(commands?.map((one) => `${helpOf(one)}\n`) ?? [`${usage}\n\n${description}\n`]),
    section(
      "Arguments",
      Object.entries(words).map(([place, help]) => [place.replace(/[[\]<>]/g, ""), help]),
    ),
    !commands && section("Options", [...rows.map(rowOf), HELP]),
    notes && `\n${notes}\n`,
    examples.length > 0 && `\nExamples:\n${examples.map((line) => `  ${line}\n`).join("")}`,
  ]
    .filter(Boolean)
    .join("");
}

/** Returns lines of two columns, such as commands with their descriptions. */
export function section(title: string, rows: readonly (readonly [string, string])[]): string {
  if (rows.length === 0) return "";
  const width = Math.max(...rows.map(([left]) => left.length)) + 4;
  const lines = rows.map(([left, right]) => `${`  ${left}`.padEnd(width)}${wrap(right, width)}\n`);
  return `\n${title}:\n${lines.join("")}`;
}

function rowOf(option: ReturnType<typeof listOptions>[number]): [string, string] {
  const { name, value, help, short, choices, default: fallback } = option;
  const left = `${short ? `-${short}, ` : ""}--${name}${value ? ` <${value}>` : ""}`;
  const facts = [choices && `one of ${choices.join(", ")}`, fallback && `default: ${fallback}`].filter(Boolean);
  return [left, facts.length === 0 ? help : `${help} (${facts.join("; ")})`];
}

/** Breaks a text into lines that begin at a column. */
function wrap(text: string, column: number): string {
  const lines = [""];
  for (const word of text.split(" ")) {
    const line = lines.at(-1)!;
    if (line !== "" && column + line.length + word.length >= WIDTH) lines.push(word);
    else lines[lines.length - 1] = line === "" ? word : `${line} ${word}`;
  }
  return lines.join(`\n${" ".repeat(column)}`);
}
