import type { Marker } from "../../proto/markers.ts";
import {
  type Event,
  eventsOf,
  type FunctionSummary,
  type Loss,
  lossOf,
  type StatementEvents,
} from "./instrument-events.ts";
import { fromTest, learnNames, type Names } from "./instrument-names.ts";
import { type Body, type Program, parametersOf, type Statement, variablesOf } from "./instrument-tree.ts";

/** A marker for a line of its own after `offset`, the end of a line. */
interface Place {
  offset: number;
  indentation: string;
  marker: Marker;
  /** A name whose value is printed with the marker. */
  value?: string;
}

const markerOf: Record<Event, Marker> = {
  load: "loaded data",
  define: "defined model",
  train: "trained model",
  predict: "predicted test labels",
};

/** For each event, the events that follow it. */
const later: Record<Event, Event[]> = {
  load: ["define", "train", "predict"],
  define: ["train"],
  train: [],
  predict: [],
};

/** Most losses that get a marker. */
const maxLosses = 8;

/** Loaders, batches, rows, and a `range` with a step. */
const fineGrained = /load|batch|iter(rows|tuples)|(^|_)dl(_|\b)|range\([^()]*(\([^()]*\)[^()]*)*,[^,]*,/i;

/** A statement with its events, including the events in its suites. */
interface Step extends StatementEvents {
  statement: Statement;
  /** A loop with very many passes. */
  isFine: boolean;
  loss: Loss | undefined;
  bodies: { steps: Step[]; inline: boolean }[];
}

/** Returns where the markers go in a program. */
export function markerPlaces(program: Program): Place[] {
  return new Placement(program).places();
}

class Placement {
  readonly #program: Program;
  readonly #functions = new Map<string, FunctionSummary>();
  readonly #places: Place[] = [];

  constructor(program: Program) {
    this.#program = program;
  }

  places(): Place[] {
    const { statements } = this.#program;
    // Collects all names first, so that a function sees globals that are set below it.
    const names: Names = { test: new Map(), kinds: new Map(), modelClasses: new Set() };
    this.#learn(statements, names);
    this.#functionsIn(statements, names);
    const steps = statements.map((statement) => this.#step(statement, names));
    this.#placeImports(steps);
    this.#placeScope(steps);
    return this.#places;
  }

  /** Learns kinds from the whole program, but test-set membership from one scope only, because a name like `x` has several meanings. */
  #learn(statements: Statement[], names: Names): void {
    for (const statement of statements) {
      learnNames(statement, this.#program.text, names);
      const inner = statement.kind === "FunctionDefinition" ? { ...names, test: new Map<string, boolean>() } : names;
      for (const body of statement.bodies) this.#learn(body.statements, inner);
    }
  }

  /** Returns the names known in a function: the names of the scopes around it, except its parameters and the names that it sets. */
  #namesIn({ node, bodies }: Statement, around: Names): Names {
    const { text } = this.#program;
    const names = { ...around, test: new Map(around.test) };
    for (const parameter of parametersOf(node, text)) names.test.delete(parameter);
    for (const body of bodies) this.#learn(body.statements, names);
    return names;
  }

  /** Places the markers of every function, inner ones first, and records the effects of calling it. */
  #functionsIn(statements: Statement[], around: Names): void {
    for (const statement of statements) {
      const { kind, node, bodies } = statement;
      const names = kind === "FunctionDefinition" ? this.#namesIn(statement, around) : around;
      for (const body of bodies) this.#functionsIn(body.statements, names);
      if (kind !== "FunctionDefinition") continue;
      const [name] = variablesOf(node, this.#program.text);
      const [{ statements: inner, inline }] = bodies as [Body];
      const steps = inner.map((statement) => this.#step(statement, names, true));
      const before = this.#places.length;
      if (!inline) this.#placeScope(steps);
      const placed = this.#places.slice(before).map(({ marker }) => marker);
      const { events, happens, predicts, readsImage } = together(steps);
      const unmarked = new Set([...events].filter((event) => !placed.includes(markerOf[event])));
      if (readsImage) for (const each of [happens, unmarked]) each.add("load");
      if (name) this.#functions.set(name, { events: happens, unmarked, predicts });
    }
  }

  /** Reading an image in a function is no load: the function reads one of many, and the data are loaded where it was called. */
  #step(statement: Statement, names: Names, inFunction = false): Step {
    const { text } = this.#program;
    const own = eventsOf(statement, text, names, this.#functions);
    if (own.readsImage && !inFunction) for (const each of [own.events, own.happens]) each.add("load");
    const bodies = (/Definition$/.test(statement.kind) ? [] : statement.bodies).map(({ statements, inline }) => ({
      steps: statements.map((inner) => this.#step(inner, names, inFunction)),
      inline,
    }));
    return {
      statement,
      ...together([own, ...bodies.flatMap(({ steps }) => steps)]),
      isFine: isFine(statement, text, names),
      loss: lossOf(statement, text),
      bodies,
    };
  }

  /** Places the marker after the last top-level import that precedes the first use of an import. */
  #placeImports(steps: Step[]): void {
    const first = steps.findIndex(({ happens, statement }) => happens.size > 0 && !isImport(statement));
    const isMade = ({ statement }: Step) => isImport(statement);
    const after = (first < 0 ? steps : steps.slice(0, first)).findLast(isMade) ?? steps.find(isMade);
    if (after) this.#put(after.statement, "imported packages");
  }

  #placeScope(steps: Step[]): void {
    this.#placeEvent(steps, "load", 0);
    this.#placeEvent(steps, "define", 0);
    this.#placeLosses(steps, 0);
    this.#placeEvent(steps, "train", 0);
    this.#placeEvent(steps, "predict", 0);
  }

  /** Places an event's marker after the one statement of a suite that completes it, or inside that statement's suites. */
  #placeEvent(steps: Step[], event: Event, loops: number): void {
    for (const step of chooseStep(steps, event)) {
      const { statement, bodies } = step;
      const inside = bodies.filter((body) => holds(body, event));
      const loop = isLoop(statement);
      // Place it after the loop, not once per batch of every epoch; after a one-line suite only if the suite certainly ran.
      if (inside.length === 0 || (loop && (loops > 0 || step.isFine)) || bodies.some(({ inline }) => inline)) {
        if (isSure(step, event)) this.#put(statement, markerOf[event]);
      } else for (const body of inside) this.#placeEvent(body.steps, event, loops + (loop ? 1 : 0));
    }
  }

  #placeLosses(steps: Step[], loops: number): void {
    for (const { statement, loss, bodies, isFine } of steps) {
      if (loss && this.#places.filter(({ marker }) => marker === loss.marker).length < maxLosses)
        this.#put(statement, loss.marker, loss.value);
      const loop = isLoop(statement);
      for (const body of bodies) {
        if (!loop || (loops === 0 && !isFine && !body.inline))
          body.inline || this.#placeLosses(body.steps, loops + (loop ? 1 : 0));
        else for (const marker of lossesIn(body.steps)) this.#put(statement, marker);
      }
    }
  }

  #put({ end, indentation }: Statement, marker: Marker, value?: string): void {
    if (end === undefined) return;
    if (this.#places.some((place) => place.offset === end && place.marker === marker && place.value === value)) return;
    this.#places.push({ offset: end, indentation, marker, ...(value !== undefined && { value }) });
  }
}

/**
 * Returns the statements of a suite after which an event is complete: the last one before a `later` event, for `train` the first one.
 * Statements that certainly cause the event are preferred; if there are none, all that may cause it are returned.
 */
function chooseStep(steps: Step[], event: Event): Step[] {
  const limit = steps.findIndex(({ happens }) => later[event].some((other) => happens.has(other)));
  const candidates = steps.filter((step) => step.events.has(event) && canHold(step));
  const early = limit < 0 ? candidates : candidates.filter((step) => steps.indexOf(step) <= limit);
  const from = early.length > 0 ? early : candidates;
  const sure = from.filter((step) => isSure(step, event));
  const chosen = early.length > 0 && event !== "train" ? sure.at(-1) : sure[0];
  return chosen ? [chosen] : from;
}

/** Returns false if no line can follow: `return`, `raise`, or a statement on its header's line. */
function canHold({ statement, bodies }: Step): boolean {
  return (
    bodies.length > 0 ||
    (statement.end !== undefined && !/^(Return|Raise|Continue|Break)Statement$/.test(statement.kind))
  );
}

const holds = ({ steps }: { steps: Step[] }, event: Event) => steps.some(({ events }) => events.has(event));

/** Returns whether the event happens whenever the statement completes (loops are assumed to run). */
function isSure({ statement, bodies }: Step, event: Event): boolean {
  const inside = (body: { steps: Step[] }) => body.steps.some((step) => step.events.has(event) && isSure(step, event));
  if (!bodies.some((body) => holds(body, event))) return true;
  if (statement.kind === "IfStatement")
    return isMainGuard(statement) || (statement.node.getChild("else") !== null && bodies.every(inside));
  if (statement.kind === "MatchStatement") return false;
  return inside(bodies[0]!);
}

function lossesIn(steps: Step[]): Set<Marker> {
  return new Set(
    steps.flatMap(({ loss, bodies }) => [
      ...(loss ? [loss.marker] : []),
      ...bodies.flatMap((body) => [...lossesIn(body.steps)]),
    ]),
  );
}

/**
 * Returns whether a loop is over batches, rows of the test set or something unknown, so that a marker in it would be printed very often.
 */
function isFine({ kind, node }: Statement, text: string, names: Names): boolean {
  if (kind === "WhileStatement") return true;
  const over = kind === "ForStatement" ? node.getChild("in")?.nextSibling : undefined;
  if (!over) return false;
  return fineGrained.test(text.slice(over.from, over.to)) || fromTest(over, text, names);
}

function isLoop({ kind }: Statement): boolean {
  return kind === "ForStatement" || kind === "WhileStatement";
}

function isMainGuard({ node }: Statement): boolean {
  const compared = node.getChild("BinaryExpression");
  return compared?.firstChild?.name === "VariableName" && compared.lastChild?.name === "String";
}

/** Returns whether the statement imports: an import, or a `try: import lightgbm`, `except ImportError: ...`. */
function isImport({ kind, bodies }: Statement): boolean {
  if (bodies.length === 0) return kind === "ImportStatement";
  return /^(Try|If|With)Statement$/.test(kind) && isImport(bodies[0]!.statements[0]!);
}

function together(parts: readonly StatementEvents[]): StatementEvents {
  return {
    events: new Set(parts.flatMap(({ events }) => [...events])),
    happens: new Set(parts.flatMap(({ happens }) => [...happens])),
    predicts: parts.some(({ predicts }) => predicts),
    readsImage: parts.some(({ readsImage }) => readsImage),
  };
}
