/** What `longrun solve` hands to its learner: the file `solve.json` of a search's folder, and the units of its budget. */

/** `best-of-n`: drafts alone. `greedy`: AIDE's policy. `tree`: UCT. learner/solve/README.md explains each. */
export const SEARCHES = ["best-of-n", "greedy", "tree"] as const;
export type Search = (typeof SEARCHES)[number];

/** The search ends when the first of these is spent. At least one is there. */
export interface Budget {
  /** Seconds of search, without interruptions. */
  seconds?: number;
  /** Solutions that are asked for. One without a program counts too; one that the infrastructure loses does not. */
  executions?: number;
  /** Tokens of prompts and answers together, as the endpoint counts them. */
  tokens?: number;
}

/** Parameters of the searches. */
export interface SearchRules {
  search: Search;
  /** greedy: solutions from scratch before anything is improved. */
  drafts: number;
  /** greedy: the probability of debugging a failed leaf, if there is one. */
  debugProbability: number;
  /** greedy, tree: most debug prompts in a row. */
  debugDepth: number;
  /** tree: weight of the exploration term. */
  exploration: number;
}

/** AIDE's (arXiv 2502.13138, aide/utils/config.yaml of its code) for greedy; c = √2 / 2 for tree, because values are ranks in [0, 1]. */
export const SEARCH_DEFAULTS = { drafts: 5, debugProbability: 0.5, debugDepth: 3, exploration: 0.7 } as const;

/** An OpenAI-compatible API. The key is in the environment alone. */
export interface EndpointSettings {
  /** Up to and without `/chat/completions`. */
  url: string;
  model: string;
  /** Requests side by side. */
  concurrency: number;
  /** US dollars for a million tokens of prompts and of answers. */
  prices?: { input: number; output: number };
  /** Further fields of each request's body, or others in their place; null leaves a field out. */
  body: Record<string, unknown>;
}

export interface SolveSettings extends SearchRules {
  budget: Budget;
  /** Programs that run side by side. */
  slots: number;
  /** Finished iterations of the policy's training, and its checkpoint; absent: an endpoint writes the solutions. */
  policy?: { iteration: number; checkpoint?: string };
  endpoint?: EndpointSettings;
}

/** File, in the folder, of the settings. */
export const SOLVE_FILE = "solve.json";
/** Environment variable with the endpoint's key. */
export const ENDPOINT_KEY = "LONGRUN_ENDPOINT_KEY";

const UNITS: Readonly<Record<string, [field: keyof Budget, factor: number]>> = {
  s: ["seconds", 1],
  m: ["seconds", 60],
  h: ["seconds", 3600],
  d: ["seconds", 86_400],
  execution: ["executions", 1],
  executions: ["executions", 1],
  token: ["tokens", 1],
  tokens: ["tokens", 1],
};

/** Reads `30m`, `50 executions`, `2h, 200 executions`. @returns undefined if it is none of these, or two of one kind */
export function parseBudget(text: string): Budget | undefined {
  const budget: Budget = {};
  for (const part of text.split(",")) {
    const [, number, unit = ""] = /^\s*(\d+(?:\.\d+)?)\s*([a-z]+)\s*$/.exec(part) ?? [];
    const [field, factor] = UNITS[unit] ?? [];
    const value = Number(number) * (factor ?? Number.NaN);
    const isWhole = field === "seconds" || Number.isInteger(value);
    if (field === undefined || !(value > 0) || !isWhole || budget[field] !== undefined) return undefined;
    budget[field] = value;
  }
  return budget;
}

/** Returns e.g. `50 executions or 30 min`. */
export function budgetText({ seconds, executions, tokens }: Budget): string {
  return [
    ...(executions === undefined ? [] : [`${executions} ${executions === 1 ? "execution" : "executions"}`]),
    ...(seconds === undefined ? [] : [seconds % 60 === 0 ? `${seconds / 60} min` : `${seconds} s`]),
    ...(tokens === undefined ? [] : [`${tokens} tokens`]),
  ].join(" or ");
}

/** What a search has spent and found: the learner writes it to `summary.json`, the terminal shows it. */
export interface SolveFigures {
  /** Unix milliseconds of the beginning and of the last sign of life of each process that searched. */
  sessions: [begin: number, end: number][];
  /** Solutions that were asked for, without the ones that the infrastructure lost. */
  asked: number;
  valid: number;
  failed: number;
  best?: { id: string; score: number };
  /** Of an endpoint. `cost` in US dollars, where prices are given. */
  usage?: { answers: number; faults: number; promptTokens: number; answerTokens: number; cost?: number };
}
