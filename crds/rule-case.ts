/** A case of a rule, and the parts of manifests that several tables of cases use. */
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

export const GRADER = "metric: MAE, idColumn: id, targetColumns: [price], direction: Lower";
/** A task with data on claims. */
export const claims = (publicData: string, privateData: string, further = `grader: {${GRADER}}`): string =>
  `tasks=[{name: diamonds, ${further}, publicData: {persistentVolumeClaim: {${publicData}}}, privateData: {persistentVolumeClaim: {${privateData}}}}]`;
/** A valid `model.source`. */
export const HUB = "{huggingFace: {repo: a/b}}";
export const fromHub = (text: string): string => `model={source: {huggingFace: {${text}}}}`;
export const fromS3 = (text: string): string => `model={source: {s3: {${text}}}}`;
export const fromOci = (text: string): string => `model={source: {oci: {${text}}}}`;
export const CUSTOM = claims("claimName: open", "claimName: answers");
