import { CodedError } from "../graph/errors.ts";

/** The kind of a model's error. The names are stable: callers map them to reasons of conditions. */
export type ModelErrorCode = "config" | "weights" | "tokenizer" | "generation";

/**
 * A model folder or a request that cannot be used. The message names the file or field, its value and the remedy, in one
 * line; it shows control characters of a file's texts as \u and their code.
 */
export class ModelError extends CodedError<ModelErrorCode> {
  constructor(code: ModelErrorCode, message: string, options?: ErrorOptions) {
    super(code, message.replace(/\p{Cc}/gu, escaped), options);
  }
}

const escaped = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, "0")}`;
