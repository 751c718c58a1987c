/** Formats answers like OpenAI's API reference. */
import { randomUUID } from "node:crypto";
import type { ChoiceToken, Delta } from "./choice.ts";
import type { ServedModel } from "./model.ts";
import type { GenerationRequest } from "./request.ts";

export interface Usage {
  prompt_tokens: number;
  completion_tokens: number;
  total_tokens: number;
}

/** The part of an answer that belongs to one choice: all of it, or a stream's next delta. */
type Part = Delta & { index: number };

/** Returns functions that format the answer to one request with a common id and time. */
export function shapesOf({ endpoint, includeUsage, logProbs }: GenerationRequest, model: ServedModel) {
  const chat = endpoint === "chat/completions";
  const head = (object: string) => ({ id, object, created, model: model.name });
  const id = `${chat ? "chatcmpl" : "cmpl"}-${randomUUID()}`;
  const created = Math.floor(Date.now() / 1000);
  const logProbsOf = (tokens: readonly ChoiceToken[]) =>
    logProbs ? (chat ? chatLogProbs : completionLogProbs)(tokens, model) : null;
  const choice = ({ index, text, tokens, finishReason }: Part, content: object) => ({
    index,
    ...(chat ? content : { text }),
    logprobs: logProbsOf(tokens),
    finish_reason: finishReason,
  });
  const chunk = (choices: object[], usage: Usage | null) => ({
    ...head(chat ? "chat.completion.chunk" : "text_completion"),
    choices,
    ...(includeUsage && { usage }),
  });
  return {
    /** Formats the answer to a request that is no stream. */
    whole: (parts: Part[], usage: Usage) => ({
      ...head(chat ? "chat.completion" : "text_completion"),
      choices: parts.map((part) => choice(part, { message: { role: "assistant", content: part.text, refusal: null } })),
      usage,
    }),
    /** Formats a stream's next delta. @param first whether it is the first of its choice */
    part: (part: Part, first: boolean) =>
      chunk([choice(part, { delta: { ...(first && { role: "assistant" }), content: part.text } })], null),
    /** Formats the last chunk of a stream with usage. */
    usage: (usage: Usage) => chunk([], usage),
  };
}

const tokenText = ({ id }: ChoiceToken, { tokenizer }: ServedModel) =>
  tokenizer.decode([id], { skipSpecialTokens: false });

function completionLogProbs(tokens: readonly ChoiceToken[], model: ServedModel) {
  return {
    tokens: tokens.map((token) => tokenText(token, model)),
    token_logprobs: tokens.map(({ logProb }) => logProb),
    top_logprobs: null,
    text_offset: tokens.map(({ offset }) => offset),
  };
}

function chatLogProbs(tokens: readonly ChoiceToken[], model: ServedModel) {
  const content = tokens.map((token) => {
    const text = tokenText(token, model);
    // the text of a token with part of a character does not show its bytes
    const bytes = text.includes("\uFFFD") ? null : [...Buffer.from(text)];
    return { token: text, logprob: token.logProb, bytes, top_logprobs: [] };
  });
  return { content, refusal: null };
}

export function usageOf({ prompts }: GenerationRequest, generated: number): Usage {
  const read = prompts.reduce((sum, { length }) => sum + length, 0);
  return { prompt_tokens: read, completion_tokens: generated, total_tokens: read + generated };
}
