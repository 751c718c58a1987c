/**
 * Values of chat templates, as Python has them: `undefined` is Jinja's Undefined, `null` None, a number an int, `PyFloat` a float, a
 * Map a dict, an array a list, `PyTuple` a tuple.
 */
export type Value =
  | undefined
  | null
  | boolean
  | number
  | string
  | PyFloat
  | PyNamespace
  | Callable
  | Map<string, Value>
  | Value[];

export type Arguments = { readonly positional: readonly Value[]; readonly named: ReadonlyMap<string, Value> };
export type Callable = (args: Arguments) => Value;

export class PyFloat {
  readonly value: number;
  constructor(value: number) {
    this.value = value;
  }
}

export class PyTuple extends Array<Value> {
  static override get [Symbol.species]() {
    return Array;
  }
}

/** The result of Jinja's `namespace()`, whose attributes a template can set. */
export class PyNamespace {
  readonly attributes: Map<string, Value>;
  constructor(attributes: Map<string, Value>) {
    this.attributes = attributes;
  }
}

/** Name of a value's type in Python's error messages. */
export function typeName(value: Value): string {
  if (value === undefined) return "Undefined";
  if (value === null) return "NoneType";
  if (typeof value === "boolean") return "bool";
  if (typeof value === "number") return "int";
  if (typeof value === "string") return "str";
  if (value instanceof PyFloat) return "float";
  if (value instanceof PyTuple) return "tuple";
  if (Array.isArray(value)) return "list";
  if (value instanceof Map) return "dict";
  return value instanceof PyNamespace ? "Namespace" : "function";
}

export function isTrue(value: Value): boolean {
  if (Array.isArray(value)) return value.length > 0;
  if (value instanceof Map) return value.size > 0;
  return value instanceof PyFloat ? value.value !== 0 : Boolean(value);
}

/** The number of an int, a float or a bool; undefined for other values. */
export function numberOf(value: Value): number | undefined {
  if (value instanceof PyFloat) return value.value;
  return typeof value === "number" || typeof value === "boolean" ? Number(value) : undefined;
}

/** @throws TypeError naming `what` if the value is no int */
export function intOf(value: Value, what: string): number {
  if (typeof value !== "number" && typeof value !== "boolean")
    throw new TypeError(`${what} is of type ${typeName(value)}, not int`);
  return Number(value);
}

/** @throws TypeError naming `what` if the value is no str */
export function stringOf(value: Value, what: string): string {
  if (typeof value !== "string") throw new TypeError(`${what} is of type ${typeName(value)}, not str`);
  return value;
}

/** Python's `==`. */
export function equal(left: Value, right: Value): boolean {
  const [leftNumber, rightNumber] = [numberOf(left), numberOf(right)];
  if (leftNumber !== undefined && rightNumber !== undefined) return leftNumber === rightNumber;
  if (Array.isArray(left) && Array.isArray(right))
    return (
      left.length === right.length &&
      left instanceof PyTuple === right instanceof PyTuple &&
      left.every((item, i) => equal(item, right[i]))
    );
  if (left instanceof Map && right instanceof Map)
    return left.size === right.size && [...left].every(([key, item]) => right.has(key) && equal(item, right.get(key)));
  return left === right;
}

/**
 * Returns a negative number, 0 or a positive number, as Python orders the values.
 * @throws TypeError if Python does not order them
 */
export function compare(left: Value, right: Value): number {
  const [leftNumber, rightNumber] = [numberOf(left), numberOf(right)];
  if (leftNumber !== undefined && rightNumber !== undefined) return leftNumber - rightNumber;
  if (typeof left === "string" && typeof right === "string") return compareText(left, right);
  if (Array.isArray(left) && Array.isArray(right) && left instanceof PyTuple === right instanceof PyTuple) {
    for (let i = 0; i < left.length && i < right.length; i++)
      if (!equal(left[i], right[i])) return compare(left[i], right[i]);
    return left.length - right.length;
  }
  throw new TypeError(`cannot order ${typeName(left)} and ${typeName(right)}`);
}

/** By code points: JavaScript orders UTF-16 units. */
function compareText(left: string, right: string): number {
  const [leftPoints, rightPoints] = [[...left], [...right]];
  for (let i = 0; i < leftPoints.length && i < rightPoints.length; i++) {
    const difference = leftPoints[i]!.codePointAt(0)! - rightPoints[i]!.codePointAt(0)!;
    if (difference !== 0) return difference;
  }
  return leftPoints.length - rightPoints.length;
}

/** The items that a loop visits. @throws TypeError if Python cannot iterate over the value */
export function itemsOf(value: Value): readonly Value[] {
  if (value === undefined) return [];
  if (typeof value === "string") return [...value];
  if (Array.isArray(value)) return value;
  if (value instanceof Map) return [...value.keys()];
  throw new TypeError(`'${typeName(value)}' object is not iterable`);
}

/** Python's `in`. */
export function contains(container: Value, item: Value): boolean {
  if (typeof container === "string") return container.includes(stringOf(item, "the left operand of in"));
  if (container instanceof Map) return container.has(item as string);
  return itemsOf(container).some((each) => equal(each, item));
}

/** Python's `len`. */
export function lengthOf(value: Value): number {
  if (typeof value === "string") {
    let points = 0;
    for (const _ of value) points++;
    return points;
  }
  if (value instanceof Map) return value.size;
  if (value === undefined || Array.isArray(value)) return itemsOf(value).length;
  throw new TypeError(`object of type '${typeName(value)}' has no length`);
}

/** Python's `str`. */
export function textOf(value: Value): string {
  if (value === undefined) return "";
  return typeof value === "string" ? value : representation(value);
}

/** Python's `repr`. */
export function representation(value: Value): string {
  if (value === undefined) return "Undefined";
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value === "number") return String(BigInt(value));
  if (typeof value === "string") return quoted(value);
  if (value instanceof PyFloat) return floatText(value.value);
  if (value instanceof PyTuple) return `(${[...value].map(representation).join(", ")}${value.length === 1 ? "," : ""})`;
  if (Array.isArray(value)) return `[${value.map(representation).join(", ")}]`;
  if (value instanceof Map) return `{${[...value].map((entry) => entry.map(representation).join(": ")).join(", ")}}`;
  throw new TypeError(`a ${typeName(value)} has no text`);
}

function quoted(text: string): string {
  const quote = text.includes("'") && !text.includes('"') ? '"' : "'";
  const escaped = text.replace(/[\\\p{C}\p{Z}]|['"]/gu, (character) => {
    if (character === " ") return character;
    if (character === "\\" || character === quote) return `\\${character}`;
    if (character === "'" || character === '"') return character;
    const short = { "\n": "\\n", "\r": "\\r", "\t": "\\t" }[character];
    if (short !== undefined) return short;
    const point = character.codePointAt(0)!;
    if (point < 0x100) return `\\x${point.toString(16).padStart(2, "0")}`;
    return point < 0x10000 ? `\\u${point.toString(16).padStart(4, "0")}` : `\\U${point.toString(16).padStart(8, "0")}`;
  });
  return `${quote}${escaped}${quote}`;
}

function floatText(value: number): string {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "nan" : value > 0 ? "inf" : "-inf";
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e16)) return value.toExponential().replace(/e([+-])(\d)$/, "e$10$2"); // Python writes two digits
  if (Object.is(value, -0)) return "-0.0";
  return Number.isInteger(value) ? value.toFixed(1) : String(value);
}

/** JSON as transformers' `tojson` writes it: Python's `json.dumps` with `ensure_ascii=False`. */
export function jsonText(value: Value, options: JsonOptions, depth = 0): string {
  const { indent, ensureAscii, sortKeys, separators } = options;
  const [itemSeparator, keySeparator] = separators ?? [indent === undefined ? ", " : ",", ": "];
  const text = (string: string) => {
    const plain = JSON.stringify(string).replaceAll("\x7f", ensureAscii ? "\\u007f" : "\x7f");
    const escaped = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
    return ensureAscii ? plain.replace(/[\u0080-\uffff]/g, escaped) : plain;
  };
  const wrap = (open: string, items: string[], close: string) => {
    if (items.length === 0 || indent === undefined) return open + items.join(itemSeparator) + close;
    const line = (level: number) => `\n${" ".repeat(indent * level)}`;
    return open + line(depth + 1) + items.join(itemSeparator + line(depth + 1)) + line(depth) + close;
  };
  if (value === null) return "null";
  if (typeof value === "boolean") return String(value);
  if (typeof value === "string") return text(value);
  if (value instanceof PyFloat) {
    if (Number.isFinite(value.value)) return floatText(value.value);
    return Number.isNaN(value.value) ? "NaN" : value.value > 0 ? "Infinity" : "-Infinity";
  }
  if (typeof value === "number") return representation(value);
  if (Array.isArray(value)) {
    const items = [...value].map((item) => jsonText(item, options, depth + 1));
    return wrap("[", items, "]");
  }
  if (value instanceof Map) {
    const entries = sortKeys ? [...value].sort(([left], [right]) => compareText(left, right)) : [...value];
    const items = entries.map(([key, item]) => text(key) + keySeparator + jsonText(item, options, depth + 1));
    return wrap("{", items, "}");
  }
  throw new TypeError(`Object of type ${typeName(value)} is not JSON serializable`);
}

interface JsonOptions {
  readonly indent?: number;
  readonly ensureAscii?: boolean;
  readonly sortKeys?: boolean;
  readonly separators?: readonly [string, string];
}

export function fromJson(json: unknown): Value {
  if (Array.isArray(json)) return json.map(fromJson);
  if (typeof json === "object" && json !== null)
    return new Map(Object.entries(json).map(([key, value]) => [key, fromJson(value)]));
  if (typeof json === "number" && !Number.isInteger(json)) return new PyFloat(json);
  return json as Value;
}
