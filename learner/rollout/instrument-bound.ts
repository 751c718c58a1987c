/** Determines which names are certainly bound where a marker prints them, because a marker must not fail where the program would not. */
import type { SyntaxNode } from "@lezer/common";
import { insertedLine, lines } from "./instrument.ts";
import { childrenOf, parametersOf, parseProgram, type Statement, separatorOf, variablesOf } from "./instrument-tree.ts";

/**
 * Returns whether every value that a marker of `text` prints is bound on every path to the marker. Names that a branch, handler or loop
 * binds count after it only if all branches of an `if` bind them, or if the loop is over `range(3)`.
 */
export function valuesAreBound(text: string): boolean {
  const { statements } = parseProgram(text)!;
  const anywhere = new Set(namesIn(statements, text, deletedBy));
  /** @param bound names so far; afterwards includes the statements' own. @param outer names around a function that are visible in it */
  const visit = (statements: readonly Statement[], bound: Set<string>, outer?: Set<string>): boolean =>
    statements.every((statement) => {
      const { node, kind, bodies } = statement;
      const printed = insertedLine.exec(text.slice(node.from, node.to))?.[2].split(", ").slice(1) ?? [];
      if (!printed.every((path) => isBound(path, bound, text.slice(0, node.from)))) return false;
      if (kind === "FunctionDefinition") {
        const inner = new Set(outer ?? bound);
        for (const name of [...anywhere, ...localsOf(statement, text)]) inner.delete(name);
        for (const name of parametersOf(node, text)) inner.add(name);
        return bodies.every((body) => visit(body.statements, inner));
      }
      // names of a class are not visible in its methods
      if (kind === "ClassDefinition") return bodies.every((body) => visit(body.statements, new Set(bound), bound));
      for (const name of namesIn([statement], text, deletedBy)) bound.delete(name);
      const ways = bodies.map(() => new Set([...bound, ...(kind === "ForStatement" ? boundBy(node, text) : [])]));
      if (!bodies.every((body, i) => visit(body.statements, ways[i]!, outer))) return false;
      for (const name of boundAfter(statement, ways, text)) bound.add(name);
      return true;
    });
  return visit(statements, new Set());
}

/** @param ways names that are bound at the end of each body */
function boundAfter({ node, kind, bodies }: Statement, ways: readonly Set<string>[], text: string): Iterable<string> {
  const source = text.slice(node.from, node.to);
  const [first, ...others] = ways;
  if (first === undefined) return boundBy(node, text);
  if (kind === "IfStatement" && node.getChild("else"))
    return [...first].filter((name) => others.every((way) => way.has(name)));
  if (kind === "WithStatement") return /\bsuppress\b/.test(source) ? [] : first;
  const leaves = /\b(break|continue)\b/.test(text.slice(node.from, bodies[0]!.statements.at(-1)!.node.to));
  return kind === "ForStatement" && !leaves && /^for\s+\w+\s+in\s+range\(\s*0*[1-9]\d*\s*\)\s*:/.test(source)
    ? first
    : [];
}

/** Returns whether the path is a bound name, or an attribute of one that the program has spelled out `before`. */
function isBound(path: string, bound: ReadonlySet<string>, before: string): boolean {
  if (!bound.has(path.split(".")[0]!)) return false;
  if (!path.includes(".")) return true;
  // and does not call: `print(loss.item)` is useless
  const spelled = new RegExp(String.raw`(?<![\w.])${path.replaceAll(".", String.raw`\.`)}(?![\w(])`);
  return lines(before).some((line) => !insertedLine.test(line.text) && spelled.test(line.text));
}

/** Returns names that an assignment or a `for` binds; attributes and elements bind no name. */
function boundBy(node: SyntaxNode, text: string): string[] {
  const end = separatorOf(node)?.from;
  if (end === undefined) return [];
  const names: string[] = [];
  const visit = (part: SyntaxNode) => {
    if (part.from >= end || part.name === "MemberExpression" || part.name === "TypeDef") return;
    if (part.name === "VariableName") names.push(text.slice(part.from, part.to));
    childrenOf(part).forEach(visit);
  };
  visit(node);
  return names;
}

function deletedBy(node: SyntaxNode, text: string): string[] {
  return node.name === "DeleteStatement" ? variablesOf(node, text) : [];
}

/** Returns names that belong to a function wherever it reads them, so that outer names are hidden. */
function localsOf({ bodies }: Statement, text: string): Set<string> {
  const statements = bodies.flatMap((body) => body.statements);
  const own = new Set(
    namesIn(statements, text, (node) => [
      ...boundBy(node, text),
      // for `with a as b` and handlers this includes names that are only read; that is stricter than needed, but safe
      ...(/^(Import|With|Try)Statement$|Definition$/.test(node.name) ? variablesOf(node, text) : []),
    ]),
  );
  for (const name of namesIn(statements, text, (node) =>
    node.name === "ScopeStatement" ? variablesOf(node, text) : [],
  ))
    own.delete(name);
  return own;
}

/** Returns what `of` finds in statements and their suites, except in functions and classes. */
function namesIn(
  statements: readonly Statement[],
  text: string,
  of: (node: SyntaxNode, text: string) => readonly string[],
): string[] {
  return statements.flatMap(({ node, kind, bodies }) => {
    const inner = /Definition$/.test(kind) ? [] : bodies.flatMap((body) => namesIn(body.statements, text, of));
    return [...of(node, text), ...inner];
  });
}
