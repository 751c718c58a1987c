import { CodedError } from "../graph/errors.ts";

/** What went wrong with a model; stable, so that callers can map it to a condition reason. */
export type ModelErrorCode = "config" | "weights" | "tokenizer" | "generation";

/**
 * A model folder or a request that cannot be used. The message names the file or field, its value and the remedy, in one
 * line: control characters of a file's texts are shown as \u and their code.
 */
export class ModelError extends CodedError<ModelErrorCode> {
  constructor(code: ModelErrorCode, message: string, options?: ErrorOptions) {
    super(code, message.replace(/\p{Cc}/gu, escaped), options);
  }
}

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
