/** Counts what an endpoint was asked: `requests.jsonl` of the folder has a line for each try, without texts and without the key. */
import { appendFileSync, existsSync, readFileSync } from "node:fs";
import type { EndpointSettings } from "../../../proto/solve.ts";

export interface RequestLine {
  /** ISO 8601, the end. */
  at: string;
  /** Number of the solution's seed, which tries of one request share. */
  seed: number;
  seconds: number;
  promptTokens: number;
  answerTokens: number;
  /** Why there is no answer; absent if there is one. */
  fault?: string;
}

export interface Usage {
  answers: number;
  faults: number;
  promptTokens: number;
  answerTokens: number;
  /** US dollars; absent without prices. */
  cost?: number;
}

/** Sums up lines. The last line may be torn after a crash. */
export function usageOf(lines: string, prices: EndpointSettings["prices"]): Usage {
  const all = lines
    .split("\n")
    .slice(0, -1)
    .flatMap((line): RequestLine[] => {
      try {
        return [JSON.parse(line) as RequestLine];
      } catch {
        return [];
      }
    });
  const sum = (of: (line: RequestLine) => number) => all.reduce((total, line) => total + of(line), 0);
  const [promptTokens, answerTokens] = [sum((line) => line.promptTokens), sum((line) => line.answerTokens)];
  const faults = all.filter(({ fault }) => fault !== undefined).length;
  return withCost({ answers: all.length - faults, faults, promptTokens, answerTokens }, prices);
}

function withCost(usage: Omit<Usage, "cost">, prices: EndpointSettings["prices"]): Usage {
  if (!prices) return usage;
  return { ...usage, cost: (usage.promptTokens * prices.input + usage.answerTokens * prices.output) / 1e6 };
}

/** Appends lines, and knows their sums: those of earlier processes too. */
export class UsageLog {
  readonly #path: string;
  readonly #prices: EndpointSettings["prices"];
  #usage: Usage;

  constructor(path: string, prices: EndpointSettings["prices"]) {
    this.#path = path;
    this.#prices = prices;
    const text = existsSync(path) ? readFileSync(path, "utf8") : "";
    this.#usage = usageOf(text, prices);
    if (text !== "" && !text.endsWith("\n")) appendFileSync(path, "\n"); // ends a torn line
  }

  get usage(): Usage {
    return this.#usage;
  }

  add(line: RequestLine): void {
    appendFileSync(this.#path, `${JSON.stringify(line)}\n`);
    const { answers, faults, promptTokens, answerTokens } = this.#usage;
    this.#usage = withCost(
      {
        answers: answers + (line.fault === undefined ? 1 : 0),
        faults: faults + (line.fault === undefined ? 0 : 1),
        promptTokens: promptTokens + line.promptTokens,
        answerTokens: answerTokens + line.answerTokens,
      },
      this.#prices,
    );
  }
}
