/**
 * Chat templates with the results of Jinja2 as transformers configures it. `@huggingface/jinja` parses them. It does not evaluate
 * them: it ignores the argument of `strip`, prints `true` for `True`, keeps a loop's variables from one turn to the next, lacks
 * `format` and `'x' * 3`, and has no bound. Its parser keeps no parentheses, so `a < b < c` is read as `(a < b) < c`, and
 * `1 + 2 ~ 'a'`, an error of Jinja2, as `(1 + 2) ~ 'a'`.
 */
import { Template as Parser } from "@huggingface/jinja";
import { Expressions } from "./expressions.ts";
import { GLOBALS } from "./globals.ts";
import { assign, type Node, type Scope } from "./scope.ts";
import { Steps, TEMPLATE_STEPS } from "./steps.ts";
import { type Callable, equal, fromJson, itemsOf, PyNamespace, PyTuple, textOf, type Value } from "./values.ts";

/** The most characters of a template. The longest of known models has 20,000. */
export const TEMPLATE_CHARACTERS = 200_000;
/** The most white space in a row: the parser's time grows with its square. */
const TEMPLATE_WHITE_SPACE = 10_000;

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
    return new Rendering(new Steps(steps)).block(this.#body, { variables: new Map(named), parent: globals });
  }
}

/** One rendering: the statements of a template. */
class Rendering {
  readonly #steps: Steps;
  readonly #expressions: Expressions;

  constructor(steps: Steps) {
    this.#steps = steps;
    this.#expressions = new Expressions(steps);
  }

  block(nodes: readonly Node[], scope: Scope): string {
    let text = "";
    for (const node of nodes) text += this.#statement(node, scope);
    return text;
  }

  #statement(node: Node, scope: Scope): string {
    this.#steps.spend(1);
    switch (node.type) {
      case "Comment":
        return "";
      case "If":
        return this.block((this.#expressions.isTrue(node.test, scope) ? node.body : node.alternate) as Node[], scope);
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
        const { positional, named } = this.#expressions.arguments(call.args as Node[], scope);
        return textOf(
          this.#expressions.call(call.callee, { positional, named: new Map(named).set("caller", caller) }, scope),
        );
      }
      case "FilterStatement": {
        const inner: Scope = { variables: new Map(), parent: scope };
        return textOf(this.#expressions.filter(node.filter as Node, this.block(node.body as Node[], inner), scope));
      }
      case "Break":
        throw new LoopEnd("break");
      case "Continue":
        throw new LoopEnd("continue");
      default: {
        const text = textOf(this.#steps.walked(this.#expressions.value(node, scope)));
        this.#steps.sized(text);
        return text;
      }
    }
  }

  #loop(node: Node, scope: Scope): string {
    const selection = node.iterable as Node;
    const test = selection.type === "SelectExpression" ? (selection.test as Node) : undefined;
    const all = itemsOf(this.#expressions.value((test ? selection.lhs : selection) as Node, scope));
    this.#steps.spend(all.length);
    const scopeOf = (item: Value): Scope => {
      const inner: Scope = { variables: new Map(), parent: scope };
      assign(node.loopvar as Node, item, inner);
      return inner;
    };
    const items = test ? all.filter((item) => this.#expressions.isTrue(test, scopeOf(item))) : all;
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
      ? this.#expressions.value(node.value as Node, scope)
      : this.block(node.body as Node[], { variables: new Map(), parent: scope });
    const target = node.assignee as Node;
    if (target.type !== "MemberExpression") {
      assign(target, value, scope);
      return;
    }
    const namespace = this.#expressions.value(target.object as Node, scope);
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
      for (const [name, value] of open) inner.variables.set(name, this.#expressions.value(value, inner));
      if (rest.has("caller")) inner.variables.set("caller", rest.get("caller"));
      rest.delete("caller");
      inner.variables.set("varargs", PyTuple.from(positional.slice(parameters.length)));
      inner.variables.set("kwargs", rest);
      return this.block(body as Node[], inner);
    };
  }
}
