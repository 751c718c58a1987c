/** The names that a part of a template sees. */
import { itemsOf, type Value } from "./values.ts";

/** A part of the parsed template; the parser does not export the types. */
export interface Node {
  readonly type: string;
  readonly [field: string]: unknown;
}

export type Scope = { readonly variables: Map<string, Value>; readonly parent?: Scope };

/** Returns undefined for an unknown name. */
export function lookUp(name: string, scope: Scope | undefined): Value {
  for (; scope !== undefined; scope = scope.parent) if (scope.variables.has(name)) return scope.variables.get(name);
  return undefined;
}

/** Sets a name, or the names of a tuple. */
export function assign(target: Node, value: Value, scope: Scope): void {
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
