import type { Tokenizer } from "../engine/index.ts";
import type { PromptEncoder } from "./encoder.ts";

/** The server's one model. */
export interface ServedModel {
  readonly name: string;
  /** For answers. */
  readonly tokenizer: Pick<Tokenizer, "decode" | "hasChatTemplate" | "longestToken">;
  /** For prompts. */
  readonly encoder: PromptEncoder;
  readonly vocabSize: number;
  /** Most tokens of a prompt and its answer together. */
  readonly maxPositions: number;
  /** Tokens that end an answer. */
  readonly eosIds: readonly number[];
  /** Text that answers of chats begin with: the `prompts.answerPrefix` that the policy was trained with. */
  readonly answerPrefix?: string | undefined;
  /** When it was loaded, in Unix time. */
  readonly createdSeconds: number;
}
