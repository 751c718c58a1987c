import type { Tokenizer } from "../engine/index.ts";

/** The one model that a server has. */
export interface ServedModel {
  readonly name: string;
  readonly tokenizer: Tokenizer;
  readonly vocabSize: number;
  /** tokens of a prompt and its answer at most */
  readonly maxPositions: number;
  /** an answer ends with the first of these */
  readonly eosIds: readonly number[];
  /** when it was loaded, Unix time */
  readonly createdSeconds: number;
}
