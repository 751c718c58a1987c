export interface RuleCase {
  /** The rule's path, as in `rules.ts`. */
  at: string;
  /** Beginning of the rule's message. */
  message: string;
  /** Changes to `BASE`, as with `--set`. */
  refused: string[];
  accepted: string[];
  /** For a rule about changes: the changes that make the existing TrainingRun from `BASE`. */
  before?: string[];
  /** The phase of the existing run. */
  phase?: "Running" | "Succeeded" | "Failed";
}
