/** Filters and tests of Jinja, and `tojson` of transformers. */
import { capitalize, percentFormat, repeated, replace, splitLines, strip } from "./text.ts";
import {
  type Arguments,
  compare,
  contains,
  equal,
  intOf,
  isTrue,
  itemsOf,
  jsonText,
  lengthOf,
  numberOf,
  PyFloat,
  PyNamespace,
  PyTuple,
  representation,
  stringOf,
  textOf,
  typeName,
  type Value,
} from "./values.ts";

type Filter = (value: Value, argument: (index: number, name: string) => Value, args: Arguments) => Value;

const FILTERS: Record<string, Filter> = {
  trim: (value, argument) => strip(textOf(value), argument(0, "chars")),
  upper: (value) => textOf(value).toUpperCase(),
  lower: (value) => textOf(value).toLowerCase(),
  capitalize: (value) => capitalize(textOf(value)),
  title: (value) =>
    textOf(value)
      .split(/([-\s({[<]+)/u)
      .map((part) => capitalize(part))
      .join(""),
  replace: (value, argument) =>
    replace(
      textOf(value),
      textOf(argument(0, "old")),
      textOf(argument(1, "new")),
      intOf(argument(2, "count") ?? -1, "count"),
    ),
  length: lengthOf,
  count: lengthOf,
  string: textOf,
  safe: (value) => value,
  list: (value) => [...itemsOf(value)],
  first: (value) => itemsOf(value)[0],
  last: (value) => itemsOf(value).at(-1),
  reverse: (value) => (typeof value === "string" ? [...value].reverse().join("") : [...itemsOf(value)].reverse()),
  join: (value, argument) => {
    const attribute = argument(1, "attribute");
    const items = itemsOf(value).map((item) => (attribute === undefined ? item : attributeAt(item, attribute)));
    return items.map(textOf).join(textOf(argument(0, "d")));
  },
  items: (value) => {
    if (value === undefined) return [];
    if (!(value instanceof Map)) throw new TypeError("Can only get item pairs from a mapping.");
    return [...value].map((entry) => PyTuple.from(entry));
  },
  default: defaultFilter,
  d: defaultFilter,
  int: (value, argument) => {
    const fallback = argument(0, "default") ?? 0;
    if (typeof value !== "string") {
      const number = numberOf(value);
      return number === undefined || !Number.isFinite(number) ? fallback : Math.trunc(number);
    }
    const number = parseNumber(value);
    return number === undefined || !Number.isFinite(number) ? fallback : Math.trunc(number);
  },
  float: (value, argument) => {
    const number = typeof value === "string" ? parseNumber(value) : numberOf(value);
    return number === undefined ? (argument(0, "default") ?? new PyFloat(0)) : new PyFloat(number);
  },
  abs: (value) => sameKind(value, Math.abs(requiredNumber(value, "abs"))),
  round: (value, argument) => {
    const digits = intOf(argument(0, "precision") ?? 0, "precision");
    const method = argument(1, "method") ?? "common";
    const number = requiredNumber(value, "round");
    const scaled = number * 10 ** digits;
    const whole = method === "ceil" ? Math.ceil(scaled) : method === "floor" ? Math.floor(scaled) : roundEven(scaled);
    return typeof value === "number" && method === "common" ? whole / 10 ** digits : new PyFloat(whole / 10 ** digits);
  },
  sum: (value, argument) => {
    const attribute = argument(0, "attribute");
    const numbers = itemsOf(value).map((item) => (attribute === undefined ? item : attributeAt(item, attribute)));
    const total = numbers.reduce<number>((sum, item) => sum + requiredNumber(item, "sum"), 0);
    return numbers.some((item) => item instanceof PyFloat) ? new PyFloat(total) : total;
  },
  min: (value, argument) => sorted(itemsOf(value), argument(0, "case_sensitive") === true)[0],
  max: (value, argument) => sorted(itemsOf(value), argument(0, "case_sensitive") === true).at(-1),
  sort: (value, argument) => {
    const attribute = argument(2, "attribute");
    const list = sorted(itemsOf(value), argument(1, "case_sensitive") === true, attribute);
    return argument(0, "reverse") === true
      ? reversedStable(list, attribute, argument(1, "case_sensitive") === true)
      : list;
  },
  unique: (value, argument) => {
    const key = sortKey(argument(0, "case_sensitive") === true, argument(1, "attribute"));
    const seen: Value[] = [];
    return itemsOf(value).filter((item) => {
      if (seen.some((each) => equal(each, key(item)))) return false;
      seen.push(key(item));
      return true;
    });
  },
  dictsort: (value, argument) => {
    if (!(value instanceof Map)) throw new TypeError(`dictsort of a ${typeName(value)}`);
    const at = argument(1, "by") === "value" ? 1 : 0;
    const key = sortKey(argument(0, "case_sensitive") === true);
    const direction = argument(2, "reverse") === true ? -1 : 1;
    const entries = [...value].sort((left, right) => direction * compare(key(left[at]), key(right[at])));
    return entries.map((entry) => PyTuple.from(entry));
  },
  indent: (value, argument) => {
    const width = argument(0, "width") ?? 4;
    const margin = typeof width === "string" ? width : repeated(" ", intOf(width, "width"));
    const blank = isTrue(argument(2, "blank"));
    const lines = splitLines(`${textOf(value)}\n`);
    const indented = lines.map((line, i) => (i === 0 || (line === "" && !blank) ? line : margin + line));
    return (isTrue(argument(1, "first")) ? margin : "") + indented.join("\n");
  },
  format: (value, _argument, { positional, named }) =>
    percentFormat(textOf(value), named.size > 0 ? new Map(named) : PyTuple.from(positional), representation),
  tojson: (value, argument) => {
    const indent = argument(1, "indent") ?? undefined;
    const separators = argument(2, "separators") ?? undefined;
    return jsonText(value, {
      ensureAscii: isTrue(argument(0, "ensure_ascii")),
      indent: indent === undefined ? undefined : intOf(indent, "indent"),
      separators: separators === undefined ? undefined : (itemsOf(separators) as readonly [string, string]),
      sortKeys: isTrue(argument(3, "sort_keys")),
    });
  },
  map: (value, argument, { positional, named }) => {
    const items = itemsOf(value);
    if (named.has("attribute"))
      return items.map((item) => {
        const found = attributeAt(item, named.get("attribute"));
        return found === undefined ? named.get("default") : found;
      });
    const name = stringOf(argument(0, "filter"), "the filter of map");
    return items.map((item) => applyFilter(name, item, { positional: positional.slice(1), named }));
  },
  select: (value, _argument, { positional }) => itemsOf(value).filter((item) => chosen(item, positional)),
  reject: (value, _argument, { positional }) => itemsOf(value).filter((item) => !chosen(item, positional)),
  selectattr: (value, argument, { positional }) =>
    itemsOf(value).filter((item) => chosen(attributeAt(item, argument(0, "attribute")), positional.slice(1))),
  rejectattr: (value, argument, { positional }) =>
    itemsOf(value).filter((item) => !chosen(attributeAt(item, argument(0, "attribute")), positional.slice(1))),
};

const TESTS: Record<string, (value: Value, argument: Value) => boolean> = {
  defined: (value) => value !== undefined,
  undefined: (value) => value === undefined,
  none: (value) => value === null,
  string: (value) => typeof value === "string",
  number: (value) => numberOf(value) !== undefined,
  integer: (value) => typeof value === "number",
  float: (value) => value instanceof PyFloat,
  boolean: (value) => typeof value === "boolean",
  true: (value) => value === true,
  false: (value) => value === false,
  mapping: (value) => value instanceof Map,
  sequence: (value) => value === undefined || typeof value === "string" || Array.isArray(value) || value instanceof Map,
  iterable: (value) => value === undefined || typeof value === "string" || Array.isArray(value) || value instanceof Map,
  callable: (value) => typeof value === "function",
  odd: (value) => Math.abs(requiredNumber(value, "odd") % 2) === 1,
  even: (value) => requiredNumber(value, "even") % 2 === 0,
  divisibleby: (value, by) => requiredNumber(value, "divisibleby") % requiredNumber(by, "divisibleby") === 0,
  lower: (value) => /\p{L}/u.test(textOf(value)) && textOf(value) === textOf(value).toLowerCase(),
  upper: (value) => /\p{L}/u.test(textOf(value)) && textOf(value) === textOf(value).toUpperCase(),
  in: (value, container) => contains(container, value),
  sameas: (value, other) => value === other,
  eq: equal,
  equalto: equal,
  "==": equal,
  ne: (value, other) => !equal(value, other),
  "!=": (value, other) => !equal(value, other),
  gt: (value, other) => compare(value, other) > 0,
  greaterthan: (value, other) => compare(value, other) > 0,
  ">": (value, other) => compare(value, other) > 0,
  ge: (value, other) => compare(value, other) >= 0,
  ">=": (value, other) => compare(value, other) >= 0,
  lt: (value, other) => compare(value, other) < 0,
  lessthan: (value, other) => compare(value, other) < 0,
  "<": (value, other) => compare(value, other) < 0,
  le: (value, other) => compare(value, other) <= 0,
  "<=": (value, other) => compare(value, other) <= 0,
};

/** @throws Error if there is no filter of this name */
export function applyFilter(name: string, value: Value, args: Arguments): Value {
  if (!Object.hasOwn(FILTERS, name)) throw new Error(`the filter ${name} is not supported`);
  return FILTERS[name]!(
    value,
    (index, key) => (args.positional[index] === undefined ? args.named.get(key) : args.positional[index]),
    args,
  );
}

/** @throws Error if there is no test of this name */
export function applyTest(name: string, value: Value, argument: Value): boolean {
  if (!Object.hasOwn(TESTS, name)) throw new Error(`the test ${name} is not supported`);
  return TESTS[name]!(value, argument);
}

const chosen = (value: Value, [test, argument]: readonly Value[]) =>
  test === undefined ? isTrue(value) : applyTest(stringOf(test, "the name of a test"), value, argument);

function defaultFilter(value: Value, argument: (index: number, name: string) => Value): Value {
  const missing = value === undefined || (isTrue(argument(1, "boolean")) && !isTrue(value));
  const fallback = argument(0, "default_value");
  return !missing ? value : fallback === undefined ? "" : fallback;
}

/** The attribute or item at a path such as `function.name` or `0`. */
function attributeAt(value: Value, path: Value): Value {
  for (const part of textOf(path).split(".")) {
    if (value instanceof Map) value = value.get(part);
    else if (value instanceof PyNamespace) value = value.attributes.get(part);
    else value = Array.isArray(value) && /^\d+$/.test(part) ? value[Number(part)] : undefined;
  }
  return value;
}

function requiredNumber(value: Value, filter: string): number {
  const number = numberOf(value);
  if (number === undefined) throw new TypeError(`${filter} of a ${typeName(value)}`);
  return number;
}

const sameKind = (value: Value, number: number): Value => (value instanceof PyFloat ? new PyFloat(number) : number);

function parseNumber(text: string): number | undefined {
  const trimmed = strip(text, null);
  return /^[+-]?(\d[\d_]*\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(trimmed) ? Number(trimmed.replaceAll("_", "")) : undefined;
}

/** Rounds halves to even, as Python does. */
function roundEven(value: number): number {
  const floor = Math.floor(value);
  if (value - floor !== 0.5) return Math.round(value);
  return floor % 2 === 0 ? floor : floor + 1;
}

function sortKey(caseSensitive: boolean, attribute?: Value): (item: Value) => Value {
  return (item) => {
    const value = attribute === undefined || attribute === null ? item : attributeAt(item, attribute);
    return typeof value === "string" && !caseSensitive ? value.toLowerCase() : value;
  };
}

function sorted(items: readonly Value[], caseSensitive: boolean, attribute?: Value): Value[] {
  const key = sortKey(caseSensitive, attribute);
  return [...items].sort((left, right) => compare(key(left), key(right)));
}

/** Equal items keep their order, as with Python's `reverse=True`. */
function reversedStable(items: readonly Value[], attribute: Value, caseSensitive: boolean): Value[] {
  const key = sortKey(caseSensitive, attribute);
  return [...items].sort((left, right) => compare(key(right), key(left)));
}
