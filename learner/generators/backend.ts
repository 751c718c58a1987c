/** The interface of a generator's backends: our engine, or vLLM in another container. */
import type { GeneratorState, RowAnswer, RowRequest, WeightsKind, WeightsName } from "./protocol.ts";

export type Row = Omit<RowAnswer, "policyVersion">;

export interface Backend {
  readonly engine: GeneratorState["engine"];
  readonly device: GeneratorState["device"];
  readonly slots: number;
  /** Why it can never be used again; undefined if it can be used. */
  readonly failure: Error | undefined;
  /** Returns whether it still has the weights that were loaded last. @throws GeneratorError `failed` if it cannot be used now */
  hasWeights(): Promise<boolean>;
  /**
   * Loads weights: further rows use them. The backend owns the folder from now on.
   *
   * @throws GeneratorError `request` for weights that it cannot load
   */
  load(folder: string, weights: WeightsName & { kind: WeightsKind }): Promise<void>;
  /**
   * Generates rows with the weights that were loaded last, and calls `onRow` with each at its end.
   *
   * @throws GeneratorError `request` for a row that cannot be generated here; the reason of `signal`
   */
  generate(rows: readonly RowRequest[], signal: AbortSignal, onRow: (row: Row) => void): Promise<void>;
  close(): Promise<void>;
}
