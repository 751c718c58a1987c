/** The valid samples of a run as examples: rejection sampling. */
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { policyFolder } from "../../crds/policy.ts";
import { parseResolved } from "../../crds/trainingrun.ts";
import { readTokenizer, type Tokenizer } from "../engine/index.ts";
import { programHash } from "../pretrain/corpus.ts";
import { openStore } from "../store/store.ts";
import type { Sample } from "../store/types.ts";
import { chatOfTokens } from "./chat-of-tokens.ts";
import { DataError, type Example } from "./examples.ts";

export const STORE = "store.sqlite";

/** Of a run's samples, how many are left out, and why. */
export interface LeftOut {
  /** not graded, or graded and not valid */
  invalid: number;
  /** valid, but a guard flagged them: they need no model */
  flagged: number;
  /** the same program as another one of the task */
  alike: number;
  /** valid, but not among the best of their task */
  beaten: number;
}

export interface RunExamples {
  examples: (Example & { sample: Sample })[];
  leftOut: LeftOut;
}

/**
 * Returns the valid samples of a run, best rewards first, no two of a task with the same program.
 *
 * @param run the run folder; its policy's tokenizer is needed too @param best most samples of each task; default all
 * @throws DataError for a folder without a store or whose tokenizer is missing
 */
export function examplesOfRun(run: string, best = Number.POSITIVE_INFINITY): RunExamples {
  const opened = openRun(run);
  const store = openStore(join(run, STORE), { readOnly: true });
  const leftOut: LeftOut = { invalid: 0, flagged: 0, alike: 0, beaten: 0 };
  try {
    const samples = store.allSamples();
    const valid = samples.filter(({ grade, program }) => grade?.valid === true && program !== undefined);
    const trusted = valid.filter(({ grade }) => (grade!.guards ?? []).length === 0);
    leftOut.invalid = samples.length - valid.length;
    leftOut.flagged = valid.length - trusted.length;
    const kept = [...Map.groupBy(trusted, ({ task }) => task).values()].flatMap((ofTask) => {
      const distinct = distinctPrograms(ofTask.sort((a, b) => b.grade!.reward - a.grade!.reward));
      leftOut.alike += ofTask.length - distinct.length;
      leftOut.beaten += Math.max(0, distinct.length - best);
      return distinct.slice(0, best);
    });
    return { examples: kept.map((sample) => ({ ...exampleOf(sample, opened, run), sample })), leftOut };
  } finally {
    store.close();
  }
}

function distinctPrograms(samples: readonly Sample[]): Sample[] {
  const seen = new Set<string>();
  return samples.filter(({ program }) => {
    const hash = programHash(program!).toString("hex");
    if (seen.has(hash)) return false;
    seen.add(hash);
    return true;
  });
}

/** The prompt's tokens end with the run's `prompts.answerPrefix`, with which the solution begins. */
function exampleOf(sample: Sample, { tokenizer, answerPrefix = "" }: OpenedRun, run: string): Example {
  const { id, promptTokens } = sample;
  const solution = sample.solution.slice(answerPrefix.length);
  const place = `${run}, sample ${id}`;
  const chat = chatOfTokens(promptTokens, tokenizer);
  if (chat) return { prompt: chat.messages, response: chat.answer + solution, place };
  return { prompt: tokenizer.decode(promptTokens, { skipSpecialTokens: false }), response: solution, place };
}

interface OpenedRun {
  tokenizer: Tokenizer;
  answerPrefix?: string | undefined;
}

function openRun(run: string): OpenedRun {
  const manifest = join(run, "trainingrun.yaml");
  if (!existsSync(join(run, STORE)) || !existsSync(manifest))
    throw new DataError(`${run}: this is no run folder: it has no ${STORE} and trainingrun.yaml`);
  const { spec } = parseResolved(readFileSync(manifest, "utf8"), manifest);
  const folder = policyFolder(spec.model.policy, manifest, resolve(run));
  if (existsSync(join(folder, "tokenizer.json"))) {
    const { answerPrefix } = spec.prompts;
    return { tokenizer: readTokenizer(folder), answerPrefix };
  }
  throw new DataError(`${run}: its prompts are tokens of ${folder}, which has no tokenizer.json; put that folder back`);
}
