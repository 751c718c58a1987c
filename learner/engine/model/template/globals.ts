import { LONGEST_RANGE } from "./operations.ts";
import { type Arguments, intOf, itemsOf, PyNamespace, stringOf, textOf, type Value } from "./values.ts";

/** Functions and constants of transformers' environment. */
export const GLOBALS: readonly [string, Value][] = [
  ["true", true],
  ["True", true],
  ["false", false],
  ["False", false],
  ["none", null],
  ["None", null],
  ["range", range],
  ["namespace", (args) => new PyNamespace(dictOf(args))],
  ["dict", dictOf],
  [
    "raise_exception",
    ({ positional: [message] }) => {
      throw new Error(textOf(message));
    },
  ],
  ["strftime_now", ({ positional: [format] }) => strftime(new Date(), stringOf(format, "the format of strftime_now"))],
];

function range({ positional }: Arguments): Value[] {
  const numbers = positional.map((value) => intOf(value, "an argument of range"));
  const [start, stop, step = 1] = numbers.length === 1 ? [0, numbers[0]!] : (numbers as [number, number, number?]);
  if (numbers.length === 0 || step === 0) throw new RangeError("range needs an end, and a step other than 0");
  const length = Math.max(0, Math.ceil((stop - start) / step));
  if (length > LONGEST_RANGE) throw new RangeError(`a range of ${length} numbers; at most ${LONGEST_RANGE}`);
  return Array.from({ length }, (_, index) => start + index * step);
}

function dictOf({ positional: [source], named }: Arguments): Map<string, Value> {
  const entries =
    source instanceof Map ? [...source] : itemsOf(source).map((entry) => [...itemsOf(entry)] as [string, Value]);
  return new Map([...entries, ...named]);
}

/** In English, as Python's default locale. @throws Error for other codes than these */
function strftime(date: Date, format: string): string {
  const english = (options: Intl.DateTimeFormatOptions) => new Intl.DateTimeFormat("en-US", options).format(date);
  const two = (number: number) => String(number).padStart(2, "0");
  const codes: Record<string, () => string> = {
    Y: () => String(date.getFullYear()),
    y: () => two(date.getFullYear() % 100),
    m: () => two(date.getMonth() + 1),
    d: () => two(date.getDate()),
    e: () => String(date.getDate()).padStart(2),
    b: () => english({ month: "short" }),
    B: () => english({ month: "long" }),
    a: () => english({ weekday: "short" }),
    A: () => english({ weekday: "long" }),
    H: () => two(date.getHours()),
    I: () => two(date.getHours() % 12 || 12),
    p: () => (date.getHours() < 12 ? "AM" : "PM"),
    M: () => two(date.getMinutes()),
    S: () => two(date.getSeconds()),
    "%": () => "%",
  };
  return format.replace(/%(-?)(.)/g, (found, unpadded: string, code: string) => {
    if (!Object.hasOwn(codes, code)) throw new Error(`${found} is not supported by strftime_now`);
    const text = codes[code]!();
    return unpadded === "" ? text : text.replace(/^0+(?=\d)/, "");
  });
}
