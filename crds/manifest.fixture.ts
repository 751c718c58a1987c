/** The shortest valid manifest. */
import assert from "node:assert/strict";
import { ManifestError, parseTrainingRun } from "./trainingrun.ts";

export const MINIMAL = `apiVersion: longrun.dev/v1alpha1
kind: TrainingRun
metadata:
  name: test
spec:
  tasks:
    - name: diamonds
  model:
    policy: ./policy
`;

/** Returns the problems that a manifest is refused with; none if it is valid. */
export function problems(text: string, overrides: string[] = []): string[] {
  try {
    parseTrainingRun(text, "run.yaml", overrides);
    return [];
  } catch (error) {
    assert.ok(error instanceof ManifestError, String(error));
    assert.equal(error.code, "manifest");
    return error.problems;
  }
}
