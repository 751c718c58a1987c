/** What is drawn for a sample, and the sample that its response becomes. */
import { type Response, seedFor } from "../engine/index.ts";
import type { NewSample } from "../store/types.ts";
import type { StaticPolicyFault } from "./instrument-policy.ts";
import type { Debugging, Improvement } from "./launched.ts";
import type { Prompt } from "./prompts.ts";

/** A response; `policyVersion` says which version a generator wrote it with. */
export type WrittenResponse = Response & { policyVersion?: number };

/** The samples to generate, and the policy version. Every random choice is a function of the sample's number. */
export interface Source {
  iteration: number;
  purpose: string;
  /** Samples in a row that share the prompt that is drawn for the first: a group. */
  perPrompt: number;
  draw: (number: number) => Drawn;
  /** Returns the stream name of a sample's random choices; the seed is the other part. */
  nameOf: (number: number) => (string | number)[];
}

export interface Drawn {
  /** The task's name. */
  task: string;
  prompt: Prompt;
  previous?: string;
  /** Of a debug prompt: see `NewSample`. */
  depth?: number;
  previousStep?: string;
  improvement?: Improvement;
  debugging?: Debugging;
}

export interface Row extends Drawn {
  source: Source;
  number: number;
  /** Number of the group's first sample. */
  first: number;
}

/** A row whose response has been read. */
export interface Written extends Row, WrittenResponse {
  facts: Pick<
    NewSample,
    "solution" | "plan" | "program" | "instrumented" | "insertedMarkers" | "instrumenter" | "state"
  >;
  verificationFailures: number;
  fault?: StaticPolicyFault;
}

/** @param seed of the run */
export function sampleOf(row: Written, seed: number, lineage: number): NewSample {
  const { number, first, task, prompt, previous, depth, previousStep, response, logProbs, finished, facts } = row;
  const { purpose, perPrompt, nameOf, iteration: begunWith } = row.source;
  return {
    ...facts,
    id: sampleId(number),
    sequence: number,
    purpose,
    iteration: row.policyVersion ?? begunWith,
    lineage,
    task,
    kind: prompt.kind,
    previous,
    depth,
    previousStep,
    group: perPrompt > 1 ? sampleId(first) : undefined,
    promptTokens: prompt.tokens,
    responseTokens: response,
    truncated: !finished,
    behaviourLogProbs: logProbs,
    executionSeed: executionSeed(seed, nameOf(number)),
  };
}

/** Returns the seed of a sample's program, below 2^32. @param name what the sample's random choices are named by */
export const executionSeed = (seed: number, name: (string | number)[]): number =>
  seedFor(seed, "execution", ...name) % 2 ** 32;

/** Returns the id of the sample of a number. */
export const sampleId = (number: number) => `s${String(number).padStart(6, "0")}`;
