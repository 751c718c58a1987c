/** Methods of Python's str. */
import { type Arguments, intOf, itemsOf, lengthOf, PyTuple, stringOf, textOf, type Value } from "./values.ts";

const SPACES = "\t\n\v\f\r\x1c\x1d\x1e\x1f \x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000";
const SPACE = new RegExp(`[${SPACES}]`, "u");
const WORDS = new RegExp(`[^${SPACES}]+`, "gu");
/** What ends a line for `splitlines`. */
const LINE_ENDS = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029";
const LINE_END = new RegExp(`\r\n|[${LINE_ENDS}]`, "g");

/** Removes the characters `chars` (default: white space) from the ends. */
export function strip(text: string, chars: Value, { left = true, right = true } = {}): string {
  const given = chars === undefined || chars === null ? undefined : new Set(stringOf(chars, "the argument of strip"));
  const removed = (character: string) => given?.has(character) ?? SPACE.test(character);
  const characters = [...text];
  let [start, end] = [0, characters.length];
  while (left && start < end && removed(characters[start]!)) start++;
  while (right && end > start && removed(characters[end - 1]!)) end--;
  return characters.slice(start, end).join("");
}

export function splitLines(text: string, keepEnds = false): string[] {
  const lines: string[] = [];
  let start = 0;
  for (const { 0: end, index } of text.matchAll(LINE_END)) {
    lines.push(text.slice(start, keepEnds ? index + end.length : index));
    start = index + end.length;
  }
  if (start < text.length) lines.push(text.slice(start));
  return lines;
}

/** @param count at most so many, from the left; below 0 all */
export function replace(text: string, from: string, to: string, count = -1): string {
  if (count < 0) return from === "" ? [...text].map((each) => to + each).join("") + to : text.split(from).join(to);
  let result = "";
  let rest = text;
  for (let left = count; left > 0; left--) {
    const at = rest.indexOf(from);
    if (at < 0) break;
    const end = from === "" ? ([...rest.slice(0, 2)][0]?.length ?? 0) : at + from.length;
    result += from === "" ? to + rest.slice(0, end) : rest.slice(0, at) + to;
    if (from === "" && rest === "") break;
    rest = rest.slice(end);
  }
  return result + rest;
}

function split(text: string, separator: Value, limit: number, fromRight: boolean): string[] {
  const joined = (parts: string[], by: string) => {
    if (limit < 0 || parts.length <= limit + 1) return parts;
    if (fromRight) return [parts.slice(0, parts.length - limit).join(by), ...parts.slice(parts.length - limit)];
    return [...parts.slice(0, limit), parts.slice(limit).join(by)];
  };
  if (separator === undefined || separator === null) {
    const words = [...text.matchAll(WORDS)];
    if (limit < 0 || words.length <= limit) return words.map(([word]) => word);
    if (fromRight) {
      const last = words.slice(words.length - limit);
      const before = words[words.length - limit - 1];
      const rest =
        before === undefined ? [] : [strip(text.slice(0, before.index + before[0].length), null, { right: false })];
      return [...rest, ...last.map(([word]) => word)];
    }
    const rest = words[limit] === undefined ? [] : [text.slice(words[limit].index)];
    return [...words.slice(0, limit).map(([word]) => word), ...rest.map((each) => each)];
  }
  const by = stringOf(separator, "the separator of split");
  if (by === "") throw new Error("empty separator");
  if (!fromRight) return joined(text.split(by), by);
  // Overlapping separators are found from the right.
  const parts: string[] = [];
  let end = text.length;
  while (limit < 0 || parts.length < limit) {
    const at = end < by.length ? -1 : text.lastIndexOf(by, end - by.length);
    if (at < 0) break;
    parts.unshift(text.slice(at + by.length, end));
    end = at;
  }
  return [text.slice(0, end), ...parts];
}

export const capitalize = (text: string): string => {
  const [first = ""] = text;
  return first.toUpperCase() + text.slice(first.length).toLowerCase();
};

const title = (text: string): string => text.replace(/\p{L}[\p{L}\p{M}]*/gu, (word) => capitalize(word));

const cased = /\p{Lu}|\p{Ll}|\p{Lt}/u;

type Method = (text: string, args: readonly Value[], named: ReadonlyMap<string, Value>) => Value;

/** A slice by code points, with Python's rules for its ends. */
function range(text: string, start: Value, end: Value): { part: string; offset: number } {
  const points = [...text];
  const bound = (value: Value, missing: number) => {
    if (value === undefined || value === null) return missing;
    const at = intOf(value, "a bound");
    return at < 0 ? Math.max(points.length + at, 0) : at;
  };
  const from = bound(start, 0);
  return { part: from > points.length ? "" : points.slice(from, bound(end, points.length)).join(""), offset: from };
}

/** Position by code points, or -1. */
function find(text: string, [what, start, end]: readonly Value[], last: boolean): number {
  const { part, offset } = range(text, start, end);
  const needle = stringOf(what, "the argument of find");
  if (offset > lengthOf(text)) return -1;
  const at = last ? part.lastIndexOf(needle) : part.indexOf(needle);
  return at < 0 ? -1 : offset + lengthOf(part.slice(0, at));
}

function affix(name: "startsWith" | "endsWith"): Method {
  return (text, [what, start, end]) => {
    const { part } = range(text, start, end);
    const wanted = what instanceof PyTuple ? [...what] : [what];
    return wanted.some((each) => part[name](stringOf(each, `the argument of ${name.toLowerCase()}`)));
  };
}

function padded(side: "left" | "right" | "both"): Method {
  return (text, [width, fill = " "]) => {
    const missing = Math.max(0, intOf(width, "the width") - lengthOf(text));
    const before = side === "left" ? missing : side === "right" ? 0 : (missing >> 1) + (missing & intOf(width, "") & 1);
    return (
      repeated(stringOf(fill, "the fill character"), before) + text + repeated(stringOf(fill, ""), missing - before)
    );
  };
}

/** The most characters that a template makes of one operation. */
const LONGEST_TEXT = 10_000_000;

/** @throws RangeError if the result is longer than `LONGEST_TEXT` */
export function repeated(text: string, times: number): string {
  if (text.length * times > LONGEST_TEXT)
    throw new RangeError(`a text of ${text.length * times} characters; at most ${LONGEST_TEXT}`);
  return text.repeat(Math.max(0, times));
}

const named = (names: ReadonlyMap<string, Value>, name: string, positional: Value): Value =>
  positional ?? names.get(name);

const all =
  (pattern: RegExp): Method =>
  (text) =>
    text !== "" && [...text].every((character) => pattern.test(character));

const METHODS: Record<string, Method> = {
  strip: (text, [chars]) => strip(text, chars),
  lstrip: (text, [chars]) => strip(text, chars, { right: false }),
  rstrip: (text, [chars]) => strip(text, chars, { left: false }),
  split: (text, [by, limit], names) =>
    split(text, named(names, "sep", by), intOf(named(names, "maxsplit", limit) ?? -1, "maxsplit"), false),
  rsplit: (text, [by, limit], names) =>
    split(text, named(names, "sep", by), intOf(named(names, "maxsplit", limit) ?? -1, "maxsplit"), true),
  splitlines: (text, [keepEnds], names) => splitLines(text, named(names, "keepends", keepEnds) === true),
  replace: (text, [from, to, count], names) =>
    replace(
      text,
      stringOf(from, "the text to replace"),
      stringOf(to, "the replacement"),
      intOf(named(names, "count", count) ?? -1, "count"),
    ),
  startswith: affix("startsWith"),
  endswith: affix("endsWith"),
  upper: (text) => text.toUpperCase(),
  lower: (text) => text.toLowerCase(),
  casefold: (text) => text.replaceAll("ß", "ss").toLowerCase(),
  title: (text) => title(text),
  capitalize: (text) => capitalize(text),
  swapcase: (text) =>
    [...text].map((each) => (each === each.toUpperCase() ? each.toLowerCase() : each.toUpperCase())).join(""),
  find: (text, args) => find(text, args, false),
  rfind: (text, args) => find(text, args, true),
  index: (text, args) => {
    const at = find(text, args, false);
    if (at < 0) throw new Error("substring not found");
    return at;
  },
  count: (text, [what, start, end]) => {
    const needle = stringOf(what, "the argument of count");
    const { part } = range(text, start, end);
    return needle === "" ? lengthOf(part) + 1 : part.split(needle).length - 1;
  },
  join: (text, [items]) =>
    itemsOf(items)
      .map((item) => stringOf(item, "an item of join"))
      .join(text),
  isdigit: all(/\p{Nd}|[²³¹⁰⁴-⁹₀-₉]/u),
  isnumeric: all(/\p{N}/u),
  isdecimal: all(/\p{Nd}/u),
  isalpha: all(/\p{L}/u),
  isalnum: all(/[\p{L}\p{N}]/u),
  isspace: all(SPACE),
  isupper: (text) => cased.test(text) && text === text.toUpperCase(),
  islower: (text) => cased.test(text) && text === text.toLowerCase(),
  removeprefix: (text, [prefix]) => {
    const start = stringOf(prefix, "the prefix");
    return text.startsWith(start) ? text.slice(start.length) : text;
  },
  removesuffix: (text, [suffix]) => {
    const end = stringOf(suffix, "the suffix");
    return end !== "" && text.endsWith(end) ? text.slice(0, -end.length) : text;
  },
  partition: (text, [separator]) => {
    const by = stringOf(separator, "the separator");
    const at = text.indexOf(by);
    return at < 0 ? PyTuple.of(text, "", "") : PyTuple.of(text.slice(0, at), by, text.slice(at + by.length));
  },
  rpartition: (text, [separator]) => {
    const by = stringOf(separator, "the separator");
    const at = text.lastIndexOf(by);
    return at < 0 ? PyTuple.of("", "", text) : PyTuple.of(text.slice(0, at), by, text.slice(at + by.length));
  },
  ljust: padded("right"),
  rjust: padded("left"),
  center: padded("both"),
  zfill: (text, [width]) => {
    const [, sign = "", digits = ""] = /^([+-]?)(.*)$/s.exec(text)!;
    return sign + repeated("0", intOf(width, "the width") - lengthOf(text)) + digits;
  },
  format: (text, args, names) => format(text, args, names),
};

/** `{}`, `{0}` and `{name}`. @throws Error for other fields of Python's str.format */
function format(text: string, args: readonly Value[], names: ReadonlyMap<string, Value>): string {
  let next = 0;
  return text.replace(/\{\{|\}\}|\{([^{}]*)\}|[{}]/g, (found, field: string | undefined) => {
    if (found === "{{" || found === "}}") return found[0]!;
    if (field === undefined) throw new Error("a single brace in a format string");
    if (!/^\w*$/.test(field)) throw new Error(`the field {${field}} of a format string is not supported`);
    if (field !== "" && !/^\d+$/.test(field)) {
      if (!names.has(field)) throw new Error(`the format string names ${field}, which is not given`);
      return textOf(names.get(field));
    }
    const index = field === "" ? next++ : Number(field);
    if (index >= args.length) throw new Error(`a format string with ${index + 1} fields for ${args.length} values`);
    return textOf(args[index]);
  });
}

/** The method `name` of `text`, or undefined. */
export function textMethod(text: string, name: string): ((args: Arguments) => Value) | undefined {
  const method = Object.hasOwn(METHODS, name) ? METHODS[name] : undefined;
  return method && (({ positional, named: names }) => method(text, positional, names));
}

/** Python's `text % values` with %s, %r, %d, %f, %x and their width, precision and flags. */
export function percentFormat(text: string, values: Value, representationOf: (value: Value) => string): string {
  const given = values instanceof PyTuple ? [...values] : [values];
  let next = 0;
  const result = text.replace(
    /%(?:\((\w+)\))?([-0+ #]*)(\d*)(?:\.(\d+))?(.)/gsu,
    (found, key, flags, width, digits, kind) => {
      if (kind === "%") return "%";
      if (key === undefined && next >= given.length) throw new Error("not enough arguments for format string");
      const value = key === undefined ? given[next++] : (values as Map<string, Value>).get(key);
      let written: string;
      if (kind === "s" || kind === "r") {
        written = kind === "s" ? textOf(value) : representationOf(value);
        if (digits !== undefined) written = [...written].slice(0, Number(digits)).join("");
      } else {
        const number = typeof value === "object" && value !== null && "value" in value ? value.value : value;
        if (typeof number !== "number" && typeof number !== "boolean")
          throw new TypeError(`%${kind} requires a number`);
        if (kind === "d" || kind === "i") written = String(BigInt(Math.trunc(Number(number))));
        else if (kind === "f" || kind === "F") written = Number(number).toFixed(Math.min(Number(digits ?? 6), 100));
        else if (kind === "x") written = Number(number).toString(16);
        else throw new Error(`${found} is not supported in a format string`);
        if (flags.includes("+") && !written.startsWith("-")) written = `+${written}`;
        else if (flags.includes(" ") && !written.startsWith("-")) written = ` ${written}`;
      }
      const missing = Number(width || 0) - lengthOf(written);
      if (missing <= 0) return written;
      if (flags.includes("-")) return written + repeated(" ", missing);
      if (!flags.includes("0") || kind === "s" || kind === "r") return repeated(" ", missing) + written;
      const [, sign = "", rest = ""] = /^([+ -]?)(.*)$/.exec(written)!;
      return sign + repeated("0", missing) + rest;
    },
  );
  if (next < given.length && !(values instanceof Map))
    throw new Error("not all arguments converted during string formatting");
  return result;
}
