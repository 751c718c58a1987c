/**
 * Chat templates with the results of Jinja2 as transformers configures it. `@huggingface/jinja` parses them. It does not evaluate
 * them: it ignores the argument of `strip`, prints `true` for `True`, keeps a loop's variables from one turn to the next, lacks
 * `format` and `'x' * 3`, and has no bound. Its parser keeps no parentheses, so `a < b < c` is read as `(a < b) < c`, and
 * `1 + 2 ~ 'a'`, an error of Jinja2, as `(1 + 2) ~ 'a'`.
 */
import { Template as Parser } from "@huggingface/jinja";
import { applyFilter, applyTest } from "./template-filters.ts";
import { GLOBALS } from "./template-globals.ts";
import { attributeOf, calculate, itemOf, sliced } from "./template-operations.ts";
import {
  type Arguments,
  type Callable,
  compare,
  contains,
  equal,
  intOf,
  isTrue,
  itemsOf,
  numberOf,
  PyFloat,
  PyNamespace,
  PyTuple,
  stringOf,
  textOf,
  typeName,
  type Value,
} from "./template-values.ts";

/**
 * The most steps of one rendering: an evaluated part of the template, an item of a loop, 64 characters of text, or 16 items of a list.
 * Templates of known models take some 100 for a message. This many steps take 0.5 to 2 s on one core.
 */
export const TEMPLATE_STEPS = 2_000_000;
/** The most characters of a template. The longest of known models has 20,000. */
export const TEMPLATE_CHARACTERS = 200_000;
/** The most white space in a row: the parser's time grows with its square. */
const TEMPLATE_WHITE_SPACE = 10_000;

/** Filters that look at no item of an item. */
const SHALLOW_FILTERS = new Set([
  "length",
  "count",
  "first",
  "last",
  "list",
  "reverse",
  "items",
  "default",
  "d",
  "safe",
]);

/** A part of the parsed template; the parser does not export the types. */
interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

type Scope = { readonly variables: Map<string, Value>; readonly parent?: Scope };

class LoopEnd extends Error {
  readonly kind: "break" | "continue";
  constructor(kind: "break" | "continue") {
    super(`${kind} outside of a loop`);
    this.kind = kind;
  }
}

export class Template {
  readonly #body: readonly Node[];

  /** @throws Error if it is too long or does not parse */
  constructor(source: string) {
    if (source.length > TEMPLATE_CHARACTERS)
      throw new RangeError(`it has ${source.length} characters; at most ${TEMPLATE_CHARACTERS}`);
    if (new RegExp(`\\s{${TEMPLATE_WHITE_SPACE + 1}}`).test(source))
      throw new RangeError(`it has more than ${TEMPLATE_WHITE_SPACE} characters of white space in a row`);
    this.#body = (new Parser(source).parsed as unknown as { body: Node[] }).body;
  }

  /**
   * @param variables JSON values
   * @throws Error where Jinja2 does, for what is not supported, and after `steps`
   */
  render(variables: Readonly<Record<string, unknown>>, { steps = TEMPLATE_STEPS } = {}): string {
    const named = Object.entries(variables).map(([name, value]): [string, Value] => [name, fromJson(value)]);
    const globals: Scope = { variables: new Map(GLOBALS) };
    return new Rendering(steps).block(this.#body, { variables: new Map(named), parent: globals });
  }
}

/** One rendering and the steps that are left to it. */
class Rendering {
  readonly #steps: number;
  #left: number;

  constructor(steps: number) {
    this.#steps = steps;
    this.#left = steps;
  }

  #spend(steps: number): void {
    this.#left -= steps;
    if (this.#left < 0) throw new RangeError(`it takes more than ${this.#steps} steps; shorten the chat or its loops`);
  }

  block(nodes: readonly Node[], scope: Scope): string {
    let text = "";
    for (const node of nodes) text += this.#statement(node, scope);
    return text;
  }

  #statement(node: Node, scope: Scope): string {
    this.#spend(1);
    switch (node.type) {
      case "Comment":
        return "";
      case "If":
        return this.block((this.#isTrue(node.test, scope) ? node.body : node.alternate) as Node[], scope);
      case "For":
        return this.#loop(node, scope);
      case "Set":
        this.#set(node, scope);
        return "";
      case "Macro":
        scope.variables.set((node.name as { value: string }).value, this.#macro(node.args as Node[], node.body, scope));
        return "";
      case "CallStatement": {
        const call = node.call as Node;
        const caller = this.#macro((node.callerArgs ?? []) as Node[], node.body, scope);
        const { positional, named } = this.#arguments(call.args as Node[], scope);
        return textOf(this.#call(call.callee, { positional, named: new Map(named).set("caller", caller) }, scope));
      }
      case "FilterStatement": {
        const inner: Scope = { variables: new Map(), parent: scope };
        return textOf(this.#filter(node.filter as Node, this.block(node.body as Node[], inner), scope));
      }
      case "Break":
        throw new LoopEnd("break");
      case "Continue":
        throw new LoopEnd("continue");
      default: {
        const text = textOf(this.#walked(this.#value(node, scope)));
        this.#sized(text);
        return text;
      }
    }
  }

  #loop(node: Node, scope: Scope): string {
    const selection = node.iterable as Node;
    const test = selection.type === "SelectExpression" ? (selection.test as Node) : undefined;
    const all = itemsOf(this.#value((test ? selection.lhs : selection) as Node, scope));
    this.#spend(all.length);
    const scopeOf = (item: Value): Scope => {
      const inner: Scope = { variables: new Map(), parent: scope };
      assign(node.loopvar as Node, item, inner);
      return inner;
    };
    const items = test ? all.filter((item) => this.#isTrue(test, scopeOf(item))) : all;
    let text = "";
    let last: Value[] | undefined;
    let finished = false; // Jinja's else follows a loop of which no turn came to its end
    for (const [index, item] of items.entries()) {
      const inner = scopeOf(item);
      inner.variables.set(
        "loop",
        new Map<string, Value>([
          ["index", index + 1],
          ["index0", index],
          ["revindex", items.length - index],
          ["revindex0", items.length - index - 1],
          ["first", index === 0],
          ["last", index === items.length - 1],
          ["length", items.length],
          ["depth", 1],
          ["depth0", 0],
          ["previtem", items[index - 1]],
          ["nextitem", items[index + 1]],
          ["cycle", ({ positional }) => positional[index % positional.length]],
          [
            "changed",
            ({ positional }) => {
              const changed = last === undefined || !equal([...positional], last);
              last = [...positional];
              return changed;
            },
          ],
        ]),
      );
      let ended: LoopEnd | undefined;
      for (const statement of node.body as Node[]) {
        try {
          text += this.#statement(statement, inner);
        } catch (error) {
          if (!(error instanceof LoopEnd)) throw error;
          ended = error;
          break;
        }
      }
      if (ended?.kind === "break") break;
      finished ||= ended === undefined;
    }
    if (!finished) text += this.block(node.defaultBlock as Node[], { variables: new Map(), parent: scope });
    return text;
  }

  #set(node: Node, scope: Scope): void {
    const value = node.value
      ? this.#value(node.value as Node, scope)
      : this.block(node.body as Node[], { variables: new Map(), parent: scope });
    const target = node.assignee as Node;
    if (target.type !== "MemberExpression") {
      assign(target, value, scope);
      return;
    }
    const namespace = this.#value(target.object as Node, scope);
    if (!(namespace instanceof PyNamespace)) throw new TypeError("cannot assign attribute on non-namespace object");
    namespace.attributes.set((target.property as { value: string }).value, value);
  }

  #macro(parameters: readonly Node[], body: unknown, scope: Scope): Callable {
    return ({ positional, named }) => {
      const inner: Scope = { variables: new Map(), parent: scope };
      const rest = new Map(named);
      const open: [string, Node][] = [];
      for (const [index, parameter] of parameters.entries()) {
        const name = ((parameter.key ?? parameter) as { value: string }).value;
        if (index < positional.length) inner.variables.set(name, positional[index]);
        else if (rest.has(name)) inner.variables.set(name, rest.get(name));
        else {
          inner.variables.set(name, undefined);
          if (parameter.type === "KeywordArgumentExpression") open.push([name, parameter.value as Node]);
        }
        rest.delete(name);
      }
      for (const [name, value] of open) inner.variables.set(name, this.#value(value, inner));
      if (rest.has("caller")) inner.variables.set("caller", rest.get("caller"));
      rest.delete("caller");
      inner.variables.set("varargs", PyTuple.from(positional.slice(parameters.length)));
      inner.variables.set("kwargs", rest);
      return this.block(body as Node[], inner);
    };
  }

  #isTrue(node: unknown, scope: Scope): boolean {
    return isTrue(this.#value(node as Node, scope));
  }

  #value(node: Node, scope: Scope): Value {
    this.#spend(1);
    switch (node.type) {
      case "IntegerLiteral":
      case "StringLiteral":
        return node.value as Value;
      case "FloatLiteral":
        return new PyFloat(node.value as number);
      case "ArrayLiteral":
        return (node.value as Node[]).map((item) => this.#value(item, scope));
      case "TupleLiteral":
        return PyTuple.from(node.value as Node[], (item) => this.#value(item, scope));
      case "ObjectLiteral": {
        const entries = [...(node.value as Map<Node, Node>)].map(([key, value]): [string, Value] => [
          stringOf(this.#value(key, scope), "a key of a dict"),
          this.#value(value, scope),
        ]);
        return new Map(entries);
      }
      case "Identifier":
        return lookUp(node.value as string, scope);
      case "CallExpression":
        return this.#call(node.callee, this.#arguments(node.args as Node[], scope), scope);
      case "MemberExpression":
        return this.#member(node, scope);
      case "UnaryExpression":
        return this.#unary(node, scope);
      case "BinaryExpression":
        return this.#binary(node, scope);
      case "FilterExpression":
        return this.#filter(node.filter as Node, this.#value(node.operand as Node, scope), scope);
      case "TestExpression":
        return this.#test(node, scope);
      case "SelectExpression":
        return this.#isTrue(node.test, scope) ? this.#value(node.lhs as Node, scope) : undefined;
      case "Ternary":
        return this.#value((this.#isTrue(node.condition, scope) ? node.trueExpr : node.falseExpr) as Node, scope);
      default:
        throw new SyntaxError(`${node.type} is not supported`);
    }
  }

  #arguments(nodes: readonly Node[], scope: Scope): Arguments {
    const positional: Value[] = [];
    const named = new Map<string, Value>();
    for (const node of nodes) {
      if (node.type === "SpreadExpression") positional.push(...itemsOf(this.#value(node.argument as Node, scope)));
      else if (node.type === "KeywordArgumentExpression")
        named.set((node.key as { value: string }).value, this.#value(node.value as Node, scope));
      else if (node.type === "KeywordSpreadExpression") {
        const values = this.#value(node.argument as Node, scope);
        if (!(values instanceof Map)) throw new TypeError(`argument after ** is a ${typeName(values)}, not a dict`);
        for (const [name, value] of values) named.set(name, value);
      } else positional.push(this.#value(node, scope));
    }
    return { positional, named };
  }

  #call(callee: unknown, args: Arguments, scope: Scope): Value {
    const called = this.#value(callee as Node, scope);
    if (typeof called !== "function") throw new TypeError(`'${typeName(called)}' object is not callable`);
    for (const each of [...args.positional, ...args.named.values()]) this.#walked(each);
    return this.#sized(called(args));
  }

  /** Pays for a new value by its length, so that no loop can double a text or a list for long. */
  #sized(value: Value): Value {
    if (typeof value === "string") this.#spend(value.length / 64);
    else if (Array.isArray(value)) this.#spend(value.length / 16);
    return value;
  }

  /** Pays for a walk through a value, whose lists may hold one list many times. */
  #walked(value: Value): Value {
    this.#spend(sizeOf(value) / 16);
    return value;
  }

  #filter(node: Node, value: Value, scope: Scope): Value {
    const isCall = node.type === "CallExpression";
    const { value: name } = (isCall ? node.callee : node) as { value: string };
    const args = isCall ? this.#arguments(node.args as Node[], scope) : { positional: [], named: new Map() };
    if (SHALLOW_FILTERS.has(name)) this.#sized(value);
    else for (const each of [value, ...args.positional, ...args.named.values()]) this.#walked(each);
    return this.#sized(applyFilter(name, value, args));
  }

  #test(node: Node, scope: Scope): boolean {
    const { value: name } = node.test as { value: string };
    return applyTest(name, this.#walked(this.#value(node.operand as Node, scope)), undefined) !== node.negate;
  }

  #member(node: Node, scope: Scope): Value {
    const object = this.#value(node.object as Node, scope);
    const property = node.property as Node;
    if (property.type === "SliceExpression") return this.#slice(object, property, scope);
    const isAttribute = !node.computed && property.type === "Identifier";
    const key = isAttribute ? (property.value as string) : this.#value(property, scope);
    if (object === undefined)
      throw new TypeError(`${nameOf(node.object as Node)} is undefined, so it has no ${textOf(key)}`);
    if (typeof key === "number" || typeof key === "boolean") {
      if (typeof object === "string") return [...object].at(Number(key));
      return Array.isArray(object) ? object.at(Number(key)) : undefined;
    }
    if (typeof key !== "string") return undefined;
    const [first, second] = isAttribute ? [attributeOf, itemOf] : [itemOf, attributeOf];
    const found = first(object, key);
    return found === undefined ? second(object, key) : found;
  }

  #slice(object: Value, { start, stop, step }: Node, scope: Scope): Value {
    const bound = (node: unknown) => {
      const value = node === undefined || node === null ? null : this.#value(node as Node, scope);
      return value === null || value === undefined ? undefined : intOf(value, "a bound of a slice");
    };
    const items = typeof object === "string" ? [...object] : object;
    if (!Array.isArray(items)) throw new TypeError(`'${typeName(object)}' object has no slices`);
    const chosen = sliced(items, bound(start), bound(stop), bound(step) ?? 1);
    if (typeof object === "string") return this.#sized(chosen.join(""));
    return this.#sized(object instanceof PyTuple ? PyTuple.from(chosen) : chosen);
  }

  #unary(node: Node, scope: Scope): Value {
    const { value: operator } = node.operator as { value: string };
    const value = this.#value(node.argument as Node, scope);
    if (operator === "not") return !isTrue(value);
    const number = numberOf(value);
    if (number === undefined) throw new TypeError(`bad operand type for unary ${operator}: '${typeName(value)}'`);
    const result = operator === "-" ? -number : number;
    return value instanceof PyFloat ? new PyFloat(result) : result;
  }

  #binary(node: Node, scope: Scope): Value {
    const { value: operator } = node.operator as { value: string };
    const left = this.#value(node.left as Node, scope);
    if (operator === "and") return isTrue(left) ? this.#value(node.right as Node, scope) : left;
    if (operator === "or") return isTrue(left) ? left : this.#value(node.right as Node, scope);
    const right = this.#value(node.right as Node, scope);
    this.#walked(left);
    this.#walked(right);
    switch (operator) {
      case "==":
        return equal(left, right);
      case "!=":
        return !equal(left, right);
      case "in":
      case "not in":
        return contains(right, left) === (operator === "in");
      case "~":
        return this.#sized(textOf(left) + textOf(right));
      case "<":
        return compare(left, right) < 0;
      case ">":
        return compare(left, right) > 0;
      case "<=":
        return compare(left, right) <= 0;
      case ">=":
        return compare(left, right) >= 0;
    }
    return this.#sized(calculate(operator, left, right));
  }
}

const sizes = new WeakMap<object, number>();

/** Items at all depths, counted again wherever they appear, and a quarter of the characters of texts. */
function sizeOf(value: Value): number {
  if (typeof value === "string") return value.length / 4;
  if (!(Array.isArray(value) || value instanceof Map)) return 1;
  const known = sizes.get(value);
  if (known !== undefined) return known;
  let size = 1;
  for (const item of value.values()) size += sizeOf(item);
  sizes.set(value, size);
  return size;
}

function lookUp(name: string, scope: Scope | undefined): Value {
  for (; scope !== undefined; scope = scope.parent) if (scope.variables.has(name)) return scope.variables.get(name);
  return undefined;
}

/** Sets a name, or the names of a tuple. */
function assign(target: Node, value: Value, scope: Scope): void {
  if (target.type === "Identifier") {
    scope.variables.set(target.value as string, value);
    return;
  }
  if (target.type !== "TupleLiteral") throw new SyntaxError(`cannot assign to ${target.type}`);
  const names = target.value as Node[];
  const items = itemsOf(value);
  if (items.length !== names.length) throw new Error(`${items.length} values for ${names.length} names`);
  for (const [index, name] of names.entries()) assign(name, items[index], scope);
}

function fromJson(json: unknown): Value {
  if (Array.isArray(json)) return json.map(fromJson);
  if (typeof json === "object" && json !== null)
    return new Map(Object.entries(json).map(([key, value]) => [key, fromJson(value)]));
  if (typeof json === "number" && !Number.isInteger(json)) return new PyFloat(json);
  return json as Value;
}

const nameOf = ({ type, value, property }: Node): string =>
  type === "Identifier" ? String(value) : type === "MemberExpression" ? nameOf(property as Node) : "a value";
