/** One choice of an answer: a row of the engine, whose tokens become text. */
import { type ResponsePart, type RunningEngine, seedFor } from "../engine/index.ts";
import type { ServedModel } from "./model.ts";
import type { GenerationRequest } from "./request.ts";
import { TokenText } from "./text.ts";

/** What a server uses of the engine. */
export type Generating = Pick<RunningEngine, "generate" | "failure">;

export interface ChoiceToken {
  readonly id: number;
  readonly logProb: number;
  /** where its text begins in that of the choice, Unicode characters */
  readonly offset: number;
}

/** What is new of a choice: all of it, where the request is no stream. */
export interface Delta {
  readonly text: string;
  /** tokens drawn since the last delta; the text of some may come with a later one */
  readonly count: number;
  /** these tokens, where the request asks for log-probs */
  readonly tokens: readonly ChoiceToken[];
  /** why the choice has ended: by a stop word or an EOS token, or at its most tokens; null: it has not */
  readonly finishReason: "stop" | "length" | null;
}

/**
 * Generates choice `index`, in the order prompt by prompt. A seeded choice depends on its prompt and its place among the choices of that
 * prompt alone.
 *
 * @param signal ends it: the promise rejects with the signal's reason
 * @param tell is called with each delta; the last one has a `finishReason`
 */
export async function generateChoice(
  engine: Generating,
  model: ServedModel,
  request: GenerationRequest,
  index: number,
  signal: AbortSignal,
  tell: (delta: Delta) => void,
): Promise<void> {
  const { n, maxTokens, temperature, topP, seed, stop, stream, logProbs } = request;
  const prompt = request.prompts[Math.floor(index / n)]!;
  const text = new TokenText(model.tokenizer, stop);
  const stopped = new AbortController();
  const take = ({ response, logProbs: drawn, finished, ended }: ResponsePart): void => {
    if (text.stopped || signal.aborted) return; // the engine has not yet heard of it
    const tokens: ChoiceToken[] = [];
    let [added, count]: [string, number] = ["", 0];
    const unread: number[] = [];
    for (const [i, id] of response.entries()) {
      count++;
      if (logProbs) tokens.push({ id, logProb: drawn[i]!, offset: text.characters });
      if (!model.eosIds.includes(id)) unread.push(id);
      // one by one only where it matters: most of the work is the decoder's, and it takes as long for several
      if (logProbs || stop.length > 0) added += text.add(unread.splice(0));
      if (text.stopped) break;
    }
    added += text.add(unread);
    if (ended) added += text.end();
    if (text.stopped && !ended) stopped.abort();
    tell({ text: added, count, tokens, finishReason: text.stopped || finished ? "stop" : ended ? "length" : null });
  };
  try {
    await engine.generate(
      [prompt],
      {
        ...{ seeds: [seedFor(seed, "choice", index % n)], temperature, topP },
        maxNewTokens: maxTokens ?? model.maxPositions - prompt.length,
        // a stop word ends the row as soon as it is there
        streams: stream || stop.length > 0,
        signal: AbortSignal.any([signal, stopped.signal]),
      },
      (_, part) => take(part),
    );
  } catch (cause) {
    if (!stopped.signal.aborted) throw cause;
  }
}
