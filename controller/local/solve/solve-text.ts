/** Lines about a search for the terminal. */
import type { SolveFigures } from "../../../proto/solve.ts";
import { duration } from "../terminal/duration.ts";

export function solveLines({ sessions, asked, valid, failed, usage }: SolveFigures): string[] {
  const seconds = sessions.reduce((sum, [begin, end]) => sum + (end - begin) / 1000, 0);
  const open = asked - valid - failed;
  const counts = [`${valid} valid`, `${failed} failed`, ...(open > 0 ? [`${open} unfinished`] : [])];
  const lines = ["", `Solutions: ${asked} (${counts.join(", ")}) in ${duration(seconds)}`];
  if (usage === undefined) return lines;
  const { answers, faults, promptTokens, answerTokens, cost } = usage;
  const spent = cost === undefined ? "" : `, ${cost.toFixed(cost < 1 ? 4 : 2)} USD`;
  const failures = faults === 0 ? "" : `, ${faults} failed requests`;
  return [...lines, `Endpoint: ${answers} answers, ${promptTokens} + ${answerTokens} tokens${spent}${failures}`];
}
