import { MARKERS, type Marker } from "../../proto/markers.ts";
import { lines, markerStatement, verifyInstrumented } from "./instrument.ts";
import { valuesAreBound } from "./instrument-bound.ts";
import { firstCodeBlock } from "./solution.ts";

/** Why a language model's answer is not used; README.md has a table. */
export type AnswerFault = "noCodeBlock" | "changed" | "expression" | "misplaced" | "unboundValue" | "noMarkers";

/**
 * Reads a language model's answer to Appendix C.3: the program with inserted prints of markers, `print("loaded data")` or `print("training
 * loss:", loss)`. The executed program is made from the original lines; the answer only says where markers go. White space at line ends and
 * blank lines may differ, nothing else.
 *
 * A marker must not fail where the program would not: its value must be bound or spelled out before.
 */
export function readAnswer(
  program: string,
  answer: string,
): { program: string; markers: Marker[] } | { fault: AnswerFault } {
  const code = firstCodeBlock(answer);
  if (code === undefined) return { fault: "noCodeBlock" };
  const own = lines(program);
  let text = "";
  let next = 0;
  const lineBreak = own.find((line) => line.lineBreak !== "")?.lineBreak ?? "\n";
  const copy = (end: number) => {
    for (; next < end; next++) text += own[next].text + (own[next].lineBreak || lineBreak);
  };
  const afterBlank = () => {
    let at = next;
    while (at < own.length && own[at].text.trim() === "") at += 1;
    return at;
  };
  for (const line of code.split("\n").map((each) => each.trimEnd())) {
    if (line === "") continue;
    const expected = afterBlank();
    if (own[expected]?.text.trimEnd() === line) {
      copy(expected + 1);
      continue;
    }
    const print = readPrint(line);
    if (print === undefined) return { fault: "changed" };
    if (print.names === undefined) return { fault: "expression" };
    text += `${print.indentation}${markerStatement(program, print.marker, print.names)}${lineBreak}`;
  }
  if (afterBlank() < own.length) return { fault: "changed" };
  copy(own.length);

  const markers = verifyInstrumented(program, text);
  if (markers === undefined) return { fault: "misplaced" };
  if (markers.length === 0) return { fault: "noMarkers" };
  return valuesAreBound(text) ? { program: text, markers } : { fault: "unboundValue" };
}

const markerPrint = new RegExp(
  String.raw`^(?<indentation>[ \t]*)print\(\s*(?:(?<f>[fF])?(?<quote>["'])\s*(?<marker>${MARKERS.join("|")})\s*[:.!]?(?<rest>.*)\)\s*;?)$`,
);
const name = String.raw`[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*`;
const flush = String.raw`(?:,\s*flush\s*=\s*True\s*)?`;

/** Parses a line that prints a marker; `names` is undefined if it prints anything but plain names or attributes with it. */
function readPrint(line: string): { indentation: string; marker: Marker; names: string[] | undefined } | undefined {
  const found = markerPrint.exec(line)?.groups;
  if (found === undefined) return undefined;
  const { indentation, marker, quote, f, rest } = found;
  const plain = new RegExp(String.raw`^\s*${quote}(?<names>(?:\s*,\s*${name})*)\s*${flush}$`).exec(rest);
  const formatted = new RegExp(
    String.raw`^\s*(?<names>(?:\{${name}(?::[\w.,+% ]*)?\}[\s,;]*)+)${quote}\s*${flush}$`,
  ).exec(rest);
  const braces = /[{}]/.test(rest);
  let names: string[] | undefined;
  if (plain && !(f && braces)) names = plain.groups!.names.split(",").slice(1);
  else if (f && formatted) names = [...formatted.groups!.names.matchAll(/\{([^:}]*)/g)].map(([, inside]) => inside);
  return { indentation, marker: marker as Marker, names: names?.map((each) => each.trim()) };
}
