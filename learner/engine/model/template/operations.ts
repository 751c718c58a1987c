/** Operators, attributes and slices of Python's values. */
import { percentFormat, repeated, textMethod } from "./text.ts";
import {
  type Callable,
  compare,
  contains,
  equal,
  intOf,
  numberOf,
  PyFloat,
  PyNamespace,
  PyTuple,
  representation,
  textOf,
  typeName,
  type Value,
} from "./values.ts";

/** The longest `range`, as in Jinja's sandbox, which transformers uses. */
export const LONGEST_RANGE = 100_000;

/** Returns the value of a binary operator, except for `and` and `or`, which may not evaluate their right side. */
export function operate(operator: string, left: Value, right: Value): Value {
  switch (operator) {
    case "==":
      return equal(left, right);
    case "!=":
      return !equal(left, right);
    case "in":
    case "not in":
      return contains(right, left) === (operator === "in");
    case "~":
      return textOf(left) + textOf(right);
    case "<":
      return compare(left, right) < 0;
    case ">":
      return compare(left, right) > 0;
    case "<=":
      return compare(left, right) <= 0;
    case ">=":
      return compare(left, right) >= 0;
    default:
      return calculate(operator, left, right);
  }
}

function calculate(operator: string, left: Value, right: Value): Value {
  if (operator === "%" && typeof left === "string") return percentFormat(left, right, representation);
  if (operator === "+") {
    if (typeof left === "string" && typeof right === "string") return left + right;
    if (left instanceof PyTuple && right instanceof PyTuple) return PyTuple.from([...left, ...right]);
    if (Array.isArray(left) && Array.isArray(right) && typeName(left) === typeName(right)) return [...left, ...right];
  }
  if (operator === "*") {
    const [sequence, times] = typeof left === "string" || Array.isArray(left) ? [left, right] : [right, left];
    if (typeof sequence === "string") return repeated(sequence, intOf(times, "the number of repetitions"));
    if (Array.isArray(sequence)) {
      const count = Math.max(0, intOf(times, "the number of repetitions"));
      if (sequence.length * count > LONGEST_RANGE) throw new RangeError(`a list of more than ${LONGEST_RANGE} items`);
      return Array.from({ length: count }, () => [...sequence]).flat();
    }
  }
  const [leftNumber, rightNumber] = [numberOf(left), numberOf(right)];
  if (leftNumber === undefined || rightNumber === undefined)
    throw new TypeError(`unsupported operand types for ${operator}: '${typeName(left)}' and '${typeName(right)}'`);
  if ("/%".includes(operator[0]!) && rightNumber === 0) throw new RangeError("division by zero");
  const whole = !(left instanceof PyFloat || right instanceof PyFloat);
  const result = (number: number, isInt = whole) => {
    if (isInt && !Number.isSafeInteger(number)) throw new RangeError(`${number} is not supported; at most 2^53`);
    return isInt ? number : new PyFloat(number);
  };
  switch (operator) {
    case "+":
      return result(leftNumber + rightNumber);
    case "-":
      return result(leftNumber - rightNumber);
    case "*":
      return result(leftNumber * rightNumber);
    case "/":
      return new PyFloat(leftNumber / rightNumber);
    case "//":
      return result(Math.floor(leftNumber / rightNumber));
    case "%":
      return result(leftNumber - rightNumber * Math.floor(leftNumber / rightNumber));
    case "**":
      return result(leftNumber ** rightNumber, whole && rightNumber >= 0);
    default:
      throw new SyntaxError(`the operator ${operator} is not supported`);
  }
}

export const itemOf = (object: Value, key: string): Value => (object instanceof Map ? object.get(key) : undefined);

export function attributeOf(object: Value, name: string): Value {
  if (typeof object === "string") return textMethod(object, name);
  if (object instanceof PyNamespace) return object.attributes.get(name);
  if (object instanceof Map) return dictMethod(object, name);
  return Array.isArray(object) ? listMethod(object, name) : undefined;
}

function dictMethod(dict: Map<string, Value>, name: string): Callable | undefined {
  switch (name) {
    case "get":
      return ({ positional: [key, missing = null] }) => (dict.has(key as string) ? dict.get(key as string) : missing);
    case "items":
      return () => [...dict].map((entry) => PyTuple.from(entry));
    case "keys":
      return () => [...dict.keys()];
    case "values":
      return () => [...dict.values()];
    case "copy":
      return () => new Map(dict);
    default:
      return undefined;
  }
}

/** Jinja's sandbox lets templates change no list. */
function listMethod(list: readonly Value[], name: string): Callable | undefined {
  if (name === "count") return ({ positional: [item] }) => list.filter((each) => equal(each, item)).length;
  if (name !== "index") return undefined;
  return ({ positional: [item] }) => {
    const at = list.findIndex((each) => equal(each, item));
    if (at < 0) throw new Error(`${representation(item)} is not in list`);
    return at;
  };
}

/** Python's `items[start:stop:step]`. */
export function sliced<T>(items: readonly T[], start: number | undefined, stop: number | undefined, step: number): T[] {
  if (step === 0) throw new RangeError("slice step cannot be zero");
  const [low, high] = step > 0 ? [0, items.length] : [-1, items.length - 1];
  const bound = (value: number | undefined, missing: number) =>
    value === undefined ? missing : Math.min(Math.max(value < 0 ? value + items.length : value, low), high);
  const end = bound(stop, step > 0 ? high : low);
  const chosen: T[] = [];
  for (let at = bound(start, step > 0 ? low : high); step > 0 ? at < end : at > end; at += step)
    chosen.push(items[at]!);
  return chosen;
}
