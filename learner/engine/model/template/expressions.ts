/** Evaluates the expressions of a chat template as Jinja2 does. */
import { applyFilter, applyTest } from "./filters.ts";
import { attributeOf, itemOf, operate, sliced } from "./operations.ts";
import { lookUp, type Node, type Scope } from "./scope.ts";
import type { Steps } from "./steps.ts";
import {
  type Arguments,
  intOf,
  isTrue,
  itemsOf,
  numberOf,
  PyFloat,
  PyTuple,
  stringOf,
  textOf,
  typeName,
  type Value,
} from "./values.ts";

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

export class Expressions {
  readonly #steps: Steps;

  constructor(steps: Steps) {
    this.#steps = steps;
  }

  isTrue(node: unknown, scope: Scope): boolean {
    return isTrue(this.value(node as Node, scope));
  }

  value(node: Node, scope: Scope): Value {
    this.#steps.spend(1);
    switch (node.type) {
      case "IntegerLiteral":
      case "StringLiteral":
        return node.value as Value;
      case "FloatLiteral":
        return new PyFloat(node.value as number);
      case "ArrayLiteral":
        return (node.value as Node[]).map((item) => this.value(item, scope));
      case "TupleLiteral":
        return PyTuple.from(node.value as Node[], (item) => this.value(item, scope));
      case "ObjectLiteral": {
        const entries = [...(node.value as Map<Node, Node>)].map(([key, value]): [string, Value] => [
          stringOf(this.value(key, scope), "a key of a dict"),
          this.value(value, scope),
        ]);
        return new Map(entries);
      }
      case "Identifier":
        return lookUp(node.value as string, scope);
      case "CallExpression":
        return this.call(node.callee, this.arguments(node.args as Node[], scope), scope);
      case "MemberExpression":
        return this.#member(node, scope);
      case "UnaryExpression":
        return this.#unary(node, scope);
      case "BinaryExpression":
        return this.#binary(node, scope);
      case "FilterExpression":
        return this.filter(node.filter as Node, this.value(node.operand as Node, scope), scope);
      case "TestExpression":
        return this.#test(node, scope);
      case "SelectExpression":
        return this.isTrue(node.test, scope) ? this.value(node.lhs as Node, scope) : undefined;
      case "Ternary":
        return this.value((this.isTrue(node.condition, scope) ? node.trueExpr : node.falseExpr) as Node, scope);
      default:
        throw new SyntaxError(`${node.type} is not supported`);
    }
  }

  arguments(nodes: readonly Node[], scope: Scope): Arguments {
    const positional: Value[] = [];
    const named = new Map<string, Value>();
    for (const node of nodes) {
      if (node.type === "SpreadExpression") positional.push(...itemsOf(this.value(node.argument as Node, scope)));
      else if (node.type === "KeywordArgumentExpression")
        named.set((node.key as { value: string }).value, this.value(node.value as Node, scope));
      else if (node.type === "KeywordSpreadExpression") {
        const values = this.value(node.argument as Node, scope);
        if (!(values instanceof Map)) throw new TypeError(`argument after ** is a ${typeName(values)}, not a dict`);
        for (const [name, value] of values) named.set(name, value);
      } else positional.push(this.value(node, scope));
    }
    return { positional, named };
  }

  call(callee: unknown, args: Arguments, scope: Scope): Value {
    const called = this.value(callee as Node, scope);
    if (typeof called !== "function") throw new TypeError(`'${typeName(called)}' object is not callable`);
    for (const each of [...args.positional, ...args.named.values()]) this.#steps.walked(each);
    return this.#steps.sized(called(args));
  }

  filter(node: Node, value: Value, scope: Scope): Value {
    const isCall = node.type === "CallExpression";
    const { value: name } = (isCall ? node.callee : node) as { value: string };
    const args = isCall ? this.arguments(node.args as Node[], scope) : { positional: [], named: new Map() };
    if (SHALLOW_FILTERS.has(name)) this.#steps.sized(value);
    else for (const each of [value, ...args.positional, ...args.named.values()]) this.#steps.walked(each);
    return this.#steps.sized(applyFilter(name, value, args));
  }

  #test(node: Node, scope: Scope): boolean {
    const { value: name } = node.test as { value: string };
    return applyTest(name, this.#steps.walked(this.value(node.operand as Node, scope)), undefined) !== node.negate;
  }

  #member(node: Node, scope: Scope): Value {
    const object = this.value(node.object as Node, scope);
    const property = node.property as Node;
    if (property.type === "SliceExpression") return this.#slice(object, property, scope);
    const isAttribute = !node.computed && property.type === "Identifier";
    const key = isAttribute ? (property.value as string) : this.value(property, scope);
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
      const value = node === undefined || node === null ? null : this.value(node as Node, scope);
      return value === null || value === undefined ? undefined : intOf(value, "a bound of a slice");
    };
    const items = typeof object === "string" ? [...object] : object;
    if (!Array.isArray(items)) throw new TypeError(`'${typeName(object)}' object has no slices`);
    const chosen = sliced(items, bound(start), bound(stop), bound(step) ?? 1);
    if (typeof object === "string") return this.#steps.sized(chosen.join(""));
    return this.#steps.sized(object instanceof PyTuple ? PyTuple.from(chosen) : chosen);
  }

  #unary(node: Node, scope: Scope): Value {
    const { value: operator } = node.operator as { value: string };
    const value = this.value(node.argument as Node, scope);
    if (operator === "not") return !isTrue(value);
    const number = numberOf(value);
    if (number === undefined) throw new TypeError(`bad operand type for unary ${operator}: '${typeName(value)}'`);
    const result = operator === "-" ? -number : number;
    return value instanceof PyFloat ? new PyFloat(result) : result;
  }

  #binary(node: Node, scope: Scope): Value {
    const { value: operator } = node.operator as { value: string };
    const left = this.value(node.left as Node, scope);
    if (operator === "and") return isTrue(left) ? this.value(node.right as Node, scope) : left;
    if (operator === "or") return isTrue(left) ? left : this.value(node.right as Node, scope);
    const right = this.value(node.right as Node, scope);
    this.#steps.walked(left);
    this.#steps.walked(right);
    return this.#steps.sized(operate(operator, left, right));
  }
}

const nameOf = ({ type, value, property }: Node): string =>
  type === "Identifier" ? String(value) : type === "MemberExpression" ? nameOf(property as Node) : "a value";
