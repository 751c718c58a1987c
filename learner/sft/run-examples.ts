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
interface LeftOut {
  /** not graded, or graded and not valid */
  invalid: number;
  /** valid, but a guard flagged them: they need no model */
  flagged: number;
  /** the same program as another one of the task */
  alike: number;
  /** valid, but not among the best of their task */
  beaten: number;
}

interface RunExamples {
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
  const policy = policyOf(run);
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
    return { examples: kept.map((sample) => ({ ...exampleOf(sample, policy, run), sample })), leftOut };
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

/** What prompts of a run were encoded with. `answerPrefix`: they end with it, and solutions begin with it. */
interface Policy {
  tokenizer: Tokenizer;
  answerPrefix: string;
}

function exampleOf(sample: Sample, { tokenizer, answerPrefix }: Policy, run: string): Example {
  const { id, promptTokens, solution } = sample;
  const place = `${run}, sample ${id}`;
  const chat = chatOfTokens(promptTokens, tokenizer);
  if (chat) return { prompt: chat.messages, response: solution, place };
  const text = tokenizer.decode(promptTokens, { skipSpecialTokens: false });
  const prompt = text.endsWith(answerPrefix) ? text.slice(0, text.length - answerPrefix.length) : text;
  return { prompt, response: solution, place };
}

function policyOf(run: string): Policy {
  const manifest = join(run, "trainingrun.yaml");
  if (!existsSync(join(run, STORE)) || !existsSync(manifest))
    throw new DataError(`${run}: this is no run folder: it has no ${STORE} and trainingrun.yaml`);
  const { spec } = parseResolved(readFileSync(manifest, "utf8"), manifest);
  const folder = policyFolder(spec.model.policy, manifest, resolve(run));
  const { answerPrefix = "" } = spec.prompts;
  if (existsSync(join(folder, "tokenizer.json"))) return { tokenizer: readTokenizer(folder), answerPrefix };
  throw new DataError(`${run}: its prompts are tokens of ${folder}, which has no tokenizer.json; put that folder back`);
}
