import { MARKERS, type Marker } from "../../proto/markers.ts";
import { markerPlaces } from "./instrument-places.ts";
import { type Program, parseProgram } from "./instrument-tree.ts";

/** Methods to insert markers, see README.md. */
export type Instrumenter = "StaticPolicy" | "Syntax" | "None";

/** Placeholder for each attempt's nonce. */
export const NONCE_PLACEHOLDER = "@@NONCE@@";

export interface Instrumented {
  /** The program with markers, with `NONCE_PLACEHOLDER` in place of the nonce. */
  program: string;
  /** Markers that the program can print, each once, in the order of `MARKERS`. */
  markers: Marker[];
  /** The method that inserted them; `None` if there are none. */
  instrumenter: Instrumenter;
  /** Insertions that were discarded because verification refused them. */
  verificationFailures: number;
}

/**
 * Inserts progress markers into a program (paper section 3.2) and verifies that nothing else changed. A program that cannot be parsed, or
 * that contains the placeholder itself, is executed unchanged.
 *
 * The sandbox takes the lines out again and prints the markers itself (actor/sandbox/markers.py).
 *
 * A marker is a line of its own, `print("@@NONCE@@:loaded data", flush=True)`, for a loss with the name that holds it. If the program uses
 * the name `print` for anything but calls, the marker calls the builtin.
 */
export function instrument(program: string, instrumenter: Instrumenter = "Syntax"): Instrumented {
  const plain: Instrumented = { program, markers: [], instrumenter: "None", verificationFailures: 0 };
  if (instrumenter === "None" || program.includes(NONCE_PLACEHOLDER)) return plain;
  const parsed = parseProgram(program);
  const instrumented = parsed && insertBySyntax(parsed);
  if (instrumented === undefined || instrumented === program) return plain;
  const markers = verifyInstrumented(program, instrumented);
  if (markers === undefined) return { ...plain, verificationFailures: 1 };
  return { program: instrumented, markers, instrumenter: "Syntax", verificationFailures: 0 };
}

/** Replaces the placeholder with an attempt's nonce. A program without markers is returned unchanged. */
export function withNonce(instrumented: Pick<Instrumented, "program" | "instrumenter">, nonce: string): string {
  return instrumented.instrumenter === "None"
    ? instrumented.program
    : instrumented.program.replaceAll(NONCE_PLACEHOLDER, nonce);
}

function insertBySyntax(parsed: Program): string {
  const program = parsed.text;
  // At equal offsets the deeper line comes first, because it belongs to the suite that ends there.
  const places = markerPlaces(parsed).sort(
    (a, b) =>
      a.offset - b.offset ||
      b.indentation.length - a.indentation.length ||
      MARKERS.indexOf(a.marker) - MARKERS.indexOf(b.marker),
  );
  let text = "";
  let copied = 0;
  for (const { offset, indentation, marker, value } of places) {
    const statement = markerStatement(program, marker, value ? [value] : []);
    text += program.slice(copied, offset) + lineBreakAt(program, offset) + indentation + statement;
    copied = offset;
  }
  return text + program.slice(copied);
}

/** Returns the line break at `offset`; at the end of the program, the usual line break of the program. */
function lineBreakAt(program: string, offset: number): string {
  return /^(\r\n|\n|\r)/.exec(program.slice(offset, offset + 2))?.[0] ?? /\r\n|\n|\r/.exec(program)?.[0] ?? "\n";
}

/** Returns a marker's inserted line: the marker, then the names and attributes that it prints, each after a comma. */
export const insertedLine =
  /^[ \t\f]*(?:__import__\("builtins"\)\.)?print\("@@NONCE@@:([a-z ]+)"((?:, [A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*)*), flush=True\)$/;

/** Returns the statement that prints a marker in `program`, with the values of `names`. */
export function markerStatement(program: string, marker: Marker, names: readonly string[] = []): string {
  // the name occurs in another way than as a called function; matches in strings and comments do no harm
  const isRebound = /(def|as|import|global|nonlocal)\s+print\b|\bprint\b\s*(?![\s(])/.test(program);
  const print = isRebound ? '__import__("builtins").print' : "print";
  return `${print}(${[`"${NONCE_PLACEHOLDER}:${marker}"`, ...names, "flush=True"].join(", ")})`;
}

/**
 * Returns the inserted markers of an instrumented program if it parses, equals the original line by line without them, and each is a
 * statement of its own that only prints a marker and plain names or attributes, after imports from `__future__`.
 */
export function verifyInstrumented(original: string, instrumented: string): Marker[] | undefined {
  const from = lines(original);
  const found = new Set<string>();
  const expressionLines = parseProgram(instrumented)?.expressionLines;
  if (!expressionLines || original.includes(NONCE_PLACEHOLDER)) return undefined;
  let [next, offset] = [0, 0];
  for (const line of lines(instrumented)) {
    const marker = insertedLine.exec(line.text)?.[1];
    if (marker !== undefined) {
      if (!(MARKERS as readonly string[]).includes(marker) || !expressionLines.has(offset)) return undefined;
      found.add(marker);
    } else {
      const expected = from[next++];
      if (found.size > 0 && /^from\s+__future__\s+import\b/.test(line.text)) return undefined;
      if (expected?.text !== line.text || (expected.lineBreak !== line.lineBreak && expected.lineBreak !== ""))
        return undefined;
    }
    offset += line.text.length + line.lineBreak.length;
  }
  if (next !== from.length) return undefined;
  return MARKERS.filter((marker) => found.has(marker));
}

/** Splits text into lines and their line breaks. */
export function lines(text: string): { text: string; lineBreak: string }[] {
  const parts = text.split(/(\r\n|\n|\r)/);
  const found = [];
  for (let i = 0; i < parts.length; i += 2) found.push({ text: parts[i]!, lineBreak: parts[i + 1] ?? "" });
  // A final line break is not followed by a line.
  if (found.at(-1)!.text === "") found.pop();
  return found;
}
