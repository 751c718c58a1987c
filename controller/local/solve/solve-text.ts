/** Lines about a search for the terminal. */
import { duration } from "../terminal/duration.ts";

/** The fields of `solve` in `summary.json` that are read here; the learner writes the file. */
export interface SolveFigures {
  sessions: [begin: number, end: number][];
  asked: number;
  valid: number;
  failed: number;
  best?: { id: string; score: number };
  usage?: { answers: number; faults: number; promptTokens: number; answerTokens: number; cost?: number };
}

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
