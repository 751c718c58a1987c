import type { SyntaxNode } from "@lezer/common";
import { parser } from "@lezer/python";

/** A statement of a program, and where a line can be inserted after it. */
export interface Statement {
  node: SyntaxNode;
  /** The grammar's name, e.g. `AssignStatement`, `ForStatement`, `FunctionDefinition`. */
  kind: string;
  /** White space before the statement, and before a line that is inserted after it. */
  indentation: string;
  /** Offset of the end of its last line, without the line break; undefined if nothing can be inserted there. */
  end: number | undefined;
  /** Suites of a compound statement: branches, loop body, handlers, function body. */
  bodies: Body[];
}

export interface Body {
  statements: Statement[];
  /** The suite is on the header's line, as in `if x: y = 1`: nothing can be inserted after its statements. */
  inline: boolean;
}

export interface Program {
  text: string;
  statements: Statement[];
  /** Offsets of lines that consist of one expression statement, without indentation. */
  expressionLines: Set<number>;
}

/** Returns the statements of a Python program; undefined if it has a syntax error. */
export function parseProgram(text: string): Program | undefined {
  const root = parser.parse(forGrammar(text)).topNode;
  const expressionLines = new Set<number>();
  let broken = false;
  root.cursor().iterate(({ type, name, from, to }) => {
    broken ||= type.isError;
    if (name === "ExpressionStatement") {
      const start = lineStart(text, from);
      if (/^[ \t\f]*$/.test(text.slice(start, from)) && /^(\r|\n|$)/.test(text.slice(to, to + 1)))
        expressionLines.add(start);
    }
    return !broken;
  });
  if (broken) return undefined;
  const statements = statementsOf(root, text);
  return isEven(statements) ? { text, statements, expressionLines } : undefined;
}

/**
 * Returns the program with constructs replaced that the grammar does not know, at unchanged offsets: the byte order mark, `print` as a
 * plain name (a keyword of Python 2), numbers such as `1.` and a bare `yield`. The result is only parsed, never executed.
 */
function forGrammar(text: string): string {
  return text
    .replace(/^\uFEFF/, "\n")
    .replace(/\bprint\b(?![ \t]*\()/g, "prinT")
    .replace(/(?<![\w.])(?<digits>\d[\d_]*)\.(?![\w.])/g, "$<digits>0")
    .replace(/(?<![\w.])(?<digits>\d[\d_]*)\.(?=[eE][+-]?\d)/g, "$<digits>0")
    .replace(/^([ \t]*)yield(?=[ \t]*(?:#|[\r\n]|$))/gm, "$1break");
}

/** Returns whether the statements of every suite have the same indentation, which Python requires and the grammar does not check. */
function isEven(statements: Statement[], inline = false): boolean {
  const [first] = statements;
  return statements.every(
    ({ indentation, bodies }) =>
      (inline || indentation === first?.indentation) && bodies.every((body) => isEven(body.statements, body.inline)),
  );
}

function statementsOf(parent: SyntaxNode, text: string): Statement[] {
  const found: Statement[] = [];
  for (const node of childrenOf(parent)) {
    if (node.name === "StatementGroup") {
      // `a; b`: a line after either of them follows both. The group's node includes the line break.
      const parts = childrenOf(node).filter(isStatement);
      for (const part of parts) found.push(statement(part, { from: node.from, to: parts.at(-1)!.to }, text));
    } else if (isStatement(node)) found.push(statement(node, node, text));
  }
  return found;
}

const isStatement = ({ name }: SyntaxNode) => /Statement$|Definition$/.test(name);

export function childrenOf(node: SyntaxNode): SyntaxNode[] {
  const children = [];
  for (let child = node.firstChild; child; child = child.nextSibling) children.push(child);
  return children;
}

/** @param line the node that has the line to itself: the statement, or its group */
function statement(node: SyntaxNode, line: { from: number; to: number }, text: string): Statement {
  const isDecorated = node.name === "DecoratedStatement";
  const defined = (isDecorated && (node.getChild("FunctionDefinition") ?? node.getChild("ClassDefinition"))) || node;
  const bodies = bodiesOf(defined, text);
  return {
    node: defined,
    kind: defined.name,
    indentation: /[ \t\f]*$/.exec(text.slice(lineStart(text, line.from), line.from))?.[0] ?? "",
    end: bodies.length > 0 ? lastEnd(bodies, text) : lineEnd(text, line.to),
    bodies,
  };
}

function bodiesOf(node: SyntaxNode, text: string): Body[] {
  const clauses = node.getChildren("MatchBody").flatMap((body) => body.getChildren("MatchClause"));
  return [node, ...clauses]
    .flatMap((clause) => clause.getChildren("Body"))
    .map((body) => {
      const statements = statementsOf(body, text);
      const first = statements[0]?.node.from ?? body.to;
      return { statements, inline: !/[\r\n]/.test(text.slice(body.from, first)) };
    });
}

/** Returns where a compound statement ends: at the last line of its last suite (its node includes blank lines). */
function lastEnd(bodies: Body[], text: string): number | undefined {
  const last = bodies.at(-1)!;
  const statement = last.statements.at(-1);
  if (!statement) return undefined;
  return statement.bodies.length > 0 ? statement.end : (statement.end ?? lineEnd(text, statement.node.to));
}

function lineStart(text: string, offset: number): number {
  return Math.max(text.lastIndexOf("\n", offset - 1), text.lastIndexOf("\r", offset - 1)) + 1;
}

/** Returns the end of the line if only `;` and a comment follow `offset` on it. */
function lineEnd(text: string, offset: number): number | undefined {
  const rest = /^[^\r\n]*/.exec(text.slice(offset))![0];
  return /^[ \t\f;]*(#.*)?$/.test(rest) ? offset + rest.length : undefined;
}

/** A call in a statement. */
export interface Call {
  node: SyntaxNode;
  /** Last name of the called path: `fit` of `model.fit(X)`. */
  name: string;
  /** Names before it, the nearest first: `["model"]`; calls and subscripts in between are skipped. */
  receivers: string[];
  /** Text between the parentheses. */
  arguments: string;
}

/** Returns the calls that a statement or expression makes itself, without calls in suites of a compound statement or in lambdas. */
export function callsOf(node: SyntaxNode, text: string): Call[] {
  const calls: Call[] = [];
  visit(node, (part) => {
    const list = part.name === "CallExpression" ? part.getChild("ArgList") : null;
    if (!list) return;
    const [name, ...receivers] = pathOf(part.firstChild, text);
    if (name !== undefined)
      calls.push({ node: part, name, receivers, arguments: text.slice(list.from + 1, list.to - 1) });
  });
  return calls;
}

/** Returns the node between the targets of an assignment or a `for` and their values. */
export function separatorOf(node: SyntaxNode): SyntaxNode | undefined {
  const name = { AssignStatement: "AssignOp", UpdateStatement: "UpdateOp", ForStatement: "in" }[node.name];
  return name === undefined ? undefined : node.getChildren(name).at(-1);
}

/** Returns the names that a statement binds and the expressions of their values; a `for` binds names from its iterable. */
export function assignmentOf(node: SyntaxNode, text: string): { targets: string[]; values: SyntaxNode[] } | undefined {
  const separator = separatorOf(node);
  if (!separator) return undefined;
  const children = childrenOf(node);
  const end = node.getChild("Body")?.from ?? node.to;
  const values = children.filter(({ from, name }) => from > separator.from && from < end && name !== ",");
  if (values.length === 0) return undefined;
  const targets: string[] = [];
  for (const child of children.filter(({ from, name }) => from < separator.from && name !== "TypeDef")) {
    if (child.name === "MemberExpression") targets.push(pathOf(child, text)[0] ?? "");
    else visit(child, (part) => part.name === "VariableName" && targets.push(text.slice(part.from, part.to)));
  }
  return { targets, values };
}

/** Visits a node and all nodes below it that are executed with it. */
export function visit(node: SyntaxNode, enter: (node: SyntaxNode) => void): void {
  enter(node);
  for (let child = node.firstChild; child; child = child.nextSibling)
    if (!/^(Body|MatchBody|LambdaExpression|FunctionDefinition|ClassDefinition|Comment)$/.test(child.name))
      visit(child, enter);
}

/** Returns names that are direct children of a node: in a `def`, `del`, `global` or import. */
export function variablesOf(node: SyntaxNode, text: string): string[] {
  return node.getChildren("VariableName").map(({ from, to }) => text.slice(from, to));
}

export function parametersOf(definition: SyntaxNode, text: string): string[] {
  const list = definition.getChild("ParamList");
  return list ? variablesOf(list, text) : [];
}

/** Returns the names in `a.b[0]().c`, the last one first: `["c", "b", "a"]`. */
function pathOf(node: SyntaxNode | null | undefined, text: string): string[] {
  switch (node?.name) {
    case "VariableName":
    case "PropertyName":
      return [text.slice(node.from, node.to)];
    case "MemberExpression":
      return [...pathOf(node.getChild("PropertyName"), text), ...pathOf(node.firstChild, text)];
    case "CallExpression":
      return pathOf(node.firstChild, text);
    case "ParenthesizedExpression":
      return pathOf(node.firstChild?.nextSibling, text);
    default:
      return [];
  }
}
