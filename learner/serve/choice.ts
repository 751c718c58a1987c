/** Generates one choice of an answer: a row of the engine, whose tokens become text. */
import { randomInt } from "node:crypto";
import { type ResponsePart, type RunningEngine, seedFor } from "../engine/index.ts";
import type { ServedModel } from "./model.ts";
import type { GenerationRequest } from "./request.ts";
import { TokenText } from "./text.ts";

/** The part of the engine that a server uses. */
export type Generating = Pick<RunningEngine, "generate" | "failure">;

export interface ChoiceToken {
  readonly id: number;
  readonly logProb: number;
  /** Offset of its text in the choice's text, in Unicode characters. */
  readonly offset: number;
}

/** New parts of a choice; the whole choice if the request is no stream. */
export interface Delta {
  readonly text: string;
  /** Number of tokens drawn since the last delta; the text of some may follow in a later delta. */
  readonly count: number;
  /** These tokens, if the request asks for log-probs. */
  readonly tokens: readonly ChoiceToken[];
  /** Why the choice ended: at a stop word or EOS token, or at its token limit; null: it has not ended. */
  readonly finishReason: "stop" | "length" | null;
}

/**
 * Generates choice `index`; choices are ordered by prompt. A seeded choice only depends on its prompt and its index among the prompt's
 * choices.
 *
 * @param signal ends the choice: the promise rejects with the signal's reason
 * @param onDelta called with each delta; the last one has a `finishReason`
 */
export async function generateChoice(
  engine: Generating,
  model: ServedModel,
  request: GenerationRequest,
  index: number,
  signal: AbortSignal,
  onDelta: (delta: Delta) => void,
): Promise<void> {
  const { n, maxTokens, temperature, topP, seed, stop, stream, logProbs } = request;
  const prompt = request.prompts[Math.floor(index / n)]!;
  const text = new TokenText(model.tokenizer, stop);
  const stopped = new AbortController();
  let hasEnded = false;
  const take = ({ response, logProbs: drawn, finished, ended }: ResponsePart): void => {
    if (text.stopped || signal.aborted) return; // the engine has not stopped the row yet
    const tokens: ChoiceToken[] = [];
    let [added, count]: [string, number] = ["", 0];
    const unread: number[] = [];
    for (const [i, id] of response.entries()) {
      count++;
      if (logProbs) tokens.push({ id, logProb: drawn[i]!, offset: text.characters });
      if (!model.eosIds.includes(id)) unread.push(id);
      // one token at a time only if necessary: decoding dominates, and takes as long for several tokens at once
      if (logProbs || stop.length > 0) added += text.add(unread.splice(0));
      if (text.stopped) break;
    }
    added += text.add(unread);
    if (ended) added += text.end();
    hasEnded = ended || text.stopped;
    if (text.stopped && !ended) stopped.abort();
    onDelta({ text: added, count, tokens, finishReason: text.stopped || finished ? "stop" : ended ? "length" : null });
  };
  try {
    await engine.generate(
      [prompt],
      {
        seeds: [seed === undefined ? randomInt(2 ** 47) : seedFor(seed, "choice", index % n)],
        temperature,
        topP,
        maxNewTokens: maxTokens ?? model.maxPositions - prompt.length,
        // a stop word ends the row at once
        streams: stream || stop.length > 0,
        signal: AbortSignal.any([signal, stopped.signal]),
      },
      (_, part) => take(part),
    );
  } catch (cause) {
    if (!stopped.signal.aborted) throw cause;
  }
  if (!hasEnded) signal.throwIfAborted();
}
