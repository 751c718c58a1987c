export interface RuleCase {
  /** Place of the rule, as in `rules.ts`. */
  at: string;
  /** How the rule's message begins. */
  message: string;
  /** Changes of `BASE`, as after `--set`. */
  refused: string[];
  accepted: string[];
  /** For a rule of change: what makes the TrainingRun that exists of `BASE`. */
  before?: string[];
  /** The phase that it is in. */
  phase?: "Running" | "Succeeded" | "Failed";
}
